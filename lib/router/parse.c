#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "diag.h"
#include "json.h"
#include "path.h"
#include "router/conf.h"

#define ALLOW_ANY "ALLOW_ANY"

/* A load in progress: what it has found wrong first. */
struct load {
	struct amr_conf *c;
	jv doc;
	char *why;
	size_t size;
	struct amr_verdict verdict;
	jv parts;		/* of the discovery report */
	jv inert;		/* names on edges that are not admitted: an object NAME -> true */
	int tasked, mailed;	/* an authored instance has such a list */
};

static int __attribute__((format(printf, 2, 3)))
refuse(struct load *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->why, l->size, fmt, ap);
	va_end(ap);
	return -1;
}

static void *
must(void *p)
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
	char *out = must(malloc(strlen(path) + 2)), *end = out;

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
read_path(struct load *l, jv object, const char *key, const char *name, char **out)
{
	const char *s = am_str(object, key);

	if (s == NULL || *s != '/')
		return refuse(l, "%s: %s", name, am_has(object, key) ? "not an absolute path" : "missing");
	*out = normal_path(s);
	return 0;
}

static int
read_count(struct load *l, const char *key, long *out)
{
	jv v = jv_object_get(jv_copy(l->doc), jv_string(key));
	double n = jv_get_kind(v) == JV_KIND_NUMBER ? jv_number_value(v) : 0;
	int absent = !jv_is_valid(v);

	jv_free(v);
	if (absent)
		return 0;
	if (!(n >= 1 && n < 1e15) || n != (double)(long)n)
		return refuse(l, "%s: not a positive integer", key);
	*out = (long)n;
	return 0;
}

/* Owns an array of strings in *out; refused when the member is of another kind. */
static int
read_names(struct load *l, jv v, const char *where, const char *who, jv *out)
{
	int n;

	if (jv_get_kind(v) != JV_KIND_ARRAY)
		return refuse(l, "%s: %s: not an array of names", where, am_quotes(who));
	n = jv_array_length(jv_copy(v));
	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(v), i);
		int ok = jv_get_kind(item) == JV_KIND_STRING;

		jv_free(item);
		if (!ok)
			return refuse(l, "%s: %s: not an array of names", where, am_quotes(who));
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
		c->members = must(realloc(c->members, (c->n ? c->n * 2 : 1) * sizeof *c->members));
	m = &c->members[c->n++];
	memset(m, 0, sizeof *m);
	m->name = must(strdup(name));
	m->mail_names = jv_array();
	m->sender_names = jv_array();
	return m;
}

