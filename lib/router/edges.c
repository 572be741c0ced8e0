#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "json.h"
#include "router/load.h"

#define ALLOW_ANY "ALLOW_ANY"

/* ---- everybody with everybody ---- */

static int
read_graph(struct amr_load *l, const char *key, int declared, const char *list, int *all)
{
	jv v = jv_object_get(jv_copy(l->doc), jv_string(key));
	int absent = !jv_is_valid(v) || jv_get_kind(v) == JV_KIND_NULL;
	int is_all = jv_get_kind(v) == JV_KIND_STRING && strcmp(jv_string_value(v), "all") == 0;

	jv_free(v);
	if (absent)
		return 0;
	if (!is_all)
		return amr_load_refuse(l, "%s: not \"all\"", key);
	if (list != NULL && strcmp(key, "task_graph") == 0 && l->c->domain == NULL)
		return amr_load_refuse(l, "%s: needs fleet_domain", key);
	if (declared)
		return amr_load_refuse(l, "%s: excludes %s of an instance", key, list);
	*all = 1;
	return 0;
}

int
amr_edges_graphs(struct amr_load *l)
{
	return read_graph(l, "task_graph", l->tasked, "peer_senders", &l->c->task_all) != 0 ||
	    read_graph(l, "mail_graph", l->mailed, "peers", &l->c->mail_all) != 0 ? -1 : 0;
}

/* ---- the two maps of a discovered fleet ---- */

/* One list of a discovery-mode map; names that are not admitted become inert edges. */
static int
map_list(struct amr_load *l, const char *map, const char *holder, jv names)
{
	struct amr_conf *c = l->c;
	long at = amr_conf_find(c, holder);
	jv list = jv_array(), kept = jv_object(), keys;
	int n;

	if (amr_load_names(l, names, map, holder, &list) != 0) {
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
map_all(struct amr_load *l, const char *map, const char *graph)
{
	jv all = jv_object_get(jv_copy(l->doc), jv_string(map));
	int rc = 0, i;

	if (!jv_is_valid(all) || jv_get_kind(all) == JV_KIND_NULL) {
		jv_free(all);
		return 0;
	}
	if (l->c->instances_dir == NULL)
		rc = amr_load_refuse(l, "%s: belongs to a fleet of instances_dir; write it in each instance", map);
	else if (strcmp(map, "peers") == 0 ? l->c->mail_all : l->c->task_all)
		rc = amr_load_refuse(l, "%s: excluded by %s", map, graph);
	else if (jv_get_kind(all) != JV_KIND_OBJECT)
		rc = amr_load_refuse(l, "%s: not an object", map);
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

int
amr_edges_maps(struct amr_load *l)
{
	return map_all(l, "peer_senders", "task_graph") != 0 || map_all(l, "peers", "mail_graph") != 0 ? -1 : 0;
}

jv
amr_edges_inert(jv inert, const struct amr_verdict *v, int typo)
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
resolve(struct amr_load *l, size_t holder, const char *key, jv *names, struct amr_list *out, int *any)
{
	struct amr_conf *c = l->c;
	struct amr_member *m = &c->members[holder];
	int n = jv_array_length(jv_copy(*names)), tasks = any == NULL, rc = 0;

	out->v = amr_load_must(malloc(((size_t)n + 1) * sizeof *out->v));
	for (int i = 0; i < n && rc == 0; i++) {
		jv name = jv_array_get(jv_copy(*names), i);
		const char *s = jv_string_value(name);
		long at = amr_conf_find(c, s);

		if (!tasks && strcmp(s, ALLOW_ANY) == 0)
			*any = 1;
		else if (at < 0)
			rc = amr_load_refuse(l, "%s: %s: no instance is named %s", key, m->name, am_quotes(s));
		else if (tasks && (size_t)at == holder)
			rc = amr_load_refuse(l, "%s: %s: names itself", key, m->name);
		else if (tasks && c->members[at].namespaced)
			rc = amr_load_refuse(l, "%s: %s: %s has no delegation lane", key, m->name, s);
		else
			out->v[out->n++] = (uint32_t)at;
		jv_free(name);
	}
	jv_free(*names);
	*names = jv_invalid();
	qsort(out->v, out->n, sizeof *out->v, by_index);
	for (size_t i = 1; i < out->n && rc == 0 && tasks; i++)
		if (out->v[i] == out->v[i - 1])
			rc = amr_load_refuse(l, "%s: %s: names %s twice", key, m->name, c->members[out->v[i]].name);
	return rc;
}

int
amr_edges_resolve(struct amr_load *l)
{
	struct amr_conf *c = l->c;

	for (size_t i = 0; i < c->n; i++) {
		struct amr_member *m = &c->members[i];

		if (resolve(l, i, "peers", &m->mail_names, &m->mail, &m->mail_any) != 0)
			return -1;
		if (jv_array_length(jv_copy(m->sender_names)) > 0 && c->domain == NULL)
			return amr_load_refuse(l, "peer_senders: %s: needs fleet_domain", m->name);
		if (jv_array_length(jv_copy(m->sender_names)) > 0 && m->namespaced)
			return amr_load_refuse(l, "peer_senders: %s: a namespace has no delegation lane", m->name);
		if (resolve(l, i, "peer_senders", &m->sender_names, &m->senders, NULL) != 0)
			return -1;
	}
	return 0;
}

int
amr_edges_apart(struct amr_load *l)
{
	struct amr_conf *c = l->c;
	int mail = c->mail_all;

	for (size_t i = 0; i < c->n; i++)
		mail |= c->members[i].mail_any || c->members[i].mail.n > 0;
	for (size_t to = 0; to < c->n && mail; to++)
		for (size_t k = 0; k < (c->task_all ? c->n : c->members[to].senders.n); k++) {
			size_t from = c->task_all ? k : c->members[to].senders.v[k];

			if (amr_conf_may_task(c, from, to) && amr_conf_may_mail(c, from, to))
				return amr_load_refuse(l, "peer_senders: %s may task %s, and both exchange mail; one pair, one lane",
				    c->members[from].name, c->members[to].name);
		}
	return 0;
}
