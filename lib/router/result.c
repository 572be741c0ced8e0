#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "router/log.h"
#include "router/result.h"

/* An agent chooses how much lies below a sidecar's name: what exceeds this stays. */
#define REMOVE_DEPTH 16
#define REMOVE_ENTRIES 4096

jv
amr_result(const struct amr_request *q)
{
	jv d = am_set_str(jv_object(), "contract_version", "2");
	char ts[21];

	am_timestamp(time(NULL), ts);
	d = am_set_str(d, "req_id", q->id);
	d = am_set_str(d, "outcome", q->answer.outcome);
	d = am_set(d, "detail", jv_copy(q->answer.detail));
	d = am_set_str(d, "reason_code", q->answer.reason);
	d = am_set_str(d, "ts", ts);
	d = am_set(d, "message_id", jv_copy(q->answer.message_id));
	d = am_set(d, "job_id", jv_null());
	if (jv_is_valid(q->answer.recipients))
		d = am_set(d, "recipients", jv_copy(q->answer.recipients));
	if (jv_is_valid(q->answer.attachments))
		d = am_set(d, "attachments", jv_copy(q->answer.attachments));
	return d;
}

/* ---- removal ---- */

static void
remove_below(int at, const char *name, int depth, int *left)
{
	int fd = am_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (*left > 0 && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		--*left;
		if (unlinkat(fd, e->d_name, 0) != 0 && depth > 0) {
			remove_below(fd, e->d_name, depth - 1, left);
			unlinkat(fd, e->d_name, AT_REMOVEDIR);
		}
	}
	closedir(d);
}

void
amr_remove_tree(int at, const char *name)
{
	int left = REMOVE_ENTRIES;

	if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return;
	if (unlinkat(at, name, 0) == 0)		/* a link or a file of that name */
		return;
	remove_below(at, name, REMOVE_DEPTH, &left);
	unlinkat(at, name, AT_REMOVEDIR);
}

/* ---- the outbox ---- */

static void
publish(struct amr_turn *t, const char *id, jv result)
{
	int dir = amr_dir(t->outbox, "results");
	char name[AM_REQ_ID_MAX + 8];

	snprintf(name, sizeof name, "%s.json", id);
	if (dir < 0 || amr_publish_json(dir, name, jv_copy(result), 0600) != 0)
		amr_log(AM_WARNING, ".outbound", "result %s of %s cannot be published: %s", id, t->in->name, strerror(errno));
	jv_free(result);
	if (dir >= 0)
		close(dir);
}

static void
archive(struct amr_turn *t, const char *id)
{
	int dir = amr_dir(t->outbox, "processed");
	char name[AM_REQ_ID_MAX + 32];

	snprintf(name, sizeof name, "req-%s.json", id);
	if ((dir < 0 || renameat(t->outbox, name, dir, name) != 0) && errno != ENOENT) {
		amr_log(AM_WARNING, ".outbound", "request %s of %s cannot be archived, removed: %s", id, t->in->name,
		    strerror(errno));
		if (unlinkat(t->outbox, name, 0) != 0 && errno != ENOENT)
			amr_log(AM_WARNING, ".outbound", "request %s of %s cannot be removed: %s", id, t->in->name,
			    strerror(errno));
	}
	if (dir >= 0)
		close(dir);
	snprintf(name, sizeof name, "req-%s.attachments", id);
	amr_remove_tree(t->outbox, name);
}

void
am_answer(struct amr_turn *t, const char *id, jv result)
{
	publish(t, id, result);
	archive(t, id);
}

int
amr_record(struct amr_turn *t, const struct amr_request *q, jv result)
{
	char name[AM_REQ_ID_MAX + 8];
	jv envelope = am_set_str(jv_object(), "digest", q->digest[0] != '\0' ? q->digest : NULL);

	envelope = am_set(envelope, "result", jv_copy(result));
	snprintf(name, sizeof name, "%s.json", q->id);
	return amr_state_publish(t->r, t->in->name, "results", name, envelope);
}

int
amr_conclude(struct amr_turn *t, struct amr_request *q)
{
	jv result = amr_result(q);

	if (amr_record(t, q, result) != 0) {
		jv_free(result);
		return -1;
	}
	am_answer(t, q->id, result);
	return 0;
}
