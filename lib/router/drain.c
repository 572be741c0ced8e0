#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "router/carry.h"
#include "router/drain.h"
#include "router/held.h"
#include "router/intent.h"
#include "router/log.h"
#include "router/policy.h"
#include "router/queue.h"
#include "router/result.h"
#include "router/sight.h"

#define ENVELOPE_MAX (1u << 20)

static int
open_turn(struct amr_turn *t, struct amr_router *r, struct amr_inst *in)
{
	*t = (struct amr_turn){ .r = r, .in = in, .m = &r->conf->members[in->at], .root = -1, .outbox = -1 };
	if ((t->root = amr_root(t->m)) < 0)
		return errno == ENOENT ? 0 : -1;
	t->outbox = am_open_beneath(t->root, amr_lane(t->m, 'o'), O_RDONLY | O_DIRECTORY, 0);
	return t->outbox < 0 && errno != ENOENT ? -1 : 0;
}

static void
close_turn(struct amr_turn *t)
{
	int saved = errno;

	if (t->outbox >= 0)
		close(t->outbox);
	if (t->root >= 0)
		close(t->root);
	errno = saved;
}

/* ---- one request ---- */

static int intake(struct amr_turn *t, const char *id);

/* intent: one stands behind the answer. */
static int
conclude(struct amr_turn *t, struct amr_request *q, int intent)
{
	int rc;

	if (q->answer.hold && amr_hold(t, q) != 0)
		return -1;
	if ((rc = amr_record_and_answer(t, q, amr_result(q), intent)) < 0)
		return -1;
	amr_count(t->in, strcmp(q->answer.outcome, "accepted") == 0 ? AM_ACCEPTED :
	    strcmp(q->answer.outcome, "rejected") == 0 ? AM_REJECTED : AM_QUEUED);
	return rc == 0 ? 0 : -1;
}

/* Places what the plan says, under the protection of its intent, and answers. */
static int
deliver(struct amr_turn *t, struct amr_request *q, struct amr_plan *p, int resumed)
{
	if (!resumed && amr_intent_begin(t->r, p) != 0)
		return -1;
	if (amr_carry_out(t->r, t->in, q, p, resumed) != 0)
		return -1;
	amr_answer_placed(t->r, q, p);
	if (conclude(t, q, 1) != 0)
		return -1;
	amr_intent_end(t->r, p);
	return 0;
}

/*
 * An open intent whose request is gone or was changed. What was placed is
 * answered for, and then the request is one with an answer; if nothing was
 * placed, it is as if nothing had been decided. 1, 0, or -1.
 */
static int
settle(struct amr_turn *t, struct amr_plan *p)
{
	struct amr_request q;
	int any = amr_find_placed(t->r, p);
	jv result;

	amr_request_init(&q, p->req_id);
	snprintf(q.digest, sizeof q.digest, "%s", p->digest);
	if (any > 0) {
		amr_answer_placed(t->r, &q, p);
		result = amr_result(&q);
		if (amr_record(t, &q, result) == 0)
			amr_count(t->in, AM_ACCEPTED);
		else
			any = -1;
		jv_free(result);
	}
	if (any >= 0)
		amr_intent_end(t->r, p);
	amr_request_free(&q);
	return any;
}

static int
decide(struct amr_turn *t, struct amr_request *q, struct amr_plan *open)
{
	struct amr_plan p;
	int rc = amr_request_attach(q, t->outbox, t->r->conf);

	if (rc > 0)
		return -1;
	if (open != NULL && rc == 0)
		return deliver(t, q, open, 1);
	if (open != NULL && (rc = settle(t, open)) != 0)	/* the sidecar files were changed */
		return rc < 0 ? -1 : intake(t, q->id);
	if (q->answer.outcome == NULL && (rc = amr_decide(t->r, t->in, q, &p)) > 0) {
		rc = deliver(t, q, &p, 0);
		amr_plan_free(&p);
		return rc;
	}
	return q->answer.outcome == NULL ? -1 : conclude(t, q, 0);
}

