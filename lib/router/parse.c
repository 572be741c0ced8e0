#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "diag.h"
#include "json.h"
#include "path.h"
#include "router/load.h"

int
amr_load_refuse(struct amr_load *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->why, l->size, fmt, ap);
	va_end(ap);
	return -1;
}

void *
amr_load_must(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

static int
is_domain(const char *s)
{
	size_t len = strlen(s), label = 0;

	if (len == 0 || len > 253)
		return 0;
	for (size_t i = 0; i <= len; i++) {
		if (s[i] == '.' || s[i] == '\0') {
			if (label == 0 || label > 63 || s[i - 1] == '-')
				return 0;
			label = 0;
		} else if ((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || (s[i] == '-' && label > 0)) {
			label++;
		} else {
			return 0;
		}
	}
	return 1;
}

/* The form of an instance's name, but without a dot. */
static int
is_connector_id(jv v)
{
	return jv_get_kind(v) == JV_KIND_STRING && strchr(jv_string_value(v), '.') == NULL &&
	    amr_is_instance_name(jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)));
}

/* ---- reading members of the document ---- */

/* "." and ".." are resolved by the text alone: no link is followed. */
static char *
normal_path(const char *path)
{
	char *out = amr_load_must(malloc(strlen(path) + 2)), *end = out;

	for (const char *p = path; *p != '\0'; ) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			while (end > out && *--end != '/')
				;
		} else if (n > 0 && !(n == 1 && p[0] == '.')) {
			*end++ = '/';
			memcpy(end, p, n);
			end += n;
		}
		p += n + (p[n] == '/');
	}
	if (end == out)
		*end++ = '/';
	*end = '\0';
	return out;
}

static int
read_path(struct amr_load *l, jv object, const char *key, const char *name, char **out)
{
	const char *s = am_str(object, key);

	if (s == NULL || *s != '/')
		return amr_load_refuse(l, "%s: %s", name, am_has(object, key) ? "not an absolute path" : "missing");
	*out = normal_path(s);
	return 0;
}

static int
read_count(struct amr_load *l, const char *key, long *out)
{
	jv v = jv_object_get(jv_copy(l->doc), jv_string(key));
	double n = jv_get_kind(v) == JV_KIND_NUMBER ? jv_number_value(v) : 0;
	int absent = !jv_is_valid(v);

	jv_free(v);
	if (absent)
		return 0;
	if (!(n >= 1 && n < 1e15) || n != (double)(long)n)
		return amr_load_refuse(l, "%s: not a positive integer", key);
	*out = (long)n;
	return 0;
}

int
amr_load_names(struct amr_load *l, jv v, const char *where, const char *who, jv *out)
{
	int n;

	if (jv_get_kind(v) != JV_KIND_ARRAY)
		return amr_load_refuse(l, "%s: %s: not an array of names", where, am_quotes(who));
	n = jv_array_length(jv_copy(v));
	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(v), i);
		int ok = jv_get_kind(item) == JV_KIND_STRING;

		jv_free(item);
		if (!ok)
			return amr_load_refuse(l, "%s: %s: not an array of names", where, am_quotes(who));
	}
	jv_free(*out);
	*out = jv_copy(v);
	return 0;
}

static int
nested(const char *a, const char *b)
{
	return am_path_under(a, b) || am_path_under(b, a);
}

static struct amr_member *
add_member(struct amr_conf *c, const char *name)
{
	struct amr_member *m;

	if ((c->n & (c->n - 1)) == 0)		/* room grows by powers of two */
		c->members = amr_load_must(realloc(c->members, (c->n ? c->n * 2 : 1) * sizeof *c->members));
	m = &c->members[c->n++];
	memset(m, 0, sizeof *m);
	m->name = amr_load_must(strdup(name));
	m->mail_names = jv_array();
	m->sender_names = jv_array();
	return m;
}

