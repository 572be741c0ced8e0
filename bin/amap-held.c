/*
 * amap-held - the operator's word on requests that wait
 *
 * Reads what the router keeps, and leaves decisions for it to carry out
 * (lib/router/held.h); delivers nothing itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "id.h"
#include "json.h"
#include "router/held.h"
#include "router/status.h"
#include "sandbox/giveup.h"

static const char usage[] =
    "usage: amap-held --config FILE list [--json] | show INSTANCE ID |\n"
    "           release INSTANCE ID --as task|mail [--wait SECONDS] | deny INSTANCE ID [--wait SECONDS]\n"
    "  list     one line for each request that waits, the oldest first\n"
    "  show     the whole of one, what its sender wrote quoted\n"
    "  release  deliver exactly these bytes, once, whatever the policy says\n"
    "  deny     never deliver them\n";

static struct amr_router router;

/* ---- reading ---- */

struct waiting {
	const char *instance;
	char id[AM_REQ_ID_MAX + 1];
	time_t since;
};

static struct waiting *all;
static size_t n_all;

static int
oldest_first(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;
	int d = (x->since > y->since) - (x->since < y->since);

	if (d == 0)
		d = strcmp(x->instance, y->instance);
	return d != 0 ? d : strcmp(x->id, y->id);
}