/* A request without an answer yet. open: what was decided about it in an earlier life, or NULL. */
static int
fresh(struct amr_turn *t, struct amr_request *q, const char *file, struct amr_plan *open)
{
	size_t len;
	char *bytes = am_read_regular(t->outbox, file, AM_REQUEST_MAX, &len);
	int why = errno, judged = -1, rc;

	if (bytes == NULL && amr_is_shortage(why)) {
		errno = why;
		return -1;
	}
	if (bytes != NULL)
		judged = amr_request_judge(q, bytes, len, t->in->name);
	else
		amr_refuse(q, "rejected", "malformed_request", why == EFBIG ? "larger than 1048576 bytes" : "no readable file");
	if (open != NULL && strcmp(open->digest, q->digest) != 0) {
		if ((rc = settle(t, open)) != 0)
			return rc < 0 ? -1 : intake(t, q->id);
		open = NULL;
	}
	if (bytes == NULL && why == ENOENT)
		return 0;
	if (bytes != NULL && open == NULL && amr_names_find(&t->in->snapshot, file) != NULL) {
		amr_quarantine(t, q);
		return conclude(t, q, 0);
	}
	return judged == 0 ? decide(t, q, open) : conclude(t, q, 0);
}

/* ---- a request that has its answer ---- */

static int
again(struct amr_turn *t, const char *id, jv envelope)
{
	amr_count(t->in, AM_RESUMED);
	amr_answer(t, id, jv_object_get(jv_copy(envelope), jv_string("result")));
	return 0;
}

static int
reused(struct amr_turn *t, struct amr_request *q)
{
	amr_refuse(q, "rejected", "req_id_reused", "another request had this id");
	amr_answer(t, q->id, amr_result(q));
	amr_count(t->in, AM_REUSED);
	amr_count(t->in, AM_REJECTED);
	return 0;
}

/* Borrows envelope. */
static int
answered(struct amr_turn *t, struct amr_request *q, const char *file, jv envelope)
{
	const char *digest = am_str(envelope, "digest");
	size_t len;
	int why;

	if (digest == NULL)
		return again(t, q->id, envelope);
	q->bytes = am_read_regular(t->outbox, file, AM_REQUEST_MAX, &len);
	why = errno;
	if (q->bytes == NULL && why == ENOENT)
		return again(t, q->id, envelope);
	if (q->bytes == NULL && why != EFBIG) {
		errno = why;
		return -1;
	}
	if (q->bytes != NULL)
		amr_digest(q->bytes, len, q->digest);
	return strcmp(q->digest, digest) == 0 ? again(t, q->id, envelope) : reused(t, q);
}

/* An answer that cannot be read is put aside, and the request answered afresh. */
static int
corrupt(struct amr_turn *t, struct amr_request *q)
{
	int dir = amr_state_dir(t->r, t->in->name, "results"), rc = -1;
	char name[AM_REQ_ID_MAX + 32], aside[AM_REQ_ID_MAX + 32];

	snprintf(name, sizeof name, "%s.json", q->id);
	snprintf(aside, sizeof aside, "%s.json.corrupt", q->id);
	if (dir >= 0 && renameat(dir, name, dir, aside) == 0) {
		amr_log(AM_ERROR, ".outbound", "the stored answer %s of %s cannot be read; kept as %s", q->id, t->in->name, aside);
		amr_refuse(q, "rejected", "malformed_request", "its earlier answer is lost");
		rc = conclude(t, q, 0);
	}
	if (dir >= 0)
		close(dir);
	return rc;
}

static int
intake(struct amr_turn *t, const char *id)
{
	char path[AM_REQ_ID_MAX + 32], file[AM_REQ_ID_MAX + 16], *text;
	struct amr_request q;
	struct amr_plan open;
	size_t len;
	int rc, is_open;
	jv envelope, result;

	snprintf(path, sizeof path, "results/%s.json", id);
	snprintf(file, sizeof file, "req-%s.json", id);
	amr_request_init(&q, id);
	is_open = amr_intent_find(t->r, t->in->name, id, 0, &open);
	text = amr_state_read(t->r, t->in->name, path, ENVELOPE_MAX, &len);
	if (text != NULL) {
		envelope = am_json_parse(text, len);
		result = am_get(envelope, "result", JV_KIND_OBJECT);
		rc = jv_is_valid(result) ? answered(t, &q, file, envelope) : corrupt(t, &q);
		jv_free(result);
		jv_free(envelope);
		free(text);
		if (is_open && rc == 0)
			amr_intent_end(t->r, &open);
	} else if (errno == ENOENT) {
		rc = fresh(t, &q, file, is_open ? &open : NULL);
	} else {
		rc = amr_is_shortage(errno) ? -1 : corrupt(t, &q);
	}
	if (is_open)
		amr_plan_free(&open);
	amr_request_free(&q);
	return rc;
}