static int
one_member(struct load *l, const char *name, jv v)
{
	static const char *const known[] = { "handoff_dir", "namespace", "peers", "peer_senders", NULL };
	struct amr_member *m;
	jv list;
	int rc = 0;

	if (!amr_is_instance_name(name, strlen(name)))
		return refuse(l, "instances: %s: not a valid instance name", am_quotes(name));
	if (strcasecmp(name, AM_ROUTER_NAME) == 0)
		return refuse(l, "instances: %s: the router's own name", name);
	if (jv_get_kind(v) != JV_KIND_OBJECT)
		return refuse(l, "instances: %s: not an object", name);
	if (am_unknown_key(v, known) != NULL)
		return refuse(l, "instances: %s: unknown key %s", name, am_quotes(am_unknown_key(v, known)));
	if (am_has(v, "handoff_dir") == am_has(v, "namespace"))
		return refuse(l, "instances: %s: needs exactly one of handoff_dir and namespace", name);
	m = add_member(l->c, name);
	m->namespaced = am_has(v, "namespace");
	if (read_path(l, v, m->namespaced ? "namespace" : "handoff_dir", name, &m->root) != 0)
		return -1;
	if (am_has(v, "peers")) {
		list = jv_object_get(jv_copy(v), jv_string("peers"));
		rc = read_names(l, list, "peers", name, &m->mail_names);
		jv_free(list);
		l->mailed = 1;
	}
	if (rc == 0 && am_has(v, "peer_senders")) {
		list = jv_object_get(jv_copy(v), jv_string("peer_senders"));
		rc = read_names(l, list, "peer_senders", name, &m->sender_names);
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
index_members(struct load *l)
{
	struct amr_conf *c = l->c;

	if (c->n > 0)
		qsort(c->members, c->n, sizeof *c->members, by_name);
	c->folded = must(malloc((c->n + 1) * sizeof *c->folded));
	for (size_t i = 0; i < c->n; i++)
		c->folded[i] = (uint32_t)i;
	qsort_r(c->folded, c->n, sizeof *c->folded, by_folded_name, c->members);
	for (size_t i = 1; i < c->n; i++) {
		const char *a = c->members[c->folded[i - 1]].name, *b = c->members[c->folded[i]].name;

		if (strcasecmp(a, b) == 0)
			return refuse(l, "instances: %s and %s differ in letter case only", a, b);
	}
	return 0;
}

/* ---- the two maps of a discovered fleet ---- */

/* One list of a discovery-mode map; names that are not admitted become inert edges. */
static int
map_list(struct load *l, const char *map, const char *holder, jv names)
{
	struct amr_conf *c = l->c;
	long at = amr_conf_find(c, holder);
	jv list = jv_array(), kept = jv_object(), keys;
	int n;

	if (read_names(l, names, map, holder, &list) != 0) {
		jv_free(list);
		jv_free(kept);
		return -1;
	}
	if (at < 0)
		l->inert = jv_object_set(l->inert, jv_string(holder), jv_true());
	n = jv_array_length(jv_copy(list));
	for (int i = 0; i < n; i++) {
		jv name = jv_array_get(jv_copy(list), i);
		const char *s = jv_string_value(name);

		if (amr_conf_find(c, s) >= 0 || (strcmp(map, "peers") == 0 && strcmp(s, ALLOW_ANY) == 0))
			kept = jv_object_set(kept, jv_copy(name), jv_true());
		else
			l->inert = jv_object_set(l->inert, jv_copy(name), jv_true());
		jv_free(name);
	}
	jv_free(list);
	keys = jv_keys(kept);
	if (at >= 0) {
		struct amr_member *m = &c->members[at];

		if (strcmp(map, "peers") == 0) {
			jv_free(m->mail_names);
			m->mail_names = keys;
		} else {
			jv_free(m->sender_names);
			m->sender_names = keys;
		}
	} else {
		jv_free(keys);
	}
	return 0;
}

static int
map_all(struct load *l, const char *map, const char *graph)
{
	jv all = jv_object_get(jv_copy(l->doc), jv_string(map));
	int rc = 0, i;

	if (!jv_is_valid(all) || jv_get_kind(all) == JV_KIND_NULL) {
		jv_free(all);
		return 0;
	}
	if (l->c->instances_dir == NULL)
		rc = refuse(l, "%s: belongs to a fleet of instances_dir; write it in each instance", map);
	else if (strcmp(map, "peers") == 0 ? l->c->mail_all : l->c->task_all)
		rc = refuse(l, "%s: excluded by %s", map, graph);
	else if (jv_get_kind(all) != JV_KIND_OBJECT)
		rc = refuse(l, "%s: not an object", map);
	else
		for (i = jv_object_iter(all); rc == 0 && jv_object_iter_valid(all, i); i = jv_object_iter_next(all, i)) {
			jv key = jv_object_iter_key(all, i), v = jv_object_iter_value(all, i);

			rc = map_list(l, map, jv_string_value(key), v);
			jv_free(v);
			jv_free(key);
		}
	jv_free(all);
	return rc;
}

static jv
inert_lines(jv inert, const struct amr_verdict *v, int typo)
{
	jv keys = jv_keys(jv_copy(inert)), lines = jv_array();
	int n = jv_array_length(jv_copy(keys));

	for (int i = 0; i < n; i++) {
		jv slug = jv_array_get(jv_copy(keys), i);
		int named = jv_object_has(jv_copy(v->selected), jv_copy(slug)) ||
		    jv_object_has(jv_copy(v->declined), jv_copy(slug));

		if (typo && !named)
			lines = jv_array_append(lines, jv_string_fmt(
			    "    ** INERT EDGE  %s: an edge names it, and no verdict does; a typo? **", am_quotes(jv_string_value(slug))));
		else if (!typo && named)
			lines = jv_array_append(lines, jv_string_fmt(
			    "       INERT EDGE  %s: an edge names it, and it is not admitted", am_quotes(jv_string_value(slug))));
		jv_free(slug);
	}
	jv_free(keys);
	return lines;
}

/* ---- resolving names ---- */

static int
by_index(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Consumes *names. Unknown names, and what a delegation list may not hold, are refused. */
static int
resolve(struct load *l, size_t holder, const char *key, jv *names, struct amr_list *out, int *any)
{
	struct amr_conf *c = l->c;
	struct amr_member *m = &c->members[holder];
	int n = jv_array_length(jv_copy(*names)), tasks = any == NULL, rc = 0;

	out->v = must(malloc(((size_t)n + 1) * sizeof *out->v));
	for (int i = 0; i < n && rc == 0; i++) {
		jv name = jv_array_get(jv_copy(*names), i);
		const char *s = jv_string_value(name);
		long at = amr_conf_find(c, s);

		if (!tasks && strcmp(s, ALLOW_ANY) == 0)
			*any = 1;
		else if (at < 0)
			rc = refuse(l, "%s: %s: no instance is named %s", key, m->name, am_quotes(s));
		else if (tasks && (size_t)at == holder)
			rc = refuse(l, "%s: %s: names itself", key, m->name);
		else if (tasks && c->members[at].namespaced)
			rc = refuse(l, "%s: %s: %s has no delegation lane", key, m->name, s);
		else
			out->v[out->n++] = (uint32_t)at;
		jv_free(name);
	}
	jv_free(*names);
	*names = jv_invalid();
	qsort(out->v, out->n, sizeof *out->v, by_index);
	for (size_t i = 1; i < out->n && rc == 0 && tasks; i++)
		if (out->v[i] == out->v[i - 1])
			rc = refuse(l, "%s: %s: names %s twice", key, m->name, c->members[out->v[i]].name);
	return rc;
}

static int
resolve_all(struct load *l)
{
	struct amr_conf *c = l->c;

	for (size_t i = 0; i < c->n; i++) {
		struct amr_member *m = &c->members[i];

		if (resolve(l, i, "peers", &m->mail_names, &m->mail, &m->mail_any) != 0)
			return -1;
		if (jv_array_length(jv_copy(m->sender_names)) > 0 && c->domain == NULL)
			return refuse(l, "peer_senders: %s: needs fleet_domain", m->name);
		if (jv_array_length(jv_copy(m->sender_names)) > 0 && m->namespaced)
			return refuse(l, "peer_senders: %s: a namespace has no delegation lane", m->name);
		if (resolve(l, i, "peer_senders", &m->sender_names, &m->senders, NULL) != 0)
			return -1;
	}
	return 0;
}

static int
check_roots(struct load *l)
{
	struct amr_conf *c = l->c;

	for (size_t i = 0; i < c->n; i++)
		if (nested(c->members[i].root, c->state_dir))
			return refuse(l, "%s: its root and state_dir lie one in the other", c->members[i].name);
	/* Roots found by discovery are siblings. */
	for (size_t i = 0; i < c->n && c->instances_dir == NULL; i++)
		for (size_t k = i + 1; k < c->n; k++)
			if (nested(c->members[i].root, c->members[k].root))
				return refuse(l, "%s and %s: their roots lie one in the other",
				    c->members[i].name, c->members[k].name);
	for (size_t i = 0; i < c->n && c->intake_dir != NULL; i++)
		if (nested(c->members[i].root, c->intake_dir))
			return refuse(l, "%s: its root and intake_dir lie one in the other", c->members[i].name);
	return 0;
}

static int
check_outcome_ids(struct load *l)
{
	jv ids = jv_object_get(jv_copy(l->doc), jv_string("connector_outcome_ids"));
	int n;

	if (!jv_is_valid(ids)) {
		l->c->outcome_ids = JV_ARRAY(jv_string("claude-code"));
		return 0;
	}
	l->c->outcome_ids = ids;
	if (jv_get_kind(ids) != JV_KIND_ARRAY || (n = jv_array_length(jv_copy(ids))) == 0)
		return refuse(l, "connector_outcome_ids: not an array with at least one id");
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
			return refuse(l, "connector_outcome_ids: entry %d is %s", i, ok ? "there twice" : "not a connector id");
	}
	return 0;
}

static int
check_lanes_apart(struct load *l)
{
	struct amr_conf *c = l->c;
	int mail = c->mail_all;

	for (size_t i = 0; i < c->n; i++)
		mail |= c->members[i].mail_any || c->members[i].mail.n > 0;
	for (size_t to = 0; to < c->n && mail; to++)
		for (size_t k = 0; k < (c->task_all ? c->n : c->members[to].senders.n); k++) {
			size_t from = c->task_all ? k : c->members[to].senders.v[k];

			if (amr_conf_may_task(c, from, to) && amr_conf_may_mail(c, from, to))
				return refuse(l, "peer_senders: %s may task %s, and both exchange mail; one pair, one lane",
				    c->members[from].name, c->members[to].name);
		}
	return 0;
}

/* ---- the steps, in the order of the spec ---- */

static int
check_keys(struct load *l)
{
	static const char *const known[] = { "state_dir", "instances", "instances_dir", "selected_json", "fleet_domain",
	    "peer_senders", "peers", "task_graph", "mail_graph", "attachment_max_bytes", "attachment_max_count",
	    "attachment_max_total_bytes", "sender_exposure_window_seconds", "peer_reply_window_seconds",
	    "connector_outcome_ids", "intake_dir", NULL };

	if (jv_get_kind(l->doc) != JV_KIND_OBJECT)
		return refuse(l, "not a JSON object");
	if (am_unknown_key(l->doc, known) != NULL)
		return refuse(l, "unknown key %s", am_quotes(am_unknown_key(l->doc, known)));
	return read_path(l, l->doc, "state_dir", "state_dir", &l->c->state_dir);
}

static int
discover(struct load *l)
{
	struct amr_conf *c = l->c;
	struct amr_found found;
	jv admitted;

	if (read_path(l, l->doc, "instances_dir", "instances_dir", &c->instances_dir) != 0 ||
	    read_path(l, l->doc, "selected_json", "selected_json", &c->selected_json) != 0)
		return -1;
	if (nested(c->instances_dir, c->state_dir))
		return refuse(l, "instances_dir and state_dir lie one in the other");
	if (nested(c->selected_json, c->state_dir))
		return refuse(l, "selected_json and state_dir lie one in the other");
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
check_source(struct load *l)
{
	jv instances;
	int bad;

	if (am_has(l->doc, "instances_dir"))
		return am_has(l->doc, "instances") ? refuse(l, "instances and instances_dir exclude each other") : discover(l);
	if (!am_has(l->doc, "instances"))
		return refuse(l, "instances: missing; instances_dir is the other choice");
	instances = am_get(l->doc, "instances", JV_KIND_OBJECT);
	bad = !jv_is_valid(instances) || jv_object_length(jv_copy(instances)) == 0;
	jv_free(instances);
	return bad ? refuse(l, "instances: not an object with at least one member") : 0;
}

static int
check_attachments(struct load *l)
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
	    refuse(l, "attachment_max_total_bytes: less than attachment_max_bytes");
}

static int
check_domain(struct load *l)
{
	const char *s = am_str(l->doc, "fleet_domain");

	if (!am_has(l->doc, "fleet_domain"))
		return 0;
	if (s == NULL || !is_domain(s))
		return refuse(l, "fleet_domain: not a lower-case domain name");
	l->c->domain = must(strdup(s));
	return 0;
}

static int
check_intake(struct load *l)
{
	if (!am_has(l->doc, "intake_dir"))
		return 0;
	if (read_path(l, l->doc, "intake_dir", "intake_dir", &l->c->intake_dir) != 0)
		return -1;
	return nested(l->c->intake_dir, l->c->state_dir) ? refuse(l, "intake_dir and state_dir lie one in the other") : 0;
}

static int
check_windows(struct load *l)
{
	l->c->exposure_window = 86400;
	l->c->reply_window = 604800;
	return read_count(l, "sender_exposure_window_seconds", &l->c->exposure_window) != 0 ||
	    read_count(l, "peer_reply_window_seconds", &l->c->reply_window) != 0 ? -1 : 0;
}

static int
check_instances(struct load *l)
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

static int
read_graph(struct load *l, const char *key, int declared, const char *list, int *all)
{
	jv v = jv_object_get(jv_copy(l->doc), jv_string(key));
	int absent = !jv_is_valid(v) || jv_get_kind(v) == JV_KIND_NULL;
	int is_all = jv_get_kind(v) == JV_KIND_STRING && strcmp(jv_string_value(v), "all") == 0;

	jv_free(v);
	if (absent)
		return 0;
	if (!is_all)
		return refuse(l, "%s: not \"all\"", key);
	if (list != NULL && strcmp(key, "task_graph") == 0 && l->c->domain == NULL)
		return refuse(l, "%s: needs fleet_domain", key);
	if (declared)
		return refuse(l, "%s: excludes %s of an instance", key, list);
	*all = 1;
	return 0;
}

static int
check_graphs(struct load *l)
{
	return read_graph(l, "task_graph", l->tasked, "peer_senders", &l->c->task_all) != 0 ||
	    read_graph(l, "mail_graph", l->mailed, "peers", &l->c->mail_all) != 0 ? -1 : 0;
}

static int
check_maps(struct load *l)
{
	return map_all(l, "peer_senders", "task_graph") != 0 || map_all(l, "peers", "mail_graph") != 0 ? -1 : 0;
}

/* The discovery report, in its fixed order. */
static void
report(struct load *l)
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
	lines = jv_array_concat(lines, inert_lines(l->inert, &l->verdict, 1));
	lines = jv_array_concat(lines, inert_lines(l->inert, &l->verdict, 0));
	jv_free(c->report);
	c->report = lines;
}

int
amr_conf_read(struct amr_conf *c, const char *text, size_t len, char *why, size_t size)
{
	static int (*const steps[])(struct load *) = { check_keys, check_source, check_attachments, check_domain,
	    check_intake, check_windows, check_instances, index_members, check_graphs, check_maps, resolve_all,
	    check_roots, check_outcome_ids, check_lanes_apart };
	struct load l = { .c = c, .doc = am_json_parse(text, len), .why = why, .size = size,
	    .parts = jv_object(), .inert = jv_object(), .verdict = { 0, jv_object(), jv_object() } };
	int rc = 0;

	if (!jv_is_valid(l.doc)) {
		rc = refuse(&l, "%s", am_quotes(am_json_why(l.doc)));
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
