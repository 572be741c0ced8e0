#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "id.h"
#include "router/log.h"
#include "router/policy.h"

#define KEY_MAX 128
#define LEDGER_MAX 65536

/* ---- recipients ---- */

static jv
add_recipients(const struct amr_conf *c, jv found, jv *seen, jv draft, const char *key)
{
	jv list = am_get(draft, key, JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

	for (int i = 0; i < n && jv_is_valid(found); i++) {
		jv address = jv_array_get(jv_copy(list), i);
		long at = amr_conf_address(c, jv_string_value(address), (size_t)jv_string_length_bytes(jv_copy(address)));

		jv_free(address);
		if (at < 0) {
			jv_free(found);
			found = jv_invalid();
		} else if (!am_has(*seen, c->members[at].name)) {
			*seen = am_set(*seen, c->members[at].name, jv_true());
			found = jv_array_append(found, jv_number((double)at));
		}
	}
	jv_free(list);
	return found;
}

jv
amr_recipients(const struct amr_conf *c, jv draft)
{
	jv seen = jv_object(), found = add_recipients(c, jv_array(), &seen, draft, "to");

	if (jv_is_valid(found))
		found = add_recipients(c, found, &seen, draft, "cc");
	jv_free(seen);
	return found;
}

static size_t
nth(jv list, int i)
{
	jv v = jv_array_get(jv_copy(list), i);
	size_t n = (size_t)jv_number_value(v);

	jv_free(v);
	return n;
}

/* ---- answers ---- */

static jv
address_of(const struct amr_router *r, const char *name)
{
	char address[AM_ADDRESS_MAX];

	return jv_string(amr_conf_address_of(r->conf, name, address));
}

/* A refusal on the delegation lane is audited in the sender's log. */
static void
audit_refusal(const struct amr_router *r, const struct amr_inst *from, const struct amr_request *q, jv names, const char *key)
{
	jv line = am_set_str(jv_object(), "event", "peer_refused");
	char ts[21];

	am_timestamp(time(NULL), ts);
	line = am_set_str(line, "req_id", q->id);
	line = am_set_str(line, "reason_code", q->answer.reason);
	line = am_set(line, "recipients", names);
	line = am_set_str(line, "in_reply_to", key);
	if (amr_audit(r, from->name, ts, line) != 0)
		amr_log(AM_WARNING, ".outbound", "audit of %s: %s", from->name, strerror(errno));
}

static int
refuse(struct amr_request *q, const char *reason, const char *detail)
{
	amr_refuse(q, "rejected", reason, detail);
	return 0;
}

void
amr_answer_placed(const struct amr_router *r, struct amr_request *q, const struct amr_plan *p)
{
	jv reached = jv_array(), missed = jv_string("not delivered:");
	size_t placed = 0, wanted = 0;
	const char *nid = NULL;
	int peer = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct amr_target *t = &p->v[i];

		if (t->from_router)
			continue;
		wanted++;
		peer = t->peer;
		if (t->placed == AM_PLACED) {
			placed++;
			nid = t->nid;
			reached = jv_array_append(reached, address_of(r, t->to));
		} else {
			missed = jv_string_append_str(jv_string_append_str(missed, " "), t->to);
		}
	}
	q->answer.outcome = placed > 0 ? "accepted" : "queued_for_human";
	q->answer.reason = placed == 0 ? "delivery_failed" : placed < wanted ? "partial_delivery" :
	    peer ? "peer_routed" : p->what == AM_REPLY ? "recipient_bound" : "allowlisted";
	jv_free(q->answer.detail);
	q->answer.detail = placed < wanted ? jv_copy(missed) : jv_null();
	jv_free(q->answer.recipients);
	q->answer.recipients = reached;
	jv_free(q->answer.message_id);
	q->answer.message_id = placed == 1 && wanted == 1 ? jv_string(nid) : jv_null();
	if (placed > 0 && q->n_blobs > 0) {
		jv list = jv_array();

		for (size_t i = 0; i < q->n_blobs; i++) {
			jv d = am_set(jv_object(), "index", jv_number((double)i));

			d = am_set_str(d, "outcome", "accepted");
			list = jv_array_append(list, am_set(d, "detail", jv_null()));
		}
		jv_free(q->answer.attachments);
		q->answer.attachments = list;
	}
	jv_free(missed);
}

/* ---- a new message ---- */

