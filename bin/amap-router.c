/*
 * amap-router - the trusted side: decides about every request of the fleet
 *
 * Spec router. Its rooms are in lib/router/.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "diag.h"
#include "file.h"
#include "json.h"
#include "router/console.h"
#include "router/fsck.h"
#include "router/intent.h"
#include "router/lock.h"
#include "router/log.h"
#include "router/loop.h"
#include "router/matrix.h"
#include "router/mounts.h"
#include "router/provision.h"
#include "router/reset.h"
#include "router/status.h"

static const char usage[] =
    "usage: amap-router [--config FILE] COMMAND [...] | check STATE\n"
    "  --config FILE                        the configuration; else $ROUTER_CONFIG\n"
    "  run [--interval SECONDS]             serve until SIGTERM; SIGHUP reads the configuration at once\n"
    "  once [--json]                        handle what is there, then end\n"
    "  status [--json|--check|--prometheus] what the last poll of a running router found\n"
    "  peers [--json] [--html FILE]         who may task whom (also: matrix)\n"
    "  console --html FILE [--host-facts FILE]  the fleet as a page to read\n"
    "  provision NAME [--format env|json] [--no-create]  the lanes of one instance\n"
    "  reset NAME ...|--all --yes|--dry-run make instances ones that were never seen\n"
    "  mounts                               the directories that a confined router needs\n"
    "  check-config                         say whether the configuration is sound\n"
    "  check STATE                          say whether a state directory and its lanes are sound\n";

#define FACTS_MAX (1u << 20)

static struct amr_router router = { .state = -1, .lock = -1, .intent_fd = -1, .notify = -1 };

/* The lock, and what the last run had in hand. */
static int
take_over(void)
{
	char why[512];
	int rc = amr_lock(&router, router.conf->state_dir, why, sizeof why);

	if (rc != 0)
		am_warnx("%s", why);
	else if (amr_intents_load(&router) != 0)
		am_die("%s/.intent", am_quotes(router.conf->state_dir));
	return rc > 0 ? AM_PROBLEM : rc < 0 ? AM_TROUBLE : AM_OK;
}

static void
tell_discovery(void)
{
	int n = jv_array_length(jv_copy(router.conf->report));

	for (int i = 0; i < n; i++) {
		jv line = jv_array_get(jv_copy(router.conf->report), i);

		amr_log(AM_WARNING, "", i == 0 ? "discovery:\n%s" : "%s", jv_string_value(line));
		jv_free(line);
	}
}

static int
run(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "interval", required_argument, NULL, 'i' }, { NULL, 0, NULL, 0 }
	};
	const char *seconds = getenv("ROUTER_INTERVAL");
	double interval;
	char *end;
	int c, rc;

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		if (c != 'i')
			am_usage(usage);
		seconds = optarg;
	}
	if (optind < argc || seconds == NULL)
		am_usage(usage);
	interval = strtod(seconds, &end);
	if (*end != '\0' || end == seconds || !isfinite(interval) || interval <= 0 || interval > 86400)
		am_diex("--interval %s: not a number of seconds above 0, at most 86400", am_quotes(seconds));
	if ((rc = take_over()) != AM_OK)
		return rc;
	tell_discovery();
	amr_run(&router, interval);
	amr_unlock(&router);
	return AM_OK;
}

static int
once(int argc, char *argv[])
{
	static const struct option longopts[] = { { "json", no_argument, NULL, 'j' }, { NULL, 0, NULL, 0 } };
	int c, json = 0, rc;
	const char *sep = "\n";

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		if (c != 'j')
			am_usage(usage);
		json = 1;
	}
	if (optind < argc)
		am_usage(usage);
	if (json)
		amr_log_threshold = AM_WARNING;
	else
		tell_discovery();
	if ((rc = take_over()) != AM_OK)
		return rc;
	amr_once(&router);
	amr_unlock(&router);
	if (!json)
		return AM_OK;
	printf("{");
	for (size_t i = 0; i < router.n; i++, sep = ",\n") {
		printf("%s  \"%s\": ", sep, router.inst[i]->name);
		amr_summary_print(stdout, &router, router.inst[i], 0);
	}
	printf(router.n > 0 ? "\n}\n" : "}\n");
	return AM_OK;
}