/* ---- the turn ---- */

/* What an event told of may be anything by now. */
static int
is_request(struct amr_turn *t, const char *id)
{
	char file[AM_REQ_ID_MAX + 16];
	struct stat st;

	snprintf(file, sizeof file, "req-%s.json", id);
	if (fstatat(t->outbox, file, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0;
	if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		amr_count(t->in, AM_SEEN);
	if (S_ISLNK(st.st_mode)) {
		amr_count(t->in, AM_BAD_NAME);
		amr_log(AM_WARNING, ".outbound", "%s: %s is a symbolic link and is left alone", t->in->name, file);
	}
	return S_ISREG(st.st_mode);
}

static void
one(struct amr_turn *t, const char *id, int by_event)
{
	if (!is_request(t, id))
		return;
	amr_count(t->in, by_event ? AM_BY_EVENT : AM_BY_SCAN);
	errno = 0;
	if (intake(t, id) == 0) {
		amr_count(t->in, AM_DRAINED);
		if (strcmp(t->in->told_id, id) == 0)
			t->in->told_id[0] = '\0';
		return;
	}
	amr_count(t->in, AM_ERRORED);
	if (strcmp(t->in->told_id, id) != 0 || t->in->told_errno != errno) {
		amr_log(AM_WARNING, ".outbound", "request %s of %s must wait: %s", id, t->in->name, strerror(errno));
		snprintf(t->in->told_id, sizeof t->in->told_id, "%s", id);
		t->in->told_errno = errno;
	}
}

/* Requests that were in hand when the last run ended, also those whose file is gone. */
static void
finish_open(struct amr_turn *t)
{
	jv ids = amr_intents_of(t->r, t->in->name);
	int n = jv_array_length(jv_copy(ids));

	for (int i = 0; i < n; i++) {
		jv id = jv_array_get(jv_copy(ids), i);

		if (intake(t, jv_string_value(id)) != 0)
			amr_count(t->in, AM_ERRORED);
		jv_free(id);
	}
	jv_free(ids);
}

static int
turn(struct amr_turn *t, long budget_ms, const volatile int *stop)
{
	struct amr_inst *in = t->in;
	long long until = am_now() + budget_ms;

	if (amr_sight(t) != 0)
		return -1;
	if (t->outbox < 0) {
		amr_queue_empty(in);
		in->rescan = 0;
		return 0;
	}
	if (t->r->intents_saved > 0)
		finish_open(t);
	if (in->head == in->queue.n && in->rescan && amr_queue_scan(t) != 0)
		return -1;
	while (in->head < in->queue.n && !*stop) {
		const char *id = in->queue.text + in->queue.at[in->head++];

		one(t, id, !in->scanned || strcmp(id + strlen(id) + 1, "event") == 0);
		if (budget_ms > 0 && am_now() >= until)
			break;
	}
	if (in->head == in->queue.n)
		amr_queue_empty(in);
	return 0;
}

int
amr_take_turn(struct amr_router *r, struct amr_inst *in, long budget_ms, const volatile int *stop)
{
	struct amr_turn t;
	int rc = open_turn(&t, r, in);

	r->turns++;
	if (rc == 0)
		rc = turn(&t, budget_ms, stop);
	if (rc != 0) {
		amr_count(in, AM_INSTANCE_ERRORED);
		if (in->told_drain != errno)
			amr_log(AM_WARNING, ".outbound", "%s cannot be drained: %s", in->name, strerror(errno));
		in->told_drain = errno;
		in->rescan = 0;		/* the next poll tries again */
		amr_queue_empty(in);
	} else {
		in->told_drain = 0;
	}
	close_turn(&t);
	return rc;
}