static void
find_waiting(const char *instance)
{
	char path[128], id[AM_REQ_ID_MAX + 1];
	struct dirent *e;
	struct stat st;
	int fd;
	DIR *d;

	snprintf(path, sizeof path, "%s/held", instance);
	fd = am_open_beneath(router.state, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && errno == ENOENT)
		return;
	if (fd < 0 || (d = fdopendir(fd)) == NULL)
		am_die("%s/%s", am_quotes(router.conf->state_dir), path);
	while ((errno = 0, e = readdir(d)) != NULL) {
		if (!amr_is_request_name(e->d_name, id) || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if ((n_all & (n_all - 1)) == 0 &&
		    (all = realloc(all, (n_all ? n_all * 2 : 1) * sizeof *all)) == NULL)
			abort();
		all[n_all].instance = instance;
		memcpy(all[n_all].id, id, sizeof id);
		all[n_all++].since = st.st_mtim.tv_sec;
	}
	if (errno != 0)
		am_die("%s/%s", am_quotes(router.conf->state_dir), path);
	closedir(d);
}

/* Fills q with a held request; its answer says why it is not sound. NULL bytes: there is none. */
static void
load(struct amr_request *q, const char *instance, const char *id)
{
	char path[128], *bytes;
	size_t len;

	amr_request_init(q, id);
	snprintf(path, sizeof path, "held/req-%s.json", id);
	if ((bytes = amr_state_read(&router, instance, path, AM_REQUEST_MAX, &len)) != NULL)
		amr_request_judge(q, bytes, len, instance);
}

/* Owns: why it was held, from the private record of its answer. */
static jv
reason(const char *instance, const char *id)
{
	char path[128], *text;
	size_t len;
	jv doc, result, v;

	snprintf(path, sizeof path, "results/%s.json", id);
	if ((text = amr_state_read(&router, instance, path, AM_REQUEST_MAX, &len)) == NULL)
		return jv_null();
	doc = am_json_parse(text, len);
	free(text);
	result = am_get(doc, "result", JV_KIND_OBJECT);
	v = am_get(result, "reason_code", JV_KIND_STRING);
	jv_free(result);
	jv_free(doc);
	return jv_is_valid(v) ? v : jv_null();
}

/* Owns. */
static jv
describe(const struct waiting *w)
{
	jv d = am_set_str(jv_object(), "instance", w->instance), subject, to, cc, files;
	struct amr_request q;
	char ts[21];

	load(&q, w->instance, w->id);
	am_timestamp(w->since, ts);
	subject = am_get(q.draft, "subject", JV_KIND_STRING);
	to = am_get(q.draft, "to", JV_KIND_ARRAY);
	cc = am_get(q.draft, "cc", JV_KIND_ARRAY);
	files = am_get(q.draft, "attachments", JV_KIND_ARRAY);
	d = am_set_str(d, "req_id", w->id);
	d = am_set_str(d, "since", ts);
	d = am_set(d, "reason_code", reason(w->instance, w->id));
	d = am_set(d, "to", jv_is_valid(to) ? to : jv_array());
	d = am_set(d, "cc", jv_is_valid(cc) ? cc : jv_array());
	d = am_set(d, "subject", jv_is_valid(subject) ? subject : jv_null());
	d = am_set(d, "attachments", jv_number(jv_is_valid(files) ? jv_array_length(jv_copy(files)) : 0));
	d = am_set_str(d, "sha256", q.digest);
	jv_free(files);
	amr_request_free(&q);
	return d;
}

/* Everything, however long, with nothing in it that a terminal obeys. */
static void
print_quoted(const char *label, jv text)
{
	const char *s = jv_string_value(text);
	size_t left = (size_t)jv_string_length_bytes(jv_copy(text));

	fputs(label, stdout);
	while (left > 0) {
		size_t n = left > 200 ? 200 : left;
		const char *end = memchr(s, '\n', n);

		if (end != NULL)
			n = (size_t)(end - s);
		fputs(am_quote(s, n), stdout);
		if (end != NULL) {
			printf("\n%s", label);
			n++;
		}
		s += n;
		left -= n;
	}
	putchar('\n');
	jv_free(text);
}

static void
print_line(jv d)
{
	jv to = am_get(d, "to", JV_KIND_ARRAY), subject = am_get(d, "subject", JV_KIND_STRING), reason_code;
	int n = jv_array_length(jv_copy(to));

	reason_code = am_get(d, "reason_code", JV_KIND_STRING);
	printf("%s  %s  %s  %s  ", am_str(d, "instance"), am_str(d, "req_id"), am_str(d, "since"),
	    jv_is_valid(reason_code) ? am_quotes(jv_string_value(reason_code)) : "-");
	for (int i = 0; i < n && i < 3; i++) {
		jv a = jv_array_get(jv_copy(to), i);

		printf("%s%s", i > 0 ? "," : "", am_quotes(jv_string_value(a)));
		jv_free(a);
	}
	printf("%s  ", n > 3 ? ",..." : n == 0 ? "-" : "");
	jv_free(reason_code);
	jv_free(to);
	if (jv_is_valid(subject))
		printf("%s\n", am_quote(jv_string_value(subject), (size_t)jv_string_length_bytes(jv_copy(subject))));
	else
		printf("-\n");
	jv_free(subject);
}

static int
list(int json)
{
	for (size_t i = 0; i < router.conf->n; i++)
		find_waiting(router.conf->members[i].name);
	if (n_all > 0)
		qsort(all, n_all, sizeof *all, oldest_first);
	for (size_t i = 0; i < n_all; i++) {
		jv d = describe(&all[i]);

		if (json)
			am_put(stdout, jv_copy(d));
		else
			print_line(d);
		jv_free(d);
	}
	if (json)
		am_put_end(stdout, (long)n_all);
	return AM_OK;
}

static int
show(const char *instance, const char *id)
{
	static const char *const lists[] = { "to", "cc" };
	struct amr_request q;
	jv v;

	load(&q, instance, id);
	if (q.bytes == NULL) {
		am_warnx("%s %s: no such request is held", instance, id);
		amr_request_free(&q);
		return AM_PROBLEM;
	}
	printf("from:    %s\nrequest: %s\nsha256:  %s\n", instance, id, q.digest);
	v = reason(instance, id);
	printf("held:    %s\n", jv_get_kind(v) == JV_KIND_STRING ? am_quotes(jv_string_value(v)) : "-");
	jv_free(v);
	if (q.answer.outcome != NULL)
		printf("broken:  %s\n", q.answer.reason);
	for (size_t k = 0; k < 2; k++) {
		jv names = am_get(q.draft, lists[k], JV_KIND_ARRAY);
		int n = jv_is_valid(names) ? jv_array_length(jv_copy(names)) : 0;

		for (int i = 0; i < n; i++)
			print_quoted(k == 0 ? "to:      " : "cc:      ", jv_array_get(jv_copy(names), i));
		jv_free(names);
	}
	if (jv_is_valid(v = am_get(q.draft, "subject", JV_KIND_STRING)))
		print_quoted("subject: ", v);
	if (jv_is_valid(v = am_get(q.draft, "attachments", JV_KIND_ARRAY))) {
		for (int i = 0; i < jv_array_length(jv_copy(v)); i++) {
			jv item = jv_array_get(jv_copy(v), i), name = am_get(item, "filename", JV_KIND_STRING);

			print_quoted("file:    ", name);
			jv_free(item);
		}
		jv_free(v);
	}
	if (jv_is_valid(v = am_get(q.draft, "body_text", JV_KIND_STRING)))
		print_quoted("| ", v);
	amr_request_free(&q);
	return AM_OK;
}

/* ---- deciding ---- */

/* Whose directory it is carries the decision out: must read it, and answer beside it. */
static void
become_owner(void)
{
	struct stat st;

	if (geteuid() != 0)
		return;
	if (fstat(router.state, &st) != 0 || (st.st_uid != 0 && ams_become(st.st_uid, st.st_gid) != 0))
		am_die("%s: its owner's rights", am_quotes(router.conf->state_dir));
}

static void
leave_decision(const char *name, jv doc)
{
	int dir = amr_dir(router.state, AM_DECISIONS), answers = amr_dir(router.state, AM_DECISIONS "/answers");

	if (dir < 0 || answers < 0)
		am_die("%s/%s", am_quotes(router.conf->state_dir), AM_DECISIONS);
	unlinkat(answers, name, 0);	/* of an earlier try */
	if (amr_publish_json(dir, name, doc, 0600) != 0)
		am_die("%s/%s/%s", am_quotes(router.conf->state_dir), AM_DECISIONS, name);
	close(answers);
	close(dir);
}

/* Owns the router's answer; invalid when none came in time. */
static jv
wait_for_answer(const char *name, double seconds)
{
	const struct timespec pause = { 0, 20000000 };
	const long long until = am_now() + (long long)(seconds * 1000);
	char path[512], *text;
	size_t len;
	jv doc;

	snprintf(path, sizeof path, AM_DECISIONS "/answers/%s", name);
	for (;;) {
		if ((text = am_read_regular(router.state, path, AM_DECISION_MAX, &len)) != NULL) {
			unlinkat(router.state, path, 0);
			doc = am_json_parse(text, len);
			free(text);
			return doc;
		}
		if (am_now() > until)
			return jv_invalid();
		nanosleep(&pause, NULL);
	}
}

static int
decide(const char *instance, const char *id, const char *decision, const char *as, double seconds)
{
	char name[256], line[256], ts[21];
	struct amr_request q;
	jv doc = amr_status_read(router.conf->state_dir), done;
	int healthy = amr_status_health(doc, line, sizeof line), rc = AM_OK;
	const char *why;

	jv_free(doc);
	if (!healthy) {
		am_warnx("%s: no router that would carry it out: %s", am_quotes(router.conf->state_dir), line);
		return AM_TROUBLE;
	}
	load(&q, instance, id);
	if (q.bytes == NULL) {
		am_warnx("%s %s: no such request is held", instance, id);
		amr_request_free(&q);
		return AM_PROBLEM;
	}
	am_timestamp(time(NULL), ts);
	doc = am_set(jv_object(), "schema", jv_number(1));
	doc = am_set_str(doc, "instance", instance);
	doc = am_set_str(doc, "req_id", id);
	doc = am_set_str(doc, "decision", decision);
	doc = am_set_str(doc, "as", as);
	doc = am_set_str(doc, "digest", q.digest);
	doc = am_set_str(doc, "decided_ts", ts);
	doc = am_set(doc, "uid", jv_number((double)getuid()));
	amr_request_free(&q);
	amr_decision_name(instance, id, name, sizeof name);
	become_owner();
	leave_decision(name, doc);
	doc = wait_for_answer(name, seconds);
	done = am_get(doc, "done", JV_KIND_TRUE);
	why = am_str(doc, "why");
	if (jv_is_valid(done)) {
		printf("%s %s: %s\n", instance, id, strcmp(decision, "deny") == 0 ? "denied" : "released");
	} else {
		if (jv_is_valid(doc))
			am_warnx("%s %s: %s", instance, id, why != NULL ? am_quotes(why) : "refused");
		else
			am_warnx("%s %s: not carried out yet; the decision stays at %s/%s/%s", instance, id,
			    am_quotes(router.conf->state_dir), AM_DECISIONS, name);
		rc = AM_PROBLEM;
	}
	jv_free(done);
	jv_free(doc);
	return rc;
}

/* ---- the command line ---- */

/* Both are parts of file names from here on. */
static void
check_names(const char *instance, const char *id)
{
	char file[128], parsed[AM_REQ_ID_MAX + 1];

	if (!amr_is_instance_name(instance, strlen(instance)))
		am_diex("%s: not an instance's name", am_quotes(instance));
	if (snprintf(file, sizeof file, "req-%s.json", id) >= (int)sizeof file || !amr_is_request_name(file, parsed))
		am_diex("%s: not a request's id", am_quotes(id));
}

int
main(int argc, char *argv[])
{
	static const struct option global[] = { { "config", required_argument, NULL, 'c' }, AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	static const struct option local[] = {
		{ "json", no_argument, NULL, 'j' }, { "as", required_argument, NULL, 'a' },
		{ "wait", required_argument, NULL, 'w' }, { NULL, 0, NULL, 0 }
	};
	const char *config = NULL, *verb, *as = NULL;
	double seconds = 10;
	int c, json = 0, n;
	char why[512], *end;

	am_prog = "amap-held";
	while ((c = getopt_long(argc, argv, "+", global, NULL)) != -1) {
		if (c == 'c')
			config = optarg;
		else
			am_std_option(c, usage);
	}
	if (optind == argc || config == NULL)
		am_usage(usage);
	verb = argv[optind];
	argc -= optind;
	argv += optind;
	optind = 0;		/* begin anew, options may follow INSTANCE and ID */
	while ((c = getopt_long(argc, argv, "", local, NULL)) != -1)
		switch (c) {
		case 'j': json = 1; break;
		case 'a': as = optarg; break;
		case 'w':
			seconds = strtod(optarg, &end);
			if (end == optarg || *end != '\0' || !(seconds >= 0 && seconds <= 86400))
				am_diex("--wait %s: not a number of seconds from 0 to 86400", am_quotes(optarg));
			break;
		default: am_usage(usage);
		}
	n = argc - optind;
	if ((router.conf = amr_conf_load(config, NULL, why, sizeof why)) == NULL)
		am_diex("%s: %s", am_quotes(config), why);
	if ((router.state = open(router.conf->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		am_die("%s", am_quotes(router.conf->state_dir));
	if (strcmp(verb, "list") == 0 && n == 0 && as == NULL)
		return am_finish(list(json));
	if (n != 2 || json)
		am_usage(usage);
	check_names(argv[optind], argv[optind + 1]);
	if (strcmp(verb, "show") == 0 && as == NULL)
		return am_finish(show(argv[optind], argv[optind + 1]));
	if (strcmp(verb, "deny") == 0 && as == NULL)
		return am_finish(decide(argv[optind], argv[optind + 1], "deny", NULL, seconds));
	if (strcmp(verb, "release") == 0 && as != NULL && (strcmp(as, "task") == 0 || strcmp(as, "mail") == 0))
		return am_finish(decide(argv[optind], argv[optind + 1], "release", as, seconds));
	am_usage(usage);
}
