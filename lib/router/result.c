#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "id.h"
#include "router/flush.h"
#include "router/log.h"
#include "router/result.h"

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

/* ---- the outbox ---- */

/*
 * What the agent put in the way is its own loss: the answer stands in the
 * private record. A shortage passes, so it is an error, and tried again.
 */
static int
unpublished(const struct amr_turn *t, const char *id)
{
	if (amr_is_shortage(errno))
		return -1;
	amr_log(AM_WARNING, ".outbound", "result %s of %s cannot be published: %s", id, t->in->name, strerror(errno));
	amr_let_go();
	return 0;
}

static int
publish(struct amr_turn *t, const char *id, jv result)
{
	int dir = amr_use_lane(t->m, 'o', "results"), rc = dir;
	char name[AM_REQ_ID_MAX + 8];

	snprintf(name, sizeof name, "%s.json", id);
	if (dir >= 0)
		rc = amr_publish_json(dir, name, jv_copy(result), 0600);
	jv_free(result);
	return rc < 0 ? unpublished(t, id) : 0;
}

static int
archive(struct amr_turn *t, const char *id)
{
	int dir = amr_use_lane(t->m, 'o', "processed"), rc = dir, saved;
	char name[AM_REQ_ID_MAX + 32];

	snprintf(name, sizeof name, "req-%s.json", id);
	if (dir >= 0)
		rc = renameat(t->outbox, name, dir, name);
	saved = errno;
	if (rc < 0 && amr_is_shortage(saved))
		return -1;
	if (rc < 0 && saved != ENOENT) {
		amr_let_go();
		amr_log(AM_WARNING, ".outbound", "request %s of %s cannot be archived, removed: %s", id, t->in->name,
		    strerror(saved));
		if (unlinkat(t->outbox, name, 0) != 0 && errno != ENOENT)
			amr_log(AM_WARNING, ".outbound", "request %s of %s cannot be removed: %s", id, t->in->name,
			    strerror(errno));
	}
	snprintf(name, sizeof name, "req-%s.attachments", id);
	amr_remove_tree(t->outbox, name);
	return 0;
}

int
amr_answer(struct amr_turn *t, const char *id, jv result)
{
	return publish(t, id, result) != 0 ? -1 : archive(t, id);
}

static jv
envelope(const struct amr_request *q, jv result)
{
	jv d = am_set_str(jv_object(), "digest", q->digest[0] != '\0' ? q->digest : NULL);

	return am_set(d, "result", jv_copy(result));
}

int
amr_record(struct amr_turn *t, const struct amr_request *q, jv result)
{
	char name[AM_REQ_ID_MAX + 8];

	snprintf(name, sizeof name, "%s.json", q->id);
	return amr_state_publish(t->r, t->in->name, "results", name, envelope(q, result));
}

int
amr_record_and_answer(struct amr_turn *t, const struct amr_request *q, jv result, int intent)
{
	int records = amr_use_state(t->r, t->in->name, "results"), results, rc, fds[2];
	char name[AM_REQ_ID_MAX + 8];
	struct am_draft record, answer = { .fd = -1 };

	snprintf(name, sizeof name, "%s.json", q->id);
	rc = amr_draft_json(&record, records, name, envelope(q, result), 0600);
	if (rc != 0) {
		jv_free(result);
		return -1;
	}
	results = amr_use_lane(t->m, 'o', "results");
	rc = amr_draft_json(&answer, results, name, result, 0600) == 0 ? 0 : errno;
	fds[0] = record.fd;
	fds[1] = answer.fd;
	if (amr_flush(fds, rc == 0 ? 2 : 1) != 0) {
		am_draft_drop(&record);
		if (rc == 0)
			am_draft_drop(&answer);
		return -1;
	}
	if (am_draft_place(&record) != 0 || (!intent && fsync(records) != 0)) {
		if (rc == 0)
			am_draft_drop(&answer);
		return -1;
	}
	if (rc == 0 && am_draft_place(&answer) != 0)
		rc = errno;
	fds[0] = results;
	fds[1] = records;
	if (rc == 0)
		rc = amr_flush(fds, intent ? 2 : 1) == 0 ? 0 : errno;
	else if (intent && fsync(records) != 0)
		return 1;
	errno = rc;
	return (rc != 0 && unpublished(t, q->id) != 0) || archive(t, q->id) != 0 ? 1 : 0;
}
