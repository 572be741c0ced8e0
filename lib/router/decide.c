/* What the operator decided about held requests (see held.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "id.h"
#include "router/carry.h"
#include "router/expose.h"
#include "router/held.h"
#include "router/log.h"
#include "router/policy.h"

/* One decision in hand. */
struct decision {
	char instance[AM_REQ_ID_MAX + 1], req_id[AM_REQ_ID_MAX + 1], digest[65], as[8];
	enum amr_what what;
	struct amr_inst *in;
	char why[256];		/* it is refused */
};

void
amr_decision_name(const char *instance, const char *req_id, char *out, size_t size)
{
	snprintf(out, size, "%s~%s.json", instance, req_id);
}

static int
refuse(struct decision *d, const char *why)
{
	snprintf(d->why, sizeof d->why, "%s", why);
	return 0;
}

/* ---- the notice to the sender ---- */

static jv
reached(const struct amr_router *r, const struct amr_plan *p)
{
	char address[AM_ADDRESS_MAX];
	jv list = jv_array();

	for (size_t i = 0; i < p->n; i++)
		if (!p->v[i].from_router && p->v[i].placed == AM_PLACED)
			list = jv_array_append(list, jv_string(amr_conf_address_of(r->conf, p->v[i].to, address)));
	return list;
}

enum amr_placed
amr_place_decision(const struct amr_router *r, struct amr_inst *sender, const struct amr_request *q, const struct amr_plan *p,
    const struct amr_target *t)
{
	const char *done = p->what == AM_RELEASE ? "released" : "denied";
	jv to = reached(r, p), names = jv_string(""), subject, body, audit;
	struct amr_letter l = { .req_id = "", .exposure = jv_invalid() };
	struct amr_inbox_mark mark;
	enum amr_placed placed;
	int n = jv_array_length(jv_copy(to));

	for (int i = 0; i < n; i++) {
		jv a = jv_array_get(jv_copy(to), i);

		names = jv_string_append_str(jv_string_append_str(names, " "), jv_string_value(a));
		jv_free(a);
	}
	subject = jv_string_fmt("Held request %s: %s", q->id, done);
	body = p->what == AM_RELEASE ?
	    jv_string_fmt("The operator released your request.\nrequest: %s\ndelivered to:%s\n", q->id, jv_string_value(names)) :
	    jv_string_fmt("The operator denied your request. It was not delivered.\nrequest: %s\n", q->id);
	audit = am_set_str(jv_object(), "event", "decision_notice_sent");
	audit = am_set_str(audit, "decision", done);
	audit = am_set_str(audit, "decided_req_id", q->id);
	l.subject = subject;
	l.body = body;
	l.audit = audit;
	mark = amr_inbox_before(r, sender);
	placed = amr_place(r, &l, sender, 0, t->nid, p->ts);
	amr_inbox_after(r, sender, &mark);
	jv_free(to);
	jv_free(names);
	jv_free(subject);
	jv_free(body);
	jv_free(audit);
	return placed;
}

/* ---- the plan ---- */

/* 1 with a plan, 0 refused, -1 not now. */
static int
make_plan(struct amr_router *r, struct decision *d, struct amr_request *q, struct amr_plan *p)
{
	const struct amr_conf *c = r->conf;
	int task = strcmp(d->as, "task") == 0, n;
	jv to;

	if (d->what == AM_RELEASE && !jv_is_valid(to = amr_recipients(c, q->draft)))
		return refuse(d, "a recipient is no member of this fleet");
	amr_plan_init(p, d->instance, d->req_id, q->digest, d->what);
	n = d->what == AM_RELEASE ? jv_array_length(jv_copy(to)) : 0;
	for (int i = 0; i < n; i++) {
		jv v = jv_array_get(jv_copy(to), i);
		size_t at = (size_t)jv_number_value(v);

		jv_free(v);
		if (at == (size_t)d->in->at)
			refuse(d, "the sender is a recipient");
		else if (task && (n > 1 || !amr_conf_has_peer(c, at) || !amr_conf_has_peer(c, (size_t)d->in->at)))
			refuse(d, n > 1 ? "a task has one recipient; release it as mail" : "there is no delegation lane for it");
		amr_plan_add(p, c->members[at].name, task, 0);
	}
	if (d->what == AM_RELEASE)
		jv_free(to);
	if (c->domain != NULL)		/* the router has an address to write from */
		amr_plan_add(p, d->instance, 0, 1);
	if (d->why[0] != '\0')
		amr_plan_free(p);
	return d->why[0] == '\0';
}

