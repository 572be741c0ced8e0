#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "doc.h"
#include "file.h"
#include "router/fsck.h"
#include "router/fsckpart.h"
#include "router/request.h"
#include "router/sweep.h"

void
amr_fsck_tell(struct amr_fsck *c, int is_problem, const char *path, const char *fmt, ...)
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

jv
amr_fsck_read(struct amr_fsck *c, int at, const char *path)
{
	size_t len;
	char *text = am_read_regular(at, path, AM_FSCK_MAX, &len);
	jv doc;

	if (text == NULL) {
		amr_fsck_tell(c, 1, path, "%s", strerror(errno));
		return jv_invalid();
	}
	doc = am_json_parse(text, len);
	free(text);
	if (jv_get_kind(doc) == JV_KIND_OBJECT)
		return doc;
	amr_fsck_tell(c, 1, path, "%s", jv_is_valid(doc) ? "not an object" : "not whole JSON");
	jv_free(doc);
	return jv_invalid();
}

void
amr_fsck_judge(struct amr_fsck *c, const char *path, const char *doc_class, jv doc)
{
	jv problems = am_doc_problems(doc_class, doc), first;

	if (jv_array_length(jv_copy(problems)) > 0) {
		first = jv_array_get(jv_copy(problems), 0);
		amr_fsck_tell(c, 1, path, "%s", jv_string_value(first));
		jv_free(first);
	}
	jv_free(problems);
}

int
amr_fsck_exists(int at, const char *path)
{
	int fd = am_open_beneath(at, path, O_PATH, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Calls one for each name in a directory, sorted; temporary files are told here. */
static void
each(struct amr_fsck *c, int at, const char *dir, void (*one)(struct amr_fsck *, int at, const char *dir, const char *name))
{
	int fd = am_open_beneath(at, dir, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct amr_names names = { 0 };
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		else if (errno != ENOENT)
			amr_fsck_tell(c, 1, dir, "%s", strerror(errno));
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
			amr_fsck_tell(c, 0, path, "a temporary file of a run that ended badly");
		} else {
			one(c, at, dir, name);
		}
	}
	amr_names_free(&names);
	closedir(d);
}

int
amr_fsck_is_notice(const char *name, char nid[AM_NOTICE_ID + 1])
{
	if (strlen(name) != 7 + AM_NOTICE_ID + 5 || strncmp(name, "notice-", 7) != 0 || strcmp(name + 7 + AM_NOTICE_ID, ".json") != 0)
		return 0;
	memcpy(nid, name + 7, AM_NOTICE_ID);
	nid[AM_NOTICE_ID] = '\0';
	return 1;
}

/* ---- the lanes ---- */

static void
check_blobs(struct amr_fsck *c, int at, const char *dir, const char *nid, jv message)
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
			amr_fsck_tell(c, 1, path, "%s", strerror(errno));
		else {
			amr_digest(bytes, len, hex);
			if (want == NULL || strcmp(want, hex) != 0)
				amr_fsck_tell(c, 1, path, "other bytes than its notice says");
		}
		free(bytes);
		jv_free(item);
	}
	jv_free(list);
}

static void
one_notice(struct amr_fsck *c, int at, const char *dir, const char *name)
{
	char path[600], other[600], nid[AM_NOTICE_ID + 1];
	int peer = strncmp(dir, "peer", 4) == 0;
	const char *id;
	jv doc, message;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!amr_fsck_is_notice(name, nid))
		return;
	if (!jv_is_valid(doc = amr_fsck_read(c, at, path)))
		return;
	amr_fsck_judge(c, path, peer ? "peer-notice" : "deliver-notice", doc);
	id = am_str(doc, "notice_id");
	if (id == NULL || strcmp(id, nid) != 0)
		amr_fsck_tell(c, 1, path, "its notice_id is another");
	snprintf(other, sizeof other, "%s/delivered/%s", c->name, name);
	if (!amr_fsck_exists(c->state, other))
		amr_fsck_tell(c, peer, path, "this router did not place it");
	else {
		snprintf(other, sizeof other, "%.*s/messages/%s", (int)strcspn(dir, "/"), dir, name);
		if (!amr_fsck_exists(at, other))
			amr_fsck_tell(c, 1, path, "its message is missing");
		message = am_get(doc, "message", JV_KIND_OBJECT);
		check_blobs(c, at, dir, nid, message);
		jv_free(message);
	}
	jv_free(doc);
}

static void
one_message(struct amr_fsck *c, int at, const char *dir, const char *name)
{
	char path[600], other[600], nid[AM_NOTICE_ID + 1];
	jv doc;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!amr_fsck_is_notice(name, nid) || !jv_is_valid(doc = amr_fsck_read(c, at, path)))
		return;
	amr_fsck_judge(c, path, "inbound-message", doc);
	jv_free(doc);
	snprintf(other, sizeof other, "%.*s/notices/%s", (int)strcspn(dir, "/"), dir, name);
	if (!amr_fsck_exists(at, other))
		amr_fsck_tell(c, 0, path, "no notice belongs to it");
}

static void
one_published(struct amr_fsck *c, int at, const char *dir, const char *name)
{
	char path[600];
	jv doc;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (strlen(name) < 6 || strcmp(name + strlen(name) - 5, ".json") != 0 || !jv_is_valid(doc = amr_fsck_read(c, at, path)))
		return;
	amr_fsck_judge(c, path, "result", doc);
	jv_free(doc);
}

/* ---- the whole ---- */

static void
check_marker(struct amr_fsck *c)
{
	char path[128];
	const char *instance, *root;
	jv doc;

	snprintf(path, sizeof path, "%s/first-seen.json", c->name);
	c->root = -1;
	if (!amr_fsck_exists(c->state, path)) {
		amr_fsck_tell(c, 0, path, "never seen");
		return;
	}
	if (!jv_is_valid(doc = amr_fsck_read(c, c->state, path)))
		return;
	instance = am_str(doc, "instance");
	if (instance == NULL || strcmp(instance, c->name) != 0)
		amr_fsck_tell(c, 1, path, "it is another instance's");
	if ((root = am_str(doc, "declared_root")) != NULL && root[0] == '/' &&
	    (c->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		amr_fsck_tell(c, 0, root, "its lanes are not there: %s", strerror(errno));
	jv_free(doc);
}

static void
check_instance(struct amr_fsck *c)
{
	static const char *const inboxes[] = { "inbox", "inbound" }, *const outboxes[] = { "outbox", "outbound" };
	static const struct { const char *dir; void (*one)(struct amr_fsck *, int, const char *, const char *); } kept[] = {
		{ "results", amr_fsck_result }, { "delivered", amr_fsck_record }, { "held", amr_fsck_held },
		{ "outcomes", amr_fsck_json }, { "decided", amr_fsck_json }
	};
	char path[128];

	check_marker(c);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", c->name, kept[i].dir);
		each(c, c->state, path, kept[i].one);
	}
	amr_fsck_twice(c);
	amr_fsck_audit(c);
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
one_instance(struct amr_fsck *c, int at, const char *dir, const char *name)
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
	struct amr_fsck c = { .fp = fp, .state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };

	if (c.state < 0)
		return -1;
	each(&c, c.state, ".", one_instance);
	if (amr_fsck_exists(c.state, "status.json"))
		jv_free(amr_fsck_read(&c, c.state, "status.json"));
	fprintf(fp, "%ld problems, %ld notes\n", c.problems, c.notes);
	close(c.state);
	return c.problems;
}
