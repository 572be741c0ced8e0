#include <stdlib.h>
#include <string.h>

#include "resolve.h"

/* ---- sets and pairs ---- */

static void
set_add(struct am_set *s, unsigned i)
{
	if (s->n == s->cap) {
		s->cap = s->cap == 0 ? 4 : s->cap * 2;
		if ((s->v = reallocarray(s->v, s->cap, sizeof *s->v)) == NULL)
			abort();
	}
	s->v[s->n++] = i;
}

static int
by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

/* Sorts, drops doubles and one more member (which is none of them when it is past the end). */
static void
set_finish(struct am_set *s, unsigned without)
{
	size_t kept = 0;

	if (s->n > 1)
		qsort(s->v, s->n, sizeof *s->v, by_number);
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i] != without && (kept == 0 || s->v[i] != s->v[kept - 1]))
			s->v[kept++] = s->v[i];
	s->n = kept;
}

static int
set_has(const struct am_set *s, unsigned i)
{
	return s->n > 0 && bsearch(&i, s->v, s->n, sizeof *s->v, by_number) != NULL;
}

static void
pair_add(struct am_pairs *p, unsigned from, unsigned to)
{
	if (p->n == p->cap) {
		p->cap = p->cap == 0 ? 16 : p->cap * 2;
		if ((p->v = reallocarray(p->v, p->cap, sizeof *p->v)) == NULL)
			abort();
	}
	p->v[p->n++] = (struct am_pair){ from, to };
}

static int
by_recipient(const void *a, const void *b)
{
	const struct am_pair *x = a, *y = b;

	return x->to != y->to ? (x->to > y->to) - (x->to < y->to) : (x->from > y->from) - (x->from < y->from);
}

static void
pairs_finish(struct am_pairs *p)
{
	size_t kept = 0;

	if (p->n > 1)
		qsort(p->v, p->n, sizeof *p->v, by_recipient);
	for (size_t i = 0; i < p->n; i++)
		if (kept == 0 || by_recipient(&p->v[i], &p->v[kept - 1]) != 0)
			p->v[kept++] = p->v[i];
	p->n = kept;
}

/* ---- resolution ---- */

/* Consumes list: adds its names, which are all known, to the set. */
static void
add_names(const struct am_names *names, jv list, struct am_set *out)
{
	int n = jv_get_kind(list) == JV_KIND_ARRAY ? jv_array_length(jv_copy(list)) : 0;

	for (int i = 0; i < n; i++) {
		jv v = jv_array_get(jv_copy(list), i);
		long at = am_names_find(names, jv_string_value(v));

		if (at < 0)
			abort();	/* the caller's names lack a member of the fleet */
		set_add(out, (unsigned)at);
		jv_free(v);
	}
	jv_free(list);
}

/* Consumes list: the members that a peer list stands for. 1 when it is ALLOW_ANY. */
static int
add_peers(const struct am_names *names, jv groups, jv list, struct am_set *out)
{
	int n = jv_get_kind(list) == JV_KIND_ARRAY ? jv_array_length(jv_copy(list)) : 0, any = 0;

	for (int i = 0; i < n; i++) {
		jv v = jv_array_get(jv_copy(list), i);
		const char *s = jv_string_value(v);

		if (strcmp(s, AM_ALLOW_ANY) == 0)
			any = 1;
		else if (strcmp(s, "@all") == 0)
			for (unsigned m = 0; m < names->n; m++)
				set_add(out, m);
		else if (s[0] == '@')
			add_names(names, jv_object_get(jv_copy(groups), jv_string(s + 1)), out);
		else
			add_names(names, jv_array_append(jv_array(), jv_copy(v)), out);
		jv_free(v);
	}
	jv_free(list);
	return any;
}

/* The denied pairs, sorted by recipient. */
static void
denied(const struct am_names *names, jv policy, struct am_pairs *out)
{
	jv deny = am_get(policy, "task_deny", JV_KIND_ARRAY);
	int n = jv_is_valid(deny) ? jv_array_length(jv_copy(deny)) : 0;

	for (int i = 0; i < n; i++) {
		struct am_set pair = { 0 };

		add_names(names, jv_array_get(jv_copy(deny), i), &pair);
		pair_add(out, pair.v[0], pair.v[1]);
		free(pair.v);
	}
	jv_free(deny);
	pairs_finish(out);
}

