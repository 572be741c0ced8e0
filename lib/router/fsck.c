#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "diag.h"
#include "doc.h"
#include "file.h"
#include "id.h"
#include "router/fsck.h"
#include "router/request.h"
#include "router/sweep.h"

#define FILE_MAX (16u << 20)

struct check {
	FILE *fp;
	int state;
	const char *name;	/* of the instance in hand */
	int root;		/* of its lanes; -1: not known */
	time_t first_seen;
	long problems, notes;
};

static void __attribute__((format(printf, 4, 5)))
tell(struct check *c, int is_problem, const char *path, const char *fmt, ...)
{
	va_list ap;

	fprintf(c->fp, "%s: %s: ", is_problem ? "problem" : "note", am_quotes(path));
	va_start(ap, fmt);
	vfprintf(c->fp, fmt, ap);
	va_end(ap);
	putc('\n', c->fp);
	if (is_problem)
		c->problems++;
	else
		c->notes++;
}

/* Owns the document; invalid after telling why. */
static jv
read_document(struct check *c, int at, const char *path)
{
	size_t len;
	char *text = am_read_regular(at, path, FILE_MAX, &len);
	jv doc;

	if (text == NULL) {
		tell(c, 1, path, "%s", strerror(errno));
		return jv_invalid();
	}
	doc = am_json_parse(text, len);
	free(text);
	if (jv_get_kind(doc) == JV_KIND_OBJECT)
		return doc;
	tell(c, 1, path, "%s", jv_is_valid(doc) ? "not an object" : "not whole JSON");
	jv_free(doc);
	return jv_invalid();
}

static void
judge_document(struct check *c, const char *path, const char *doc_class, jv doc)
{
	jv problems = am_doc_problems(doc_class, doc), first;

	if (jv_array_length(jv_copy(problems)) > 0) {
		first = jv_array_get(jv_copy(problems), 0);
		tell(c, 1, path, "%s", jv_string_value(first));
		jv_free(first);
	}
	jv_free(problems);
}