static int
one_member(struct amr_load *l, const char *name, jv v)
{
	static const char *const known[] = { "handoff_dir", "namespace", "peers", "peer_senders", NULL };
	struct amr_member *m;
	jv list;
	int rc = 0;

	if (!amr_is_instance_name(name, strlen(name)))
		return amr_load_refuse(l, "instances: %s: not a valid instance name", am_quotes(name));
	if (strcasecmp(name, AM_ROUTER_NAME) == 0)
		return amr_load_refuse(l, "instances: %s: the router's own name", name);
	if (jv_get_kind(v) != JV_KIND_OBJECT)
		return amr_load_refuse(l, "instances: %s: not an object", name);
	if (am_unknown_key(v, known) != NULL)
		return amr_load_refuse(l, "instances: %s: unknown key %s", name, am_quotes(am_unknown_key(v, known)));
	if (am_has(v, "handoff_dir") == am_has(v, "namespace"))
		return amr_load_refuse(l, "instances: %s: needs exactly one of handoff_dir and namespace", name);
	m = add_member(l->c, name);
	m->namespaced = am_has(v, "namespace");
	if (read_path(l, v, m->namespaced ? "namespace" : "handoff_dir", name, &m->root) != 0)
		return -1;
	if (am_has(v, "peers")) {
		list = jv_object_get(jv_copy(v), jv_string("peers"));
		rc = amr_load_names(l, list, "peers", name, &m->mail_names);
		jv_free(list);
		l->mailed = 1;
	}
	if (rc == 0 && am_has(v, "peer_senders")) {
		list = jv_object_get(jv_copy(v), jv_string("peer_senders"));
		rc = amr_load_names(l, list, "peer_senders", name, &m->sender_names);
		jv_free(list);
		l->tasked = 1;
	}
	return rc;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct amr_member *)a)->name, ((const struct amr_member *)b)->name);
}

static int
by_folded_name(const void *a, const void *b, void *members)
{
	const struct amr_member *m = members;

	return strcasecmp(m[*(const uint32_t *)a].name, m[*(const uint32_t *)b].name);
}

static int
index_members(struct amr_load *l)
{
	struct amr_conf *c = l->c;

	if (c->n > 0)
		qsort(c->members, c->n, sizeof *c->members, by_name);
	c->folded = amr_load_must(malloc((c->n + 1) * sizeof *c->folded));
	for (size_t i = 0; i < c->n; i++)
		c->folded[i] = (uint32_t)i;
	qsort_r(c->folded, c->n, sizeof *c->folded, by_folded_name, c->members);
	for (size_t i = 1; i < c->n; i++) {
		const char *a = c->members[c->folded[i - 1]].name, *b = c->members[c->folded[i]].name;

		if (strcasecmp(a, b) == 0)
			return amr_load_refuse(l, "instances: %s and %s differ in letter case only", a, b);
	}
	return 0;
}

/* ---- what must not lie one in the other ---- */

static int
check_roots(struct amr_load *l)
{
	struct amr_conf *c = l->c;

	for (size_t i = 0; i < c->n; i++)
		if (nested(c->members[i].root, c->state_dir))
			return amr_load_refuse(l, "%s: its root and state_dir lie one in the other", c->members[i].name);
	/* Roots found by discovery are siblings. */
	for (size_t i = 0; i < c->n && c->instances_dir == NULL; i++)
		for (size_t k = i + 1; k < c->n; k++)
			if (nested(c->members[i].root, c->members[k].root))
				return amr_load_refuse(l, "%s and %s: their roots lie one in the other",
				    c->members[i].name, c->members[k].name);
	for (size_t i = 0; i < c->n && c->intake_dir != NULL; i++)
		if (nested(c->members[i].root, c->intake_dir))
			return amr_load_refuse(l, "%s: its root and intake_dir lie one in the other", c->members[i].name);
	return 0;
}

static int
check_outcome_ids(struct amr_load *l)
{
	jv ids = jv_object_get(jv_copy(l->doc), jv_string("connector_outcome_ids"));
	int n;

	if (!jv_is_valid(ids)) {
		l->c->outcome_ids = JV_ARRAY(jv_string("claude-code"));
		return 0;
	}
	l->c->outcome_ids = ids;
	if (jv_get_kind(ids) != JV_KIND_ARRAY || (n = jv_array_length(jv_copy(ids))) == 0)
		return amr_load_refuse(l, "connector_outcome_ids: not an array with at least one id");
	for (int i = 0; i < n; i++) {
		jv a = jv_array_get(jv_copy(ids), i);
		int ok = is_connector_id(a), twin = 0;

		for (int k = 0; ok && k < i; k++) {
			jv b = jv_array_get(jv_copy(ids), k);

			twin |= strcasecmp(jv_string_value(a), jv_string_value(b)) == 0;
			jv_free(b);
		}
		jv_free(a);
		if (!ok || twin)
			return amr_load_refuse(l, "connector_outcome_ids: entry %d is %s", i, ok ? "there twice" : "not a connector id");
	}
	return 0;
}