static int
status(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "json", no_argument, NULL, 'j' }, { "check", no_argument, NULL, 'c' },
		{ "prometheus", no_argument, NULL, 'p' }, { NULL, 0, NULL, 0 }
	};
	int c, json = 0, check = 0, prometheus = 0, healthy;
	char line[256];
	jv doc;

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		switch (c) {
		case 'j': json = 1; break;
		case 'c': check = 1; break;
		case 'p': prometheus = 1; break;
		default: am_usage(usage);
		}
	if (optind < argc)
		am_usage(usage);
	doc = amr_status_read(router.conf->state_dir);
	if (check) {
		healthy = amr_status_health(doc, line, sizeof line);
		fprintf(healthy ? stdout : stderr, "%s\n", line);
		jv_free(doc);
		return healthy ? AM_OK : AM_PROBLEM;
	}
	if (!json && !prometheus)
		amr_status_print(stdout, doc, router.conf);
	if (!jv_is_valid(doc)) {
		am_warnx("%s/status.json: nothing to read; no router has polled yet", am_quotes(router.conf->state_dir));
		return AM_PROBLEM;
	}
	if (json)
		am_put(stdout, jv_copy(doc));
	else if (prometheus)
		amr_status_prometheus(stdout, doc);
	jv_free(doc);
	return AM_OK;
}

static int
peers(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "json", no_argument, NULL, 'j' }, { "html", required_argument, NULL, 'w' }, { NULL, 0, NULL, 0 }
	};
	const char *html = NULL;
	int c, json = 0;
	char *text;
	size_t len;
	FILE *fp;

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		switch (c) {
		case 'j': json = 1; break;
		case 'w': html = optarg; break;
		default: am_usage(usage);
		}
	if (optind < argc)
		am_usage(usage);
	if (json && router.conf->verdict_missing) {
		am_warnx("%s: the verdict is unavailable, so nothing can be said", am_quotes(router.conf->selected_json));
		return AM_PROBLEM;
	}
	if (html != NULL) {
		if ((fp = open_memstream(&text, &len)) == NULL)
			am_die("memory");
		amr_matrix_html(fp, router.conf);
		if (fclose(fp) != 0)
			am_die("memory");
		if (am_publish_path(html, text, len, 0644) != 0)
			am_die("%s", am_quotes(html));
		free(text);
	}
	if (json)
		amr_matrix_json(stdout, router.conf);
	else
		amr_matrix_print(stdout, router.conf);
	return AM_OK;
}

/* The page holds what agents wrote to each other, so it is the operator's alone. */
static int
console(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "html", required_argument, NULL, 'w' }, { "host-facts", required_argument, NULL, 'f' }, { NULL, 0, NULL, 0 }
	};
	const char *html = NULL;
	char *text;
	jv facts = jv_invalid(), status;
	size_t len;
	FILE *fp;
	int c;

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		switch (c) {
		case 'w': html = optarg; break;
		case 'f':
			jv_free(facts);
			facts = am_json_read(optarg, FACTS_MAX);
			if (jv_get_kind(facts) != JV_KIND_OBJECT)
				am_diex("%s: %s", am_quotes(optarg), jv_is_valid(facts) ? "not an object" : am_json_why(facts));
			break;
		default: am_usage(usage);
		}
	if (optind < argc || html == NULL)
		am_usage(usage);
	if ((fp = open_memstream(&text, &len)) == NULL)
		am_die("memory");
	router.state = open(router.conf->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	status = amr_status_read(router.conf->state_dir);
	amr_console(fp, &router, status, facts);
	if (fclose(fp) != 0)
		am_die("memory");
	if (strcmp(html, "-") == 0)
		fwrite(text, 1, len, stdout);
	else if (am_publish_path(html, text, len, 0600) != 0)
		am_die("%s", am_quotes(html));
	free(text);
	jv_free(status);
	jv_free(facts);
	return AM_OK;
}

static long
member(const char *name)
{
	long at = amr_conf_find(router.conf, name);

	if (at < 0)
		am_warnx("%s: no instance of this fleet", am_quotes(name));
	return at;
}

static int
provision(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "format", required_argument, NULL, 'f' }, { "no-create", no_argument, NULL, 'n' }, { NULL, 0, NULL, 0 }
	};
	int c, json = 0, create = 1;
	long at;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1)
		switch (c) {
		case 'f':
			if (strcmp(optarg, "json") != 0 && strcmp(optarg, "env") != 0)
				am_diex("--format %s: neither env nor json", am_quotes(optarg));
			json = strcmp(optarg, "json") == 0;
			break;
		case 'n': create = 0; break;
		default: am_usage(usage);
		}
	if (argc - optind != 1)
		am_usage(usage);
	if ((at = member(argv[optind])) < 0 || amr_provision(router.conf, (size_t)at, create) != 0)
		return AM_PROBLEM;
	amr_provision_print(stdout, router.conf, (size_t)at, json);
	return AM_OK;
}