static int
exists(int at, const char *path)
{
	int fd = am_open_beneath(at, path, O_PATH, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Calls one for each name in a directory, sorted; temporary files are told here. */
static void
each(struct check *c, int at, const char *dir, void (*one)(struct check *, int at, const char *dir, const char *name))
{
	int fd = am_open_beneath(at, dir, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct amr_names names = { 0 };
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		else if (errno != ENOENT)
			tell(c, 1, dir, "%s", strerror(errno));
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			amr_names_add(&names, e->d_name, NULL);
	amr_names_sort(&names);
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.text + names.at[i];

		if (amr_is_temporary(name)) {
			char path[600];

			snprintf(path, sizeof path, "%s/%s", dir, name);
			tell(c, 0, path, "a temporary file of a run that ended badly");
		} else {
			one(c, at, dir, name);
		}
	}
	amr_names_free(&names);
	closedir(d);
}

static int
is_notice_file(const char *name, char nid[AM_NOTICE_ID + 1])
{
	if (strlen(name) != 7 + AM_NOTICE_ID + 5 || strncmp(name, "notice-", 7) != 0 || strcmp(name + 7 + AM_NOTICE_ID, ".json") != 0)
		return 0;
	memcpy(nid, name + 7, AM_NOTICE_ID);
	nid[AM_NOTICE_ID] = '\0';
	return 1;
}

/* ---- the private side ---- */

/* When another instance was first seen; what is older than that was before its reset. */
static time_t
first_seen_of(struct check *c, const char *name)
{
	char path[128], *text;
	size_t len;
	const char *ts;
	time_t when = 0;
	jv doc;

	snprintf(path, sizeof path, "%s/first-seen.json", name);
	if ((text = am_read_regular(c->state, path, FILE_MAX, &len)) == NULL)
		return 0;
	doc = am_json_parse(text, len);
	free(text);
	if ((ts = am_str(doc, "first_seen_ts")) != NULL && am_parse_timestamp(ts) > 0)
		when = am_parse_timestamp(ts);
	jv_free(doc);
	return when;
}

/* An accepted result that names its message: the ledger of the recipient has it. */
static void
check_accepted(struct check *c, const char *path, jv result)
{
	const char *outcome = am_str(result, "outcome"), *nid = am_str(result, "message_id"), *ts = am_str(result, "ts");
	jv to = am_get(result, "recipients", JV_KIND_ARRAY), first;
	char name[AM_REQ_ID_MAX + 1], file[256];
	const char *address;

	if (outcome != NULL && strcmp(outcome, "accepted") == 0 && nid != NULL && jv_is_valid(to) &&
	    jv_array_length(jv_copy(to)) == 1) {
		first = jv_array_get(jv_copy(to), 0);
		address = jv_get_kind(first) == JV_KIND_STRING ? jv_string_value(first) : "";
		if (strncmp(address, "agent.", 6) == 0 && strstr(address, "@local") != NULL)
			address += 6;
		snprintf(name, sizeof name, "%.*s", (int)strcspn(address, "@"), address);
		snprintf(file, sizeof file, "%s/delivered/notice-%s.json", name, nid);
		if (amr_is_instance_name(name, strlen(name)) && ts != NULL && first_seen_of(c, name) > 0 &&
		    first_seen_of(c, name) <= am_parse_timestamp(ts) && !exists(c->state, file))
			tell(c, 1, path, "accepted, but %s is not in the ledger", am_quotes(file));
		jv_free(first);
	}
	jv_free(to);
}

static void
one_result(struct check *c, int at, const char *dir, const char *name)
{
	char path[600], id[300];
	const char *req_id, *digest;
	jv doc, result, d;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (strlen(name) > 8 && strcmp(name + strlen(name) - 8, ".corrupt") == 0) {
		tell(c, 0, path, "an answer that could not be read, kept aside");
		return;
	}
	if (!jv_is_valid(doc = read_document(c, at, path)))
		return;
	result = am_get(doc, "result", JV_KIND_OBJECT);
	d = jv_object_get(jv_copy(doc), jv_string("digest"));
	digest = am_str(doc, "digest");
	snprintf(id, sizeof id, "%.*s", (int)(strlen(name) > 5 ? strlen(name) - 5 : 0), name);
	if (!jv_is_valid(result))
		tell(c, 1, path, "no result in it");
	else if ((req_id = am_str(result, "req_id")) == NULL || strcmp(req_id, id) != 0)
		tell(c, 1, path, "its req_id is another");
	else if (jv_get_kind(d) != JV_KIND_NULL && (digest == NULL || !am_is_sha256(digest, strlen(digest))))
		tell(c, 1, path, "its digest is none");
	else {
		judge_document(c, path, "result", result);
		check_accepted(c, path, result);
	}
	jv_free(d);
	jv_free(result);
	jv_free(doc);
}

static void
one_ledger_record(struct check *c, int at, const char *dir, const char *name)
{
	char path[600], nid[AM_NOTICE_ID + 1], lane[128];
	const char *id, *to, *tree;
	jv doc;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!is_notice_file(name, nid)) {
		tell(c, 0, path, "not a ledger record's name");
		return;
	}
	if (!jv_is_valid(doc = read_document(c, at, path)))
		return;
	id = am_str(doc, "notice_id");
	to = am_str(doc, "to_instance");
	tree = am_str(doc, "tree");
	if (id == NULL || strcmp(id, nid) != 0)
		tell(c, 1, path, "its notice_id is another");
	else if (to == NULL || strcmp(to, c->name) != 0)
		tell(c, 1, path, "its to_instance is another");
	else if (c->root >= 0) {
		snprintf(lane, sizeof lane, "%s/notices/%s", tree != NULL && strcmp(tree, "peer") == 0 ? "peer" :
		    exists(c->root, "inbox") ? "inbox" : "inbound", name);
		if (!exists(c->root, lane))
			tell(c, 0, path, "no notice stands in the lane for it");
	}
	jv_free(doc);
}

static void
one_json(struct check *c, int at, const char *dir, const char *name)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (strlen(name) > 5 && strcmp(name + strlen(name) - 5, ".json") == 0)
		jv_free(read_document(c, at, path));
}