static int
cold(const struct amr_router *r, const struct amr_inst *from, struct amr_request *q, struct amr_plan *p)
{
	const struct amr_conf *c = r->conf;
	jv to = amr_recipients(c, q->draft), cc = am_get(q->draft, "cc", JV_KIND_ARRAY), names;
	int n, self = 0, edge = 0, mail = 1, copied = jv_is_valid(cc) && jv_array_length(jv_copy(cc)) > 0, rc = 0;

	jv_free(cc);
	if (!jv_is_valid(to))
		return refuse(q, "recipient_unknown", "a recipient is no member of this fleet");
	n = jv_array_length(jv_copy(to));
	for (int i = 0; i < n; i++) {
		size_t at = nth(to, i);

		self |= at == (size_t)from->at;
		edge |= amr_conf_may_task(c, (size_t)from->at, at);
		mail &= amr_conf_may_mail(c, (size_t)from->at, at);
	}
	if (n == 0) {
		refuse(q, "malformed_request", "no recipient");
	} else if (self) {
		refuse(q, "self_send", "the sender is a recipient");
	} else if (edge && (n > 1 || copied)) {
		refuse(q, "peer_single_recipient", "a task has one recipient and no copies");
		names = jv_array();
		for (int i = 0; i < n; i++)
			names = jv_array_append(names, jv_string(c->members[nth(to, i)].name));
		audit_refusal(r, from, q, names, NULL);
	} else if (!edge && !mail) {
		amr_refuse(q, "queued_for_human", "recipient_not_allowlisted", NULL);
		q->answer.hold = 1;
	} else {
		amr_plan_init(p, from->name, q->id, q->digest, edge ? AM_TASK : AM_MAIL);
		for (int i = 0; i < n; i++)
			amr_plan_add(p, c->members[nth(to, i)].name, edge, 0);
		rc = 1;
	}
	jv_free(to);
	return rc;
}

/* ---- a reply ---- */

static int
is_key(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] == '\0' || strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", s[i]) == NULL)
			return 0;
	return len > 0 && len <= KEY_MAX;
}

/* Owns the ledger record of what is replied to; invalid when there is none. errno is 0 then, or a shortage. */
static jv
ledger(const struct amr_router *r, const char *replier, jv key)
{
	char path[KEY_MAX + 64], *text;
	size_t len;
	jv v;

	errno = 0;
	if (!is_key(jv_string_value(key), (size_t)jv_string_length_bytes(jv_copy(key))))
		return jv_invalid();
	snprintf(path, sizeof path, "delivered/notice-%s.json", jv_string_value(key));
	if ((text = amr_state_read(r, replier, path, LEDGER_MAX, &len)) == NULL) {
		if (!amr_is_shortage(errno))
			errno = 0;
		return jv_invalid();
	}
	v = am_json_parse(text, len);
	free(text);
	errno = 0;
	return v;
}

/* The text of the log only: how many recipients the agent named in vain. */
static void
tell_discarded(const struct amr_router *r, const struct amr_inst *from, const struct amr_request *q, const char *bound)
{
	static const char *const keys[] = { "to", "cc" };
	int others = 0;

	for (int k = 0; k < 2; k++) {
		jv list = am_get(q->draft, keys[k], JV_KIND_ARRAY);
		int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

		for (int i = 0; i < n; i++) {
			jv a = jv_array_get(jv_copy(list), i), b = address_of(r, bound);

			others += strcasecmp(jv_string_value(a), jv_string_value(b)) != 0;
			jv_free(a);
			jv_free(b);
		}
		jv_free(list);
	}
	amr_log(others > 0 ? AM_WARNING : AM_DEBUG, ".outbound", "reply %s of %s: bound to its sender, %d other recipients discarded",
	    q->id, from->name, others);
}

static int
reply(const struct amr_router *r, const struct amr_inst *from, struct amr_request *q, jv key, struct amr_plan *p)
{
	const struct amr_conf *c = r->conf;
	jv record = ledger(r, from->name, key);
	int shortage = errno;
	const char *sender = am_str(record, "from_instance"), *tree = am_str(record, "tree"), *ts = am_str(record, "ts");
	int peer = tree != NULL && strcmp(tree, "peer") == 0, edge, rc = 0;
	long to = sender == NULL ? -1 : amr_conf_find(c, sender);
	time_t when = ts == NULL ? -1 : am_parse_timestamp(ts);

	if (shortage != 0) {
		errno = shortage;
		rc = -1;
	} else if (sender == NULL || *sender == '\0') {
		refuse(q, "unresolved_reply", "the key names no message that was delivered here");
	} else if (strcmp(sender, from->name) == 0) {
		refuse(q, "self_send", "the message replied to is one's own");
	} else if (to < 0 || (peer && !amr_conf_has_peer(c, (size_t)to))) {
		refuse(q, "unresolved_reply", "the sender of that message is no longer there");
	} else {
		edge = amr_conf_may_task(c, (size_t)from->at, (size_t)to);
		if (peer && !edge && (when < 0 || time(NULL) - when > c->reply_window)) {
			refuse(q, "peer_reply_window_expired", "the time to reply to that task is over");
			audit_refusal(r, from, q, JV_ARRAY(jv_string(sender)), jv_string_value(key));
		} else {
			amr_plan_init(p, from->name, q->id, q->digest, AM_REPLY);
			p->basis = !peer ? NULL : edge ? "edge" : "reply_window";
			jv_free(p->in_reply_to);
			p->in_reply_to = am_get(record, "message_id", JV_KIND_STRING);
			if (!jv_is_valid(p->in_reply_to))
				p->in_reply_to = jv_copy(key);
			amr_plan_add(p, sender, peer, 0);
			tell_discarded(r, from, q, sender);
			rc = 1;
		}
	}
	jv_free(record);
	return rc;
}

int
amr_decide(const struct amr_router *r, const struct amr_inst *from, struct amr_request *q, struct amr_plan *p)
{
	jv key = amr_request_key(q);
	int rc = jv_is_valid(key) ? reply(r, from, q, key, p) : cold(r, from, q, p);

	jv_free(key);
	return rc;
}