/* The held bytes and their sidecar files: 1, 0 refused, -1 not now. */
static int
load(struct amr_router *r, struct decision *d, struct amr_request *q)
{
	char path[AM_REQ_ID_MAX + 32], *bytes;
	size_t len;
	int held, rc;

	snprintf(path, sizeof path, "held/req-%s.json", d->req_id);
	if ((bytes = amr_state_read(r, d->instance, path, AM_REQUEST_MAX, &len)) == NULL)
		return amr_is_shortage(errno) ? -1 : refuse(d, "no such request is held");
	rc = amr_request_judge(q, bytes, len, d->instance);
	if (strcmp(q->digest, d->digest) != 0)
		return refuse(d, "the held bytes are not those that were decided about");
	if (d->what == AM_DENY)
		return 1;
	if (rc != 0)
		return refuse(d, "the held bytes are no sound request");
	if ((held = amr_state_dir(r, d->instance, "held")) < 0)
		return -1;
	rc = amr_request_attach(q, held, r->conf);
	close(held);
	return rc > 0 ? -1 : rc == 0 ? 1 : refuse(d, "its attachments are not kept, or exceed the limits; let the sender submit it again");
}

/* ---- carrying it out ---- */

static jv
record(const struct amr_router *r, const struct decision *d, const struct amr_plan *p)
{
	jv doc = am_set(jv_object(), "schema", jv_number(1)), ids = jv_array();

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].placed == AM_PLACED)
			ids = jv_array_append(ids, jv_string(p->v[i].nid));
	doc = am_set_str(doc, "decision", d->what == AM_RELEASE ? "release" : "deny");
	doc = am_set_str(doc, "as", d->what == AM_RELEASE ? d->as : NULL);
	doc = am_set_str(doc, "req_id", d->req_id);
	doc = am_set_str(doc, "digest", p->digest);
	doc = am_set_str(doc, "ts", p->ts);
	doc = am_set(doc, "recipients", reached(r, p));
	return am_set(doc, "notice_ids", ids);
}

static void
remove_held(struct amr_router *r, const struct decision *d)
{
	int held = amr_state_dir(r, d->instance, "held");
	char name[AM_REQ_ID_MAX + 32];

	if (held < 0)
		return;
	snprintf(name, sizeof name, "req-%s.attachments", d->req_id);
	amr_remove_tree(held, name);
	snprintf(name, sizeof name, "req-%s.json", d->req_id);
	unlinkat(held, name, 0);
	close(held);
}

static int
finish(struct amr_router *r, struct decision *d, const struct amr_plan *p)
{
	char name[AM_REQ_ID_MAX + 16], ts[21];
	jv doc = record(r, d, p), line = am_set_str(jv_copy(doc), "event", d->what == AM_RELEASE ? "held_released" : "held_denied");

	am_timestamp(time(NULL), ts);
	snprintf(name, sizeof name, "req-%s.json", d->req_id);
	if (amr_audit(r, d->instance, ts, line) != 0 || amr_state_publish(r, d->instance, "decided", name, jv_copy(doc)) != 0) {
		jv_free(doc);
		return -1;
	}
	jv_free(doc);
	remove_held(r, d);
	amr_count(d->in, d->what == AM_RELEASE ? AM_RELEASED : AM_DENIED);
	amr_log(AM_INFO, ".outbound", "held request %s of %s: %s by the operator", d->req_id, d->instance,
	    d->what == AM_RELEASE ? "released" : "denied");
	amr_intent_end(r, p);
	return 1;
}

static int
any_reached(const struct amr_plan *p)
{
	int any = 0;

	for (size_t i = 0; i < p->n; i++)
		any |= !p->v[i].from_router && p->v[i].placed == AM_PLACED;
	return any;
}

/* Begun in an earlier life, and what was held is gone since: done as far as it came. */
static int
settle(struct amr_router *r, struct decision *d, struct amr_plan *p)
{
	int any = amr_find_placed(r, p);

	if (any > 0 && (d->what == AM_DENY || any_reached(p)))
		return finish(r, d, p);
	if (any >= 0)
		amr_intent_end(r, p);
	return any < 0 ? -1 : 0;
}

