#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "router/intent.h"
#include "router/log.h"

#define NAME ".intent"
#define INTENT_MAX (16u << 20)

static const char *const whats[] = { "task", "mail", "reply", "release", "deny" };

void
amr_plan_init(struct amr_plan *p, const char *instance, const char *req_id, const char *digest, enum amr_what what)
{
	memset(p, 0, sizeof *p);
	snprintf(p->instance, sizeof p->instance, "%s", instance);
	snprintf(p->req_id, sizeof p->req_id, "%s", req_id);
	snprintf(p->digest, sizeof p->digest, "%s", digest);
	am_timestamp(time(NULL), p->ts);
	p->what = what;
	p->in_reply_to = jv_null();
}

static struct amr_target *
one_more(struct amr_plan *p)
{
	if ((p->v = realloc(p->v, (p->n + 1) * sizeof *p->v)) == NULL)
		abort();
	memset(&p->v[p->n], 0, sizeof *p->v);
	return &p->v[p->n++];
}

void
amr_plan_add(struct amr_plan *p, const char *to, int peer, int from_router)
{
	struct amr_target *t = one_more(p);

	snprintf(t->to, sizeof t->to, "%s", to);
	t->peer = peer;
	t->from_router = from_router;
	am_random_hex(t->nid, AM_NOTICE_ID / 2);
}

void
amr_plan_free(struct amr_plan *p)
{
	jv_free(p->in_reply_to);
	free(p->v);
}

/* ---- as JSON ---- */

static jv
to_json(const struct amr_plan *p)
{
	jv d = am_set_str(jv_object(), "instance", p->instance), list = jv_array();

	d = am_set_str(d, "req_id", p->req_id);
	d = am_set_str(d, "digest", p->digest);
	d = am_set_str(d, "ts", p->ts);
	d = am_set_str(d, "what", whats[p->what]);
	d = am_set_str(d, "basis", p->basis);
	d = am_set(d, "in_reply_to", jv_copy(p->in_reply_to));
	for (size_t i = 0; i < p->n; i++) {
		jv t = am_set_str(jv_object(), "to", p->v[i].to);

		t = am_set(t, "peer", p->v[i].peer ? jv_true() : jv_false());
		t = am_set(t, "from_router", p->v[i].from_router ? jv_true() : jv_false());
		list = jv_array_append(list, am_set_str(t, "notice_id", p->v[i].nid));
	}
	return am_set(d, "targets", list);
}

static int
is_true(jv d, const char *key)
{
	jv v = am_get(d, key, JV_KIND_TRUE);
	int yes = jv_is_valid(v);

	jv_free(v);
	return yes;
}

static void
from_json(jv d, struct amr_plan *p)
{
	const char *basis = am_str(d, "basis"), *what = am_str(d, "what"), *ts = am_str(d, "ts"), *s;
	jv list = am_get(d, "targets", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

	s = am_str(d, "digest");
	amr_plan_init(p, am_str(d, "instance"), am_str(d, "req_id"), s != NULL ? s : "", AM_TASK);
	snprintf(p->ts, sizeof p->ts, "%s", ts != NULL ? ts : "");
	for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++)
		if (what != NULL && strcmp(what, whats[i]) == 0)
			p->what = (enum amr_what)i;
	if (basis != NULL)
		p->basis = strcmp(basis, "edge") == 0 ? "edge" : "reply_window";
	p->in_reply_to = jv_object_get(jv_copy(d), jv_string("in_reply_to"));
	for (int i = 0; i < n; i++) {
		jv t = jv_array_get(jv_copy(list), i);
		struct amr_target *out = one_more(p);

		if ((s = am_str(t, "to")) != NULL)
			snprintf(out->to, sizeof out->to, "%s", s);
		if ((s = am_str(t, "notice_id")) != NULL)
			snprintf(out->nid, sizeof out->nid, "%s", s);
		out->peer = is_true(t, "peer");
		out->from_router = is_true(t, "from_router");
		jv_free(t);
	}
	jv_free(list);
}

/* ---- on disk ---- */

static int
open_file(struct amr_router *r)
{
	if (r->intent_fd < 0)
		r->intent_fd = am_open_beneath(r->state, NAME, O_RDWR | O_CREAT, 0600);
	return r->intent_fd;
}

/* Also over what a failed attempt left, which is then cut off. */
static int
overwrite(struct amr_router *r, const char *text, size_t len)
{
	size_t before = r->intent_len;

	r->intent_len = SIZE_MAX;
	if (open_file(r) < 0 || pwrite(r->intent_fd, text, len, 0) != (ssize_t)len ||
	    (before > len && ftruncate(r->intent_fd, (off_t)len) != 0))
		return -1;
	r->intent_len = len;
	return 0;
}

/*
 * A file that was empty may be written in place: cut short it is as good as
 * empty, and the first placement flushes it with its own files. Otherwise it
 * holds what must not be lost, and is replaced whole.
 */
