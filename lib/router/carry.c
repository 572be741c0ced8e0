#include "router/carry.h"
#include "router/expose.h"
#include "router/held.h"

static jv
placed_line(const struct amr_plan *p)
{
	jv d = am_set_str(jv_object(), "event", "peer_notice_placed");

	return am_set_str(d, "reply_basis", p->basis);
}

static void
begin_line(const struct amr_router *r, struct amr_letter *l, struct amr_inst *from, const struct amr_plan *p)
{
	l->exposure = amr_exposure(r, from);
	l->audit = placed_line(p);
}

static void
end_line(struct amr_letter *l)
{
	jv_free(l->exposure);
	jv_free(l->audit);
	l->exposure = l->audit = jv_invalid();
}

/* A loss of power may have kept the notice and lost the line. */
static void
complete_audit(const struct amr_router *r, struct amr_letter *l, struct amr_inst *from, struct amr_inst *to,
    const struct amr_plan *p, struct amr_target *t)
{
	if (amr_audit_tells(r, to->name, t->nid))
		return;
	begin_line(r, l, from, p);
	if (amr_place_audit(r, l, to, 1, t->nid, p->ts) != 0)
		t->placed = AM_DOUBT;
	end_line(l);
}

int
amr_carry_out(struct amr_router *r, struct amr_inst *from, const struct amr_request *q, struct amr_plan *p, int resumed)
{
	jv subject = am_get(q->draft, "subject", JV_KIND_STRING), body = am_get(q->draft, "body_text", JV_KIND_STRING);
	struct amr_letter l = { .from = from->name, .subject = subject, .body = body, .blobs = q->blobs,
	    .n_blobs = q->n_blobs, .req_id = q->id, .exposure = jv_invalid(), .audit = jv_invalid() };
	int doubt = 0, reached = 0;

	if (jv_get_kind(p->in_reply_to) == JV_KIND_STRING)
		l.in_reply_to = jv_string_value(p->in_reply_to);
	for (size_t i = 0; i < p->n; i++) {
		struct amr_target *t = &p->v[i];
		struct amr_inst *to = amr_inst_find(r, t->to);
		struct amr_inbox_mark mark;

		t->placed = AM_FAILED;
		if (to == NULL || to->at < 0 || (t->peer && !amr_conf_has_peer(r->conf, (size_t)to->at)))
			continue;
		if (resumed && (t->placed = (int)amr_placed_already(r, to, t->peer, t->nid)) != AM_FAILED) {
			if (t->peer && !t->from_router && t->placed == AM_PLACED)
				complete_audit(r, &l, from, to, p, t);
			doubt |= t->placed == AM_DOUBT;
			reached |= t->placed == AM_PLACED;
			continue;
		}
		if (t->from_router) {
			if (p->what == AM_RELEASE && !reached)
				continue;	/* there is nothing to tell */
			t->placed = (int)amr_place_decision(r, from, q, p, t);
		} else if (t->peer) {
			begin_line(r, &l, from, p);
			t->placed = (int)amr_place(r, &l, to, 1, t->nid, p->ts);
			end_line(&l);
		} else {
			mark = amr_inbox_before(r, to);
			t->placed = (int)amr_place(r, &l, to, 0, t->nid, p->ts);
			amr_inbox_after(r, to, &mark);
		}
		doubt |= t->placed == AM_DOUBT;
		reached |= t->placed == AM_PLACED;
	}
	jv_free(subject);
	jv_free(body);
	return doubt ? -1 : 0;
}

int
amr_find_placed(const struct amr_router *r, struct amr_plan *p)
{
	int any = 0, doubt = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct amr_target *t = &p->v[i];
		struct amr_inst *to = amr_inst_find(r, t->to);

		t->placed = to == NULL || to->at < 0 ? AM_FAILED : (int)amr_placed_already(r, to, t->peer, t->nid);
		if (t->placed == AM_FAILED && to != NULL && to->at >= 0)
			amr_unplace(r, to, t->peer, t->nid);
		any |= t->placed == AM_PLACED;
		doubt |= t->placed == AM_DOUBT;
	}
	return doubt ? -1 : any;
}