/* 1 done, 0 refused, -1 not now. */
static int
carry_out(struct amr_router *r, struct decision *d)
{
	struct amr_request q;
	struct amr_plan p;
	int resumed = amr_intent_find(r, d->instance, d->req_id, 1, &p), rc;

	amr_request_init(&q, d->req_id);
	if ((rc = load(r, d, &q)) == 1 && !resumed && (rc = make_plan(r, d, &q, &p)) == 1 && amr_intent_begin(r, &p) != 0) {
		amr_plan_free(&p);
		rc = -1;
	}
	if (rc == 1) {
		if (amr_carry_out(r, d->in, &q, &p, resumed) != 0)
			rc = -1;
		else if (d->what == AM_RELEASE && !any_reached(&p)) {
			amr_intent_end(r, &p);
			rc = refuse(d, "it could not be delivered; the log says why");
		} else
			rc = finish(r, d, &p);
		amr_plan_free(&p);
	} else if (resumed) {
		if (rc == 0)
			rc = settle(r, d, &p);
		amr_plan_free(&p);
	}
	amr_request_free(&q);
	return rc;
}

static int
decided_before(const struct amr_router *r, const struct decision *d)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof path, "%s/decided/req-%s.json", d->instance, d->req_id);
	return fstatat(r->state, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int
decide(struct amr_router *r, struct decision *d)
{
	d->in = amr_inst_find(r, d->instance);
	if (d->in == NULL || d->in->at < 0)
		return refuse(d, "its sender is no member of this fleet now");
	if (decided_before(r, d)) {
		remove_held(r, d);	/* a crash may have left it, and the intent */
		amr_intent_forget(r, d->instance, d->req_id, 1);
		return refuse(d, "it was decided before");
	}
	return carry_out(r, d);
}

/* ---- the decisions that wait ---- */

static int
copy_member(jv doc, const char *key, char *out, size_t size)
{
	const char *s = am_str(doc, key);

	return s != NULL && strlcpy(out, s, size) < size ? 0 : -1;
}

static int
parse(const char *text, size_t len, struct decision *d)
{
	jv doc = am_json_parse(text, len);
	char what[16] = "", file[128], id[AM_REQ_ID_MAX + 1];
	int rc = copy_member(doc, "instance", d->instance, sizeof d->instance) |
	    copy_member(doc, "req_id", d->req_id, sizeof d->req_id) | copy_member(doc, "digest", d->digest, sizeof d->digest) |
	    copy_member(doc, "decision", what, sizeof what);

	if (strcmp(what, "release") == 0)
		rc |= copy_member(doc, "as", d->as, sizeof d->as) |
		    (strcmp(d->as, "task") != 0 && strcmp(d->as, "mail") != 0 ? -1 : 0);
	else if (strcmp(what, "deny") != 0)
		rc = -1;
	d->what = strcmp(what, "deny") == 0 ? AM_DENY : AM_RELEASE;
	jv_free(doc);
	snprintf(file, sizeof file, "req-%s.json", d->req_id);
	return rc == 0 && amr_is_instance_name(d->instance, strlen(d->instance)) && amr_is_request_name(file, id) ? 0 : -1;
}

static void
answer(struct amr_router *r, const char *name, const struct decision *d, int done)
{
	int dir = amr_dir(r->state, AM_DECISIONS "/answers");
	jv doc = am_set(jv_object(), "done", done ? jv_true() : jv_false());

	doc = am_set_str(doc, "why", done ? NULL : d->why);
	if (dir < 0 || amr_publish_json(dir, name, jv_copy(doc), 0600) != 0)
		amr_log(AM_WARNING, "", "answer to the decision %s: %s", am_quotes(name), strerror(errno));
	jv_free(doc);
	if (dir >= 0)
		close(dir);
}

static void
one_file(struct amr_router *r, int dir, const char *name)
{
	struct decision d = { .why = "" };
	size_t len;
	char *text = am_read_regular(dir, name, AM_DECISION_MAX, &len);
	int rc = text == NULL ? (amr_is_shortage(errno) ? -1 : refuse(&d, "the decision cannot be read")) :
	    parse(text, len, &d) != 0 ? refuse(&d, "it is no sound decision") : decide(r, &d);

	free(text);
	if (rc < 0) {
		amr_log(AM_WARNING, "", "the decision %s must wait: %s", am_quotes(name), strerror(errno));
		return;
	}
	if (rc == 0)
		amr_log(AM_WARNING, "", "the decision %s is refused: %s", am_quotes(name), d.why);
	answer(r, name, &d, rc);
	unlinkat(dir, name, 0);
}

void
amr_take_decisions(struct amr_router *r)
{
	int fd = am_open_beneath(r->state, AM_DECISIONS, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct amr_names names = { 0 };
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (strchr(e->d_name, '~') != NULL && e->d_name[0] != '.')
			amr_names_add(&names, e->d_name, NULL);
	amr_names_sort(&names);
	r->turns++;
	for (size_t i = 0; i < names.n; i++)
		one_file(r, fd, names.text + names.at[i]);
	amr_names_free(&names);
	closedir(d);
}