static int
save(struct amr_router *r)
{
	char sum[65], *json;
	size_t len;
	jv text;
	int rc;

	if (jv_array_length(jv_copy(r->intents)) == 0) {
		if (open_file(r) < 0 || ftruncate(r->intent_fd, 0) != 0)
			return -1;
		r->intents_saved = 0;
		r->intent_len = 0;
		return 0;
	}
	json = am_json_text(r->intents, AM_SORTED, &len);
	amr_digest(json, len, sum);
	text = jv_string_fmt("%s\n%s\n", sum, json);
	free(json);
	len = (size_t)jv_string_length_bytes(jv_copy(text));
	if (r->intents_saved == 0) {
		rc = overwrite(r, jv_string_value(text), len);
	} else {
		rc = am_publish(r->state, NAME, jv_string_value(text), len, 0600);
		if (r->intent_fd >= 0)
			close(r->intent_fd);
		r->intent_fd = -1;
	}
	if (rc == 0)
		r->intents_saved = jv_array_length(jv_copy(r->intents));
	jv_free(text);
	return rc;
}

int
amr_intents_load(struct amr_router *r)
{
	char sum[65], *json;
	size_t len = 0, n;
	char *text = am_read_regular(r->state, NAME, INTENT_MAX, &len);

	r->intents = jv_array();
	r->intent_fd = -1;
	r->intent_len = SIZE_MAX;	/* not known */
	if (text == NULL)
		return errno == ENOENT ? 0 : -1;
	if (len < 66)
		goto out;
	json = text + 65;
	text[64] = '\0';
	if ((n = strlen(json)) > 0 && json[n - 1] == '\n')
		json[--n] = '\0';
	amr_digest(json, n, sum);
	if (strcmp(sum, text) == 0) {
		jv v = am_json_parse(json, n);

		if (jv_get_kind(v) == JV_KIND_ARRAY) {
			jv_free(r->intents);
			r->intents = v;
		} else {
			jv_free(v);
		}
	}
	r->intents_saved = jv_array_length(jv_copy(r->intents));
	if (r->intents_saved > 0)
		amr_log(AM_INFO, "", "%d requests were in hand when the last run ended", r->intents_saved);
out:
	free(text);
	return 0;
}

/* ---- the open ones ---- */

/* req_id NULL: any. */
static int
same(jv d, const char *instance, const char *req_id, int decision)
{
	const char *i = am_str(d, "instance"), *q = am_str(d, "req_id"), *w = am_str(d, "what");

	return i != NULL && q != NULL && w != NULL && strcmp(i, instance) == 0 &&
	    (req_id == NULL || strcmp(q, req_id) == 0) &&
	    decision == (strcmp(w, "release") == 0 || strcmp(w, "deny") == 0);
}

static void
forget(struct amr_router *r, const char *instance, const char *req_id, int decision)
{
	int n = jv_array_length(jv_copy(r->intents));
	jv kept = jv_array();

	for (int i = 0; i < n; i++) {
		jv d = jv_array_get(jv_copy(r->intents), i);

		if (same(d, instance, req_id, decision))
			jv_free(d);
		else
			kept = jv_array_append(kept, d);
	}
	jv_free(r->intents);
	r->intents = kept;
}

void
amr_intent_forget(struct amr_router *r, const char *instance, const char *req_id, int decision)
{
	int before = jv_array_length(jv_copy(r->intents));

	forget(r, instance, req_id, decision);
	if (jv_array_length(jv_copy(r->intents)) != before && save(r) != 0)
		amr_log(AM_WARNING, "", "%s: %s", NAME, strerror(errno));
}

int
amr_intent_begin(struct amr_router *r, const struct amr_plan *p)
{
	forget(r, p->instance, p->req_id, p->what >= AM_RELEASE);
	r->intents = jv_array_append(r->intents, to_json(p));
	if (save(r) == 0)
		return 0;
	forget(r, p->instance, p->req_id, p->what >= AM_RELEASE);
	return -1;
}

void
amr_intent_end(struct amr_router *r, const struct amr_plan *p)
{
	amr_intent_forget(r, p->instance, p->req_id, p->what >= AM_RELEASE);
}

int
amr_intent_find(const struct amr_router *r, const char *instance, const char *req_id, int decision, struct amr_plan *p)
{
	int n = jv_array_length(jv_copy(r->intents)), found = 0;

	for (int i = 0; i < n && !found; i++) {
		jv d = jv_array_get(jv_copy(r->intents), i);

		if ((found = same(d, instance, req_id, decision)))
			from_json(d, p);
		jv_free(d);
	}
	return found;
}

jv
amr_intents_of(const struct amr_router *r, const char *instance)
{
	int n = jv_array_length(jv_copy(r->intents));
	jv ids = jv_array();

	for (int i = 0; i < n; i++) {
		jv d = jv_array_get(jv_copy(r->intents), i);

		if (same(d, instance, NULL, 0))
			ids = jv_array_append(ids, jv_object_get(jv_copy(d), jv_string("req_id")));
		jv_free(d);
	}
	return ids;
}

void
amr_intents_drop(struct amr_router *r, const char *instance)
{
	forget(r, instance, NULL, 0);
	forget(r, instance, NULL, 1);
	save(r);
}