static void
one_held(struct check *c, int at, const char *dir, const char *name)
{
	char path[600], id[AM_REQ_ID_MAX + 1], answer[256];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!amr_is_request_name(name, id))
		return;
	jv_free(read_document(c, at, path));
	snprintf(answer, sizeof answer, "%s/results/%s.json", c->name, id);
	if (!exists(at, answer))
		tell(c, 0, path, "held, but not answered yet");
}

/* Two deliveries of one request to one member, in the sender's present life. */
static void
check_twice(struct check *c)
{
	char path[300];
	struct amr_names seen = { 0 };
	struct dirent *e;
	int fd;
	DIR *d;

	snprintf(path, sizeof path, "%s/delivered", c->name);
	fd = am_open_beneath(c->state, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 || (d = fdopendir(fd)) == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		char nid[AM_NOTICE_ID + 1], key[200], *text;
		const char *from, *req_id, *ts;
		size_t len;
		jv doc;

		if (!is_notice_file(e->d_name, nid) || (text = am_read_regular(fd, e->d_name, FILE_MAX, &len)) == NULL)
			continue;
		doc = am_json_parse(text, len);
		free(text);
		from = am_str(doc, "from_instance");
		req_id = am_str(doc, "req_id");
		ts = am_str(doc, "ts");
		if (from != NULL && req_id != NULL && ts != NULL && am_parse_timestamp(ts) >= first_seen_of(c, from)) {
			snprintf(key, sizeof key, "%s %s", from, req_id);
			amr_names_add(&seen, key, e->d_name);
		}
		jv_free(doc);
	}
	closedir(d);
	amr_names_sort(&seen);
	for (size_t i = 1; i < seen.n; i++)
		if (strcmp(seen.text + seen.at[i], seen.text + seen.at[i - 1]) == 0)
			tell(c, 1, path, "request %s was delivered twice", am_quotes(seen.text + seen.at[i]));
	amr_names_free(&seen);
}

static void
check_audit(struct check *c)
{
	char path[128], *line = NULL;
	size_t cap = 0;
	ssize_t n;
	long number = 0;
	int fd;
	FILE *fp;

	snprintf(path, sizeof path, "%s/audit/log.jsonl", c->name);
	if ((fd = am_open_beneath(c->state, path, O_RDONLY | O_NONBLOCK, 0)) < 0) {
		if (errno != ENOENT)
			tell(c, 1, path, "%s", strerror(errno));
		return;
	}
	if ((fp = fdopen(fd, "r")) == NULL) {
		close(fd);
		return;
	}
	while ((n = getline(&line, &cap, fp)) > 0) {
		jv doc;

		number++;
		if (line[n - 1] == '\n')
			line[--n] = '\0';
		doc = am_json_parse(line, (size_t)n);
		if (jv_get_kind(doc) != JV_KIND_OBJECT)
			tell(c, 0, path, "line %ld was cut short", number);
		jv_free(doc);
	}
	free(line);
	fclose(fp);
}

/* ---- the lanes ---- */

static void
check_blobs(struct check *c, int at, const char *dir, const char *nid, jv message)
{
	jv list = am_get(message, "attachments", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i);
		const char *want = am_str(item, "sha256");
		char path[600], hex[65], *bytes;
		size_t len;

		snprintf(path, sizeof path, "%s/%s.attachments/%d", dir, nid, i);
		bytes = am_read_regular(at, path, SIZE_MAX >> 1, &len);
		if (bytes == NULL)
			tell(c, 1, path, "%s", strerror(errno));
		else {
			amr_digest(bytes, len, hex);
			if (want == NULL || strcmp(want, hex) != 0)
				tell(c, 1, path, "other bytes than its notice says");
		}
		free(bytes);
		jv_free(item);
	}
	jv_free(list);
}

