#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "router/log.h"
#include "router/sight.h"

#define MARKER "first-seen.json"
#define MARKER_MAX (256u << 20)
#define HASHED_FILES 1000	/* digests are for people; what an agent stages beyond this has none */

/* ---- taking it ---- */

static jv
one_entry(int outbox, const char *name, int *hashed)
{
	jv d = am_set_str(jv_object(), "filename", name);
	char hex[65];
	size_t len;
	char *bytes = *hashed > 0 ? am_read_regular(outbox, name, AM_REQUEST_MAX, &len) : NULL;

	--*hashed;
	if (bytes != NULL)
		amr_digest(bytes, len, hex);
	d = am_set_str(d, "sha256", bytes != NULL ? hex : NULL);
	d = am_set(d, "size", bytes != NULL ? jv_number((double)len) : jv_null());
	free(bytes);
	return d;
}

static jv
snapshot(int outbox)
{
	int fd = outbox < 0 ? -1 : openat(outbox, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), hashed = HASHED_FILES;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char id[AM_REQ_ID_MAX + 1];
	struct amr_names names = { 0 };
	struct dirent *e;
	jv list = jv_array();

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return list;
	}
	while ((e = readdir(d)) != NULL)
		if (amr_is_request_name(e->d_name, id))
			amr_names_add(&names, e->d_name, NULL);
	amr_names_sort(&names);
	for (size_t i = 0; i < names.n; i++)
		list = jv_array_append(list, one_entry(fd, names.text + names.at[i], &hashed));
	closedir(d);
	amr_names_free(&names);
	return list;
}

/* A marker of the original's first form. */
static jv
adopt(struct amr_turn *t)
{
	size_t len;
	char *text = amr_state_read(t->r, t->in->name, "approval.json", MARKER_MAX, &len);
	jv doc = text == NULL ? jv_invalid() : am_json_parse(text, len), list, when;
	char ts[21];

	free(text);
	list = am_get(doc, "outbox_snapshot", JV_KIND_ARRAY);
	if (!jv_is_valid(list)) {
		jv_free(doc);
		return jv_invalid();
	}
	jv_free(list);
	am_timestamp(time(NULL), ts);
	when = am_get(doc, "approved_ts", JV_KIND_STRING);
	doc = am_set(doc, "schema", jv_number(1));
	doc = am_set_str(doc, "instance", t->in->name);
	doc = am_set(doc, "first_seen_ts", jv_is_valid(when) ? when : jv_string(ts));
	return am_set_str(doc, "adopted_from", "approval.json");
}

static jv
take(struct amr_turn *t)
{
	char ts[21];
	jv d;

	am_timestamp(time(NULL), ts);
	d = am_set(jv_object(), "schema", jv_number(1));
	d = am_set_str(d, "instance", t->in->name);
	d = am_set_str(d, "first_seen_ts", ts);
	d = am_set_str(d, "mode", t->m->namespaced ? "namespace" : "handoff");
	d = am_set_str(d, "declared_root", t->m->root);
	return am_set(d, "outbox_snapshot", snapshot(t->outbox));
}

/* ---- knowing it ---- */

/* Borrows. */
static void
remember(struct amr_inst *in, jv doc, const struct stat *st)
{
	jv list = am_get(doc, "outbox_snapshot", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;
	const char *ts = am_str(doc, "first_seen_ts"), *name;

	amr_names_free(&in->snapshot);
	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i);

		if ((name = am_str(item, "filename")) != NULL)
			amr_names_add(&in->snapshot, name, am_str(item, "sha256"));
		jv_free(item);
	}
	amr_names_sort(&in->snapshot);
	jv_free(list);
	in->first_seen = ts == NULL ? -1 : am_parse_timestamp(ts);
	in->marker_version = amr_version_of(st);
}

int
amr_sight(struct amr_turn *t)
{
	int dir = amr_state_dir(t->r, t->in->name, ""), fresh = 0, rc = 0, saved;
	struct amr_version now;
	struct stat st;
	size_t len;
	char *text;
	jv doc;

	if (dir < 0)
		return -1;
	if (fstatat(dir, MARKER, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		now = amr_version_of(&st);
		if (amr_same_version(&now, &t->in->marker_version)) {
			close(dir);
			return 0;
		}
	}
	text = am_read_regular(dir, MARKER, MARKER_MAX, &len);
	if (text == NULL && amr_is_shortage(errno)) {
		saved = errno;
		close(dir);
		errno = saved;
		return -1;
	}
	doc = text == NULL ? jv_invalid() : am_json_parse(text, len);
	if (jv_get_kind(doc) != JV_KIND_OBJECT) {
		jv_free(doc);
		doc = text == NULL ? adopt(t) : jv_invalid();
		if (!jv_is_valid(doc)) {
			jv_free(doc);
			doc = take(t);
		}
		rc = amr_publish_json(dir, MARKER, jv_copy(doc), 0600);
		fresh = rc == 0;
	}
	if (rc == 0 && (rc = fstatat(dir, MARKER, &st, AT_SYMLINK_NOFOLLOW)) == 0) {
		remember(t->in, doc, &st);
		if (fresh) {
			amr_count(t->in, AM_FIRST_SIGHT);
			amr_log(t->in->snapshot.n > 0 ? AM_WARNING : AM_INFO, ".firstsight",
			    "first sight of %s: %zu requests were there before, and are quarantined", t->in->name, t->in->snapshot.n);
		}
	}
	saved = errno;
	free(text);
	jv_free(doc);
	close(dir);
	errno = saved;
	return rc;
}

/* ---- what was staged ---- */

void
amr_quarantine(struct amr_turn *t, struct amr_request *q)
{
	char file[AM_REQ_ID_MAX + 16], meta[AM_REQ_ID_MAX + 32], ts[21], seen[21];
	int dir = amr_state_dir(t->r, t->in->name, "quarantine");
	const char *staged;
	jv d;

	snprintf(file, sizeof file, "req-%s.json", q->id);
	snprintf(meta, sizeof meta, "req-%s.json.meta.json", q->id);
	am_timestamp(time(NULL), ts);
	am_timestamp(t->in->first_seen < 0 ? 0 : t->in->first_seen, seen);
	d = am_set_str(jv_object(), "req_id", q->id);
	d = am_set_str(d, "filename", file);
	d = am_set_str(d, "first_seen_ts", t->in->first_seen < 0 ? NULL : seen);
	staged = amr_names_find(&t->in->snapshot, file);
	d = am_set_str(d, "snapshot_digest", staged != NULL && *staged != '\0' ? staged : NULL);
	d = am_set_str(d, "current_digest", q->digest);
	d = am_set_str(d, "quarantined_ts", ts);
	if (dir < 0 || am_publish(dir, file, q->bytes, q->len, 0600) != 0 || amr_publish_json(dir, meta, jv_copy(d), 0600) != 0)
		amr_log(AM_WARNING, ".firstsight", "no quarantine copy of request %s of %s: %s", q->id, t->in->name, strerror(errno));
	jv_free(d);
	if (dir >= 0)
		close(dir);
	amr_refuse(q, "rejected", "quarantined_pre_approval", "it was there before this instance was first seen");
	amr_count(t->in, AM_QUARANTINED);
}
