#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "doc.h"
#include "file.h"
#include "id.h"
#include "router/fsckpart.h"
#include "router/request.h"

/* When another instance was first seen; what is older than that was before its reset. */
static time_t
first_seen_of(struct amr_fsck *c, const char *name)
{
	char path[128], *text;
	size_t len;
	const char *ts;
	time_t when = 0;
	jv doc;

	snprintf(path, sizeof path, "%s/first-seen.json", name);
	if ((text = am_read_regular(c->state, path, AM_FSCK_MAX, &len)) == NULL)
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
check_accepted(struct amr_fsck *c, const char *path, jv result)
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
		    first_seen_of(c, name) <= am_parse_timestamp(ts) && !amr_fsck_exists(c->state, file))
			amr_fsck_tell(c, 1, path, "accepted, but %s is not in the ledger", am_quotes(file));
		jv_free(first);
	}
	jv_free(to);
}

void
amr_fsck_result(struct amr_fsck *c, int at, const char *dir, const char *name)
{
	char path[600], id[300];
	const char *req_id, *digest;
	jv doc, result, d;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (strlen(name) > 8 && strcmp(name + strlen(name) - 8, ".corrupt") == 0) {
		amr_fsck_tell(c, 0, path, "an answer that could not be read, kept aside");
		return;
	}
	if (!jv_is_valid(doc = amr_fsck_read(c, at, path)))
		return;
	result = am_get(doc, "result", JV_KIND_OBJECT);
	d = jv_object_get(jv_copy(doc), jv_string("digest"));
	digest = am_str(doc, "digest");
	snprintf(id, sizeof id, "%.*s", (int)(strlen(name) > 5 ? strlen(name) - 5 : 0), name);
	if (!jv_is_valid(result))
		amr_fsck_tell(c, 1, path, "no result in it");
	else if ((req_id = am_str(result, "req_id")) == NULL || strcmp(req_id, id) != 0)
		amr_fsck_tell(c, 1, path, "its req_id is another");
	else if (jv_get_kind(d) != JV_KIND_NULL && (digest == NULL || !am_is_sha256(digest, strlen(digest))))
		amr_fsck_tell(c, 1, path, "its digest is none");
	else {
		amr_fsck_judge(c, path, "result", result);
		check_accepted(c, path, result);
	}
	jv_free(d);
	jv_free(result);
	jv_free(doc);
}

void
amr_fsck_record(struct amr_fsck *c, int at, const char *dir, const char *name)
{
	char path[600], nid[AM_NOTICE_ID + 1], lane[128];
	const char *id, *to, *tree;
	jv doc;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!amr_fsck_is_notice(name, nid)) {
		amr_fsck_tell(c, 0, path, "not a ledger record's name");
		return;
	}
	if (!jv_is_valid(doc = amr_fsck_read(c, at, path)))
		return;
	id = am_str(doc, "notice_id");
	to = am_str(doc, "to_instance");
	tree = am_str(doc, "tree");
	if (id == NULL || strcmp(id, nid) != 0)
		amr_fsck_tell(c, 1, path, "its notice_id is another");
	else if (to == NULL || strcmp(to, c->name) != 0)
		amr_fsck_tell(c, 1, path, "its to_instance is another");
	else if (c->root >= 0) {
		snprintf(lane, sizeof lane, "%s/notices/%s", tree != NULL && strcmp(tree, "peer") == 0 ? "peer" :
		    amr_fsck_exists(c->root, "inbox") ? "inbox" : "inbound", name);
		if (!amr_fsck_exists(c->root, lane))
			amr_fsck_tell(c, 0, path, "no notice stands in the lane for it");
	}
	jv_free(doc);
}

void
amr_fsck_json(struct amr_fsck *c, int at, const char *dir, const char *name)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (strlen(name) > 5 && strcmp(name + strlen(name) - 5, ".json") == 0)
		jv_free(amr_fsck_read(c, at, path));
}

void
amr_fsck_held(struct amr_fsck *c, int at, const char *dir, const char *name)
{
	char path[600], id[AM_REQ_ID_MAX + 1], answer[256];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!amr_is_request_name(name, id))
		return;
	jv_free(amr_fsck_read(c, at, path));
	snprintf(answer, sizeof answer, "%s/results/%s.json", c->name, id);
	if (!amr_fsck_exists(at, answer))
		amr_fsck_tell(c, 0, path, "held, but not answered yet");
}

/* Two deliveries of one request to one member, in the sender's present life. */
void
amr_fsck_twice(struct amr_fsck *c)
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

		if (!amr_fsck_is_notice(e->d_name, nid) || (text = am_read_regular(fd, e->d_name, AM_FSCK_MAX, &len)) == NULL)
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
			amr_fsck_tell(c, 1, path, "request %s was delivered twice", am_quotes(seen.text + seen.at[i]));
	amr_names_free(&seen);
}

void
amr_fsck_audit(struct amr_fsck *c)
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
			amr_fsck_tell(c, 1, path, "%s", strerror(errno));
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
			amr_fsck_tell(c, 0, path, "line %ld was cut short", number);
		jv_free(doc);
	}
	free(line);
	fclose(fp);
}