/* ---- the steps, in the order of the spec ---- */

static int
check_keys(struct amr_load *l)
{
	static const char *const known[] = { "state_dir", "instances", "instances_dir", "selected_json", "fleet_domain",
	    "peer_senders", "peers", "task_graph", "mail_graph", "attachment_max_bytes", "attachment_max_count",
	    "attachment_max_total_bytes", "sender_exposure_window_seconds", "peer_reply_window_seconds",
	    "connector_outcome_ids", "intake_dir", NULL };

	if (jv_get_kind(l->doc) != JV_KIND_OBJECT)
		return amr_load_refuse(l, "not a JSON object");
	if (am_unknown_key(l->doc, known) != NULL)
		return amr_load_refuse(l, "unknown key %s", am_quotes(am_unknown_key(l->doc, known)));
	return read_path(l, l->doc, "state_dir", "state_dir", &l->c->state_dir);
}

static int
discover(struct amr_load *l)
{
	struct amr_conf *c = l->c;
	struct amr_found found;
	jv admitted;

	if (read_path(l, l->doc, "instances_dir", "instances_dir", &c->instances_dir) != 0 ||
	    read_path(l, l->doc, "selected_json", "selected_json", &c->selected_json) != 0)
		return -1;
	if (nested(c->instances_dir, c->state_dir))
		return amr_load_refuse(l, "instances_dir and state_dir lie one in the other");
	if (nested(c->selected_json, c->state_dir))
		return amr_load_refuse(l, "selected_json and state_dir lie one in the other");
	amr_found_gather(&found, c->instances_dir, c->state_dir, c->selected_json);
	amr_found_digest(&found, c->found_digest);
	amr_verdict_free(&l->verdict);
	l->verdict = amr_verdict_read(&found);
	c->verdict_missing = !l->verdict.known;
	c->instances_unreadable = found.unreadable;
	jv_free(l->parts);
	l->parts = amr_discover(&found, &l->verdict);
	amr_found_free(&found);
	admitted = am_get(l->parts, "admitted", JV_KIND_ARRAY);
	for (int i = 0; i < jv_array_length(jv_copy(admitted)); i++) {
		jv name = jv_array_get(jv_copy(admitted), i);

		add_member(c, jv_string_value(name))->root = am_path_join(c->instances_dir, jv_string_value(name));
		jv_free(name);
	}
	jv_free(admitted);
	return 0;
}

static int
check_source(struct amr_load *l)
{
	jv instances;
	int bad;

	if (am_has(l->doc, "instances_dir"))
		return am_has(l->doc, "instances") ? amr_load_refuse(l, "instances and instances_dir exclude each other") : discover(l);
	if (!am_has(l->doc, "instances"))
		return amr_load_refuse(l, "instances: missing; instances_dir is the other choice");
	instances = am_get(l->doc, "instances", JV_KIND_OBJECT);
	bad = !jv_is_valid(instances) || jv_object_length(jv_copy(instances)) == 0;
	jv_free(instances);
	return bad ? amr_load_refuse(l, "instances: not an object with at least one member") : 0;
}

static int
check_attachments(struct amr_load *l)
{
	struct amr_conf *c = l->c;

	c->file_max = 8388608;
	c->files_max = 16;
	c->total_max = 33554432;
	if (read_count(l, "attachment_max_bytes", &c->file_max) != 0 ||
	    read_count(l, "attachment_max_count", &c->files_max) != 0 ||
	    read_count(l, "attachment_max_total_bytes", &c->total_max) != 0)
		return -1;
	return c->total_max >= c->file_max ? 0 :
	    amr_load_refuse(l, "attachment_max_total_bytes: less than attachment_max_bytes");
}