static int
is_denied(const struct am_pairs *deny, unsigned from, unsigned to)
{
	struct am_pair p = { from, to };

	return deny->n > 0 && bsearch(&p, deny->v, deny->n, sizeof p, by_recipient) != NULL;
}

static void
resolve_senders(struct am_reach *r, jv graph, int wildcard, const struct am_pairs *deny, unsigned m)
{
	struct am_set listed = { 0 }, *out = &r->links[m].senders;

	if (wildcard)
		for (unsigned s = 0; s < r->names->n; s++)
			set_add(&listed, s);
	else if (jv_is_valid(graph))
		add_names(r->names, jv_object_get(jv_copy(graph), jv_string(r->names->v[m])), &listed);
	set_finish(&listed, m);
	for (size_t i = 0; i < listed.n; i++)
		if (!is_denied(deny, listed.v[i], m))
			set_add(out, listed.v[i]);
	free(listed.v);
}

void
am_resolve(struct am_reach *r, const struct am_fleet *f, const struct am_names *names)
{
	jv groups = am_get(f->policy, "groups", JV_KIND_OBJECT);
	jv peers = am_get(f->policy, "peers", JV_KIND_OBJECT);
	jv defaults = am_get(f->policy, "default_peers", JV_KIND_ARRAY);
	jv graph = am_get(f->policy, "task_graph", JV_KIND_OBJECT);
	jv all = am_get(f->policy, "task_graph", JV_KIND_STRING);
	struct am_pairs deny = { 0 };

	denied(names, f->policy, &deny);
	*r = (struct am_reach){ .names = names, .all = jv_is_valid(all) && deny.n == 0 };
	if ((r->links = calloc(names->n + 1, sizeof *r->links)) == NULL)
		abort();
	for (unsigned m = 0; m < names->n; m++) {
		struct am_links *l = &r->links[m];
		jv own = am_get(peers, names->v[m], JV_KIND_ARRAY);

		if (!jv_is_valid(own))
			own = jv_copy(defaults);
		l->any = add_peers(names, groups, own, &l->peers);
		set_finish(&l->peers, m);
		if (!r->all)
			resolve_senders(r, graph, jv_is_valid(all), &deny, m);
	}
	free(deny.v);
	jv_free(groups);
	jv_free(peers);
	jv_free(defaults);
	jv_free(graph);
	jv_free(all);
}

void
am_reach_free(struct am_reach *r)
{
	for (size_t m = 0; m < r->names->n; m++) {
		free(r->links[m].peers.v);
		free(r->links[m].senders.v);
	}
	free(r->links);
}

int
am_lists(const struct am_reach *r, unsigned a, unsigned b)
{
	return a != b && (r->links[a].any || set_has(&r->links[a].peers, b));
}

int
am_tasks(const struct am_reach *r, unsigned a, unsigned b)
{
	return a != b && (r->all || set_has(&r->links[b].senders, a));
}

void
am_one_sided(const struct am_reach *r, struct am_pairs *out)
{
	for (unsigned a = 0; a < r->names->n; a++)
		for (size_t i = 0; i < r->links[a].peers.n; i++)
			if (!am_lists(r, r->links[a].peers.v[i], a))
				pair_add(out, a, r->links[a].peers.v[i]);
}

void
am_both_lanes(const struct am_reach *r, struct am_pairs *out)
{
	/* From the side with fewer edges: a full mesh is not walked when nobody mails. */
	for (unsigned a = 0; a < r->names->n && r->all; a++) {
		const struct am_links *l = &r->links[a];

		for (unsigned i = 0; i < (l->any ? r->names->n : l->peers.n); i++) {
			unsigned b = l->any ? i : l->peers.v[i];

			if (b != a) {
				pair_add(out, a, b);
				pair_add(out, b, a);
			}
		}
	}
	for (unsigned to = 0; to < r->names->n && !r->all; to++)
		for (size_t i = 0; i < r->links[to].senders.n; i++) {
			unsigned from = r->links[to].senders.v[i];

			if (am_lists(r, to, from) || am_lists(r, from, to))
				pair_add(out, from, to);
		}
	pairs_finish(out);
}