static int
reset_one(size_t at, int dry)
{
	struct amr_reset done = { .dry = dry };
	int rc = amr_reset(&router, at, &done);

	printf("%s: %s %ld entries of its state, %ld of its mailbox\n", router.conf->members[at].name,
	    dry ? "would remove" : "removed", done.state, done.mailbox);
	if (rc != 0)
		am_warn("%s: audit", router.conf->members[at].name);
	if (done.left > 0)
		am_warnx("%s: %ld entries could not be removed", router.conf->members[at].name, done.left);
	return rc == 0 && done.left == 0 ? AM_OK : AM_TROUBLE;
}

static int
reset(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "all", no_argument, NULL, 'a' }, { "yes", no_argument, NULL, 'y' }, { "dry-run", no_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 }
	};
	int c, all = 0, yes = 0, dry = 0, rc = AM_OK, one, n;
	char why[512];

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1)
		switch (c) {
		case 'a': all = 1; break;
		case 'y': yes = 1; break;
		case 'd': dry = 1; break;
		default: am_usage(usage);
		}
	n = argc - optind;
	if (all == (n > 0))
		am_usage(usage);
	if (!yes && !dry) {
		am_warnx("reset: it removes mail and memory; say --yes, or --dry-run to see how much");
		return AM_PROBLEM;
	}
	for (int i = 0; i < n; i++)
		if (member(argv[optind + i]) < 0)
			return AM_PROBLEM;
	for (size_t i = 0; i < (all ? router.conf->n : (size_t)n); i++)
		if (amr_reset_check(&router, all ? i : (size_t)amr_conf_find(router.conf, argv[optind + (int)i]), why, sizeof why) != 0) {
			am_warnx("reset: %s", am_quotes(why));
			return AM_PROBLEM;
		}
	if (dry)
		router.state = open(router.conf->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else if ((rc = take_over()) != AM_OK)
		return rc;
	for (size_t i = 0; i < (all ? router.conf->n : (size_t)n); i++) {
		one = reset_one(all ? i : (size_t)amr_conf_find(router.conf, argv[optind + (int)i]), dry);
		rc = one > rc ? one : rc;
	}
	if (!dry)
		amr_unlock(&router);
	return rc;
}

static int
check(int argc, char *argv[])
{
	long problems;

	if (argc != 2)
		am_usage(usage);
	if ((problems = amr_fsck(stdout, argv[1])) < 0)
		am_die("%s", am_quotes(argv[1]));
	return problems == 0 ? AM_OK : AM_PROBLEM;
}

static int
mounts(int argc, char *argv[])
{
	(void)argv;
	if (argc > 1)
		am_usage(usage);
	return amr_mounts_print(stdout, router.conf) == 0 ? AM_OK : AM_PROBLEM;
}

static int
check_config(int argc, char *argv[])
{
	(void)argv;
	if (argc > 1)
		am_usage(usage);
	printf("%s: sound, %zu instances\n", am_quotes(router.config_path), router.conf->n);
	return AM_OK;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = { { "config", required_argument, NULL, 'c' }, AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	static const struct command { const char *name; int (*run)(int, char *[]); } commands[] = {
		{ "run", run }, { "once", once }, { "status", status }, { "peers", peers }, { "matrix", peers }, { "console", console },
		{ "provision", provision }, { "reset", reset }, { "mounts", mounts }, { "check-config", check_config },
		{ "check", check }
	};
	const struct command *command = NULL;
	char why[512];
	int c;

	am_prog = "amap-router";
	router.config_path = getenv("ROUTER_CONFIG");
	router.line_end = &router.line;
	router.admitted = jv_invalid();
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		if (c == 'c')
			router.config_path = optarg;
		else
			am_std_option(c, usage);
	}
	for (size_t i = 0; optind < argc && i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(argv[optind], commands[i].name) == 0)
			command = &commands[i];
	if (command == NULL || (router.config_path == NULL && command->run != check))
		am_usage(usage);
	argc -= optind;
	argv += optind;
	optind = 0;		/* begin anew with the command's own options */
	if (command->run == check)
		return am_finish(check(argc, argv));
	router.conf = amr_conf_load(router.config_path, NULL, why, sizeof why);
	if (router.conf == NULL) {
		fprintf(stderr, "router: config error: %s: %s\n", am_quotes(router.config_path), why);
		return command->run == mounts ? AM_PROBLEM : AM_TROUBLE;
	}
	return am_finish(command->run(argc, argv));
}