static int
check_domain(struct amr_load *l)
{
	const char *s = am_str(l->doc, "fleet_domain");

	if (!am_has(l->doc, "fleet_domain"))
		return 0;
	if (s == NULL || !is_domain(s))
		return amr_load_refuse(l, "fleet_domain: not a lower-case domain name");
	l->c->domain = amr_load_must(strdup(s));
	return 0;
}

static int
check_intake(struct amr_load *l)
{
	if (!am_has(l->doc, "intake_dir"))
		return 0;
	if (read_path(l, l->doc, "intake_dir", "intake_dir", &l->c->intake_dir) != 0)
		return -1;
	return nested(l->c->intake_dir, l->c->state_dir) ? amr_load_refuse(l, "intake_dir and state_dir lie one in the other") : 0;
}

static int
check_windows(struct amr_load *l)
{
	l->c->exposure_window = 86400;
	l->c->reply_window = 604800;
	return read_count(l, "sender_exposure_window_seconds", &l->c->exposure_window) != 0 ||
	    read_count(l, "peer_reply_window_seconds", &l->c->reply_window) != 0 ? -1 : 0;
}

static int
check_instances(struct amr_load *l)
{
	jv all = am_get(l->doc, "instances", JV_KIND_OBJECT);
	int rc = 0, i;

	if (!jv_is_valid(all))
		return 0;
	for (i = jv_object_iter(all); rc == 0 && jv_object_iter_valid(all, i); i = jv_object_iter_next(all, i)) {
		jv key = jv_object_iter_key(all, i), v = jv_object_iter_value(all, i);

		rc = one_member(l, jv_string_value(key), v);
		jv_free(v);
		jv_free(key);
	}
	jv_free(all);
	return rc;
}

/* The discovery report, in its fixed order. */
static void
report(struct amr_load *l)
{
	struct amr_conf *c = l->c;
	jv lines = jv_array();

	if (c->verdict_missing)
		lines = jv_array_append(lines, jv_string_fmt("    ** VERDICT UNAVAILABLE: %s cannot be read; nobody is admitted **",
		    am_quotes(c->selected_json)));
	if (c->instances_unreadable)
		lines = jv_array_append(lines, jv_string_fmt("    ** INSTANCES UNREADABLE: %s cannot be listed; nobody is admitted **",
		    am_quotes(c->instances_dir)));
	lines = jv_array_concat(lines, am_get(l->parts, "skipped", JV_KIND_ARRAY));
	lines = jv_array_concat(lines, am_get(l->parts, "waiting", JV_KIND_ARRAY));
	lines = jv_array_concat(lines, am_get(l->parts, "homeless", JV_KIND_ARRAY));
	lines = jv_array_concat(lines, amr_edges_inert(l->inert, &l->verdict, 1));
	lines = jv_array_concat(lines, amr_edges_inert(l->inert, &l->verdict, 0));
	jv_free(c->report);
	c->report = lines;
}

int
amr_conf_read(struct amr_conf *c, const char *text, size_t len, char *why, size_t size)
{
	static int (*const steps[])(struct amr_load *) = { check_keys, check_source, check_attachments, check_domain,
	    check_intake, check_windows, check_instances, index_members, amr_edges_graphs, amr_edges_maps, amr_edges_resolve,
	    check_roots, check_outcome_ids, amr_edges_apart };
	struct amr_load l = { .c = c, .doc = am_json_parse(text, len), .why = why, .size = size,
	    .parts = jv_object(), .inert = jv_object(), .verdict = { 0, jv_object(), jv_object() } };
	int rc = 0;

	if (!jv_is_valid(l.doc)) {
		rc = amr_load_refuse(&l, "%s", am_quotes(am_json_why(l.doc)));
		l.doc = jv_invalid();
	}
	for (size_t i = 0; rc == 0 && i < sizeof steps / sizeof steps[0]; i++)
		rc = steps[i](&l);
	if (rc == 0 && c->instances_dir != NULL)
		report(&l);
	jv_free(l.doc);
	jv_free(l.parts);
	jv_free(l.inert);
	amr_verdict_free(&l.verdict);
	return rc;
}