static void
one_notice(struct check *c, int at, const char *dir, const char *name)
{
	char path[600], other[600], nid[AM_NOTICE_ID + 1];
	int peer = strncmp(dir, "peer", 4) == 0;
	const char *id;
	jv doc, message;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!is_notice_file(name, nid))
		return;
	if (!jv_is_valid(doc = read_document(c, at, path)))
		return;
	judge_document(c, path, peer ? "peer-notice" : "deliver-notice", doc);
	id = am_str(doc, "notice_id");
	if (id == NULL || strcmp(id, nid) != 0)
		tell(c, 1, path, "its notice_id is another");
	snprintf(other, sizeof other, "%s/delivered/%s", c->name, name);
	if (!exists(c->state, other))
		tell(c, peer, path, "this router did not place it");
	else {
		snprintf(other, sizeof other, "%.*s/messages/%s", (int)strcspn(dir, "/"), dir, name);
		if (!exists(at, other))
			tell(c, 1, path, "its message is missing");
		message = am_get(doc, "message", JV_KIND_OBJECT);
		check_blobs(c, at, dir, nid, message);
		jv_free(message);
	}
	jv_free(doc);
}

static void
one_message(struct check *c, int at, const char *dir, const char *name)
{
	char path[600], other[600], nid[AM_NOTICE_ID + 1];
	jv doc;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!is_notice_file(name, nid) || !jv_is_valid(doc = read_document(c, at, path)))
		return;
	judge_document(c, path, "inbound-message", doc);
	jv_free(doc);
	snprintf(other, sizeof other, "%.*s/notices/%s", (int)strcspn(dir, "/"), dir, name);
	if (!exists(at, other))
		tell(c, 0, path, "no notice belongs to it");
}

static void
one_published(struct check *c, int at, const char *dir, const char *name)
{
	char path[600];
	jv doc;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (strlen(name) < 6 || strcmp(name + strlen(name) - 5, ".json") != 0 || !jv_is_valid(doc = read_document(c, at, path)))
		return;
	judge_document(c, path, "result", doc);
	jv_free(doc);
}

/* ---- the whole ---- */

static void
check_marker(struct check *c)
{
	char path[128];
	const char *instance, *root;
	jv doc;

	snprintf(path, sizeof path, "%s/first-seen.json", c->name);
	c->root = -1;
	if (!exists(c->state, path)) {
		tell(c, 0, path, "never seen");
		return;
	}
	if (!jv_is_valid(doc = read_document(c, c->state, path)))
		return;
	instance = am_str(doc, "instance");
	if (instance == NULL || strcmp(instance, c->name) != 0)
		tell(c, 1, path, "it is another instance's");
	if ((root = am_str(doc, "declared_root")) != NULL && root[0] == '/' &&
	    (c->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		tell(c, 0, root, "its lanes are not there: %s", strerror(errno));
	jv_free(doc);
}

static void
check_instance(struct check *c)
{
	static const char *const inboxes[] = { "inbox", "inbound" }, *const outboxes[] = { "outbox", "outbound" };
	static const struct { const char *dir; void (*one)(struct check *, int, const char *, const char *); } kept[] = {
		{ "results", one_result }, { "delivered", one_ledger_record }, { "held", one_held },
		{ "outcomes", one_json }, { "decided", one_json }
	};
	char path[128];

	check_marker(c);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", c->name, kept[i].dir);
		each(c, c->state, path, kept[i].one);
	}
	check_twice(c);
	check_audit(c);
	if (c->root < 0)
		return;
	each(c, c->root, "peer/notices", one_notice);
	each(c, c->root, "peer/messages", one_message);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/notices", inboxes[i]);
		each(c, c->root, path, one_notice);
		snprintf(path, sizeof path, "%s/messages", inboxes[i]);
		each(c, c->root, path, one_message);
		snprintf(path, sizeof path, "%s/results", outboxes[i]);
		each(c, c->root, path, one_published);
	}
	close(c->root);
}

static void
one_instance(struct check *c, int at, const char *dir, const char *name)
{
	int fd;

	(void)dir;
	if (!amr_is_instance_name(name, strlen(name)) || (fd = am_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0)) < 0)
		return;
	close(fd);
	c->name = name;
	check_instance(c);
}

long
amr_fsck(FILE *fp, const char *state_dir)
{
	struct check c = { .fp = fp, .state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };

	if (c.state < 0)
		return -1;
	each(&c, c.state, ".", one_instance);
	if (exists(c.state, "status.json"))
		jv_free(read_document(&c, c.state, "status.json"));
	fprintf(fp, "%ld problems, %ld notes\n", c.problems, c.notes);
	close(c.state);
	return c.problems;
}
