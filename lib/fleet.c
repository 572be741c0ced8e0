#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "fleet.h"
#include "utf8.h"

/* ---- rules for names ---- */

const char *
am_name_problem(const char *name)
{
	size_t n = strlen(name);

	if (n == 0)
		return "it is empty";
	if (n > AM_NAME_MAX)
		return "it is longer than 19 characters";
	if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] != '\0')
		return "it holds a character other than a-z, 0-9 and \"-\"";
	if (name[0] == '-' || name[n - 1] == '-')
		return "it begins or ends with \"-\"";
	if (strstr(name, "--") != NULL)
		return "it holds \"--\"";
	return NULL;
}

const char *
am_domain_problem(const char *domain)
{
	const char *p = domain;

	for (;;) {
		size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789-");

		if (n == 0)
			return *p == '\0' || *p == '.' ? "a label is empty" : "it holds a character other than a-z, 0-9, \"-\" and \".\"";
		if (p[0] == '-' || p[n - 1] == '-')
			return "a label begins or ends with \"-\"";
		p += n;
		if (*p == '\0')
			return NULL;
		if (*p++ != '.')
			return "it holds a character other than a-z, 0-9, \"-\" and \".\"";
	}
}

const char *
am_id_problem(const char *id)
{
	const char *p = id;
	uint32_t c;

	if (*id == '\0')
		return "it is empty";
	while (*p != '\0') {
		int n = am_utf8_next(p, strlen(p), &c);

		if (n < 0 || c == ' ' || !am_printable(c))
			return "it holds white space or an unprintable character";
		p += n;
	}
	return NULL;
}

/* ---- lists of names ---- */

void
am_names_add(struct am_names *names, const char *name)
{
	if (names->n == names->cap) {
		names->cap = names->cap == 0 ? 16 : names->cap * 2;
		if ((names->v = reallocarray(names->v, names->cap, sizeof *names->v)) == NULL)
			abort();
	}
	names->v[names->n++] = name;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
am_names_sort(struct am_names *names)
{
	size_t kept = 0;

	if (names->n == 0)
		return;
	qsort(names->v, names->n, sizeof *names->v, by_bytes);
	for (size_t i = 1; i < names->n; i++)
		if (strcmp(names->v[i], names->v[kept]) != 0)
			names->v[++kept] = names->v[i];
	names->n = kept + 1;
}

long
am_names_find(const struct am_names *sorted, const char *name)
{
	const char **hit;

	if (sorted->n == 0)
		return -1;
	hit = bsearch(&name, sorted->v, sorted->n, sizeof *sorted->v, by_bytes);
	return hit == NULL ? -1 : hit - sorted->v;
}

void
am_names_free(struct am_names *names)
{
	free(names->v);
	*names = (struct am_names){ 0 };
}

/* ---- the policy ---- */

static int __attribute__((format(printf, 2, 3)))
refuse(struct am_fleet *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->why, sizeof f->why, fmt, ap);
	va_end(ap);
	return -1;
}

/* Borrows. A string without a NUL character, which lives as long as its document; else NULL. */
static const char *
text_of(jv v)
{
	if (jv_get_kind(v) != JV_KIND_STRING ||
	    strlen(jv_string_value(v)) != (size_t)jv_string_length_bytes(jv_copy(v)))
		return NULL;
	return jv_string_value(v);
}

/* Consumes list: every entry must be a string; adds them all. */
static int
strings(struct am_fleet *f, jv list, const char *where, struct am_names *out)
{
	int rc = 0, n;

	if (jv_get_kind(list) != JV_KIND_ARRAY) {
		jv_free(list);
		return refuse(f, "%s: it is no list of names", where);
	}
	n = jv_array_length(jv_copy(list));
	for (int i = 0; i < n && rc == 0; i++) {
		jv v = jv_array_get(jv_copy(list), i);
		const char *s = text_of(v);

		if (s == NULL)
			rc = refuse(f, "%s: entry %d is no string", where, i + 1);
		else
			am_names_add(out, s);
		jv_free(v);	/* the document keeps its own reference */
	}
	jv_free(list);
	return rc;
}

/*
 * Calls each with every key of an object and its list, in the order of the
 * file. Absent counts as empty; anything but an object is refused.
 */
typedef int each_fn(struct am_fleet *f, const char *key, const struct am_names *list, const char *where);

static int
each_list(struct am_fleet *f, const char *member, each_fn *each)
{
	jv o = jv_object_get(jv_copy(f->policy), jv_string(member));
	int rc = 0;

	if (!jv_is_valid(o)) {
		jv_free(o);
		return 0;
	}
	if (jv_get_kind(o) != JV_KIND_OBJECT) {
		jv_free(o);
		return refuse(f, "%s: it is no object", member);
	}
	for (int i = jv_object_iter(o); rc == 0 && jv_object_iter_valid(o, i); i = jv_object_iter_next(o, i)) {
		jv k = jv_object_iter_key(o, i);
		const char *key = text_of(k);
		struct am_names list = { 0 };
		char where[300];

		snprintf(where, sizeof where, "%s.%.250s", member, key == NULL ? "" : am_quotes(key));
		if (key == NULL)
			rc = refuse(f, "%s: a key holds a NUL character", member);
		else if ((rc = strings(f, jv_object_iter_value(o, i), where, &list)) == 0)
			rc = each(f, key, &list, where);
		am_names_free(&list);
		jv_free(k);
	}
	jv_free(o);
	return rc;
}

static int
check_group(struct am_fleet *f, const char *key, const struct am_names *list, const char *where)
{
	if (strcmp(key, "all") == 0)
		return refuse(f, "groups: a group cannot be named all, @all means every member");
	for (size_t i = 0; i < list->n; i++) {
		if (strchr(list->v[i], '@') != NULL)
			return refuse(f, "%s: %s: a group holds plain names only", where, am_quotes(list->v[i]));
		if (strcmp(list->v[i], AM_ALLOW_ANY) == 0)
			return refuse(f, "%s: " AM_ALLOW_ANY " is no name, a group holds plain names only", where);
	}
	return 0;
}

static int
is_group(const struct am_fleet *f, const char *name)
{
	jv groups;
	int found;

	if (strcmp(name, "all") == 0)
		return 1;
	groups = am_get(f->policy, "groups", JV_KIND_OBJECT);
	found = am_has(groups, name);
	jv_free(groups);
	return found;
}

static int
check_peers(struct am_fleet *f, const char *key, const struct am_names *list, const char *where)
{
	(void)key;
	for (size_t i = 0; i < list->n; i++) {
		const char *s = list->v[i];

		if (strcmp(s, AM_ALLOW_ANY) == 0 && list->n > 1)
			return refuse(f, "%s: " AM_ALLOW_ANY " must be the only entry", where);
		if (s[0] == '@' && !is_group(f, s + 1))
			return refuse(f, "%s: %s: no such group", where, am_quotes(s));
	}
	return 0;
}

static int
check_senders(struct am_fleet *f, const char *recipient, const struct am_names *list, const char *where)
{
	struct am_names sorted = { 0 };
	int rc = 0;

	for (size_t i = 0; i < list->n && rc == 0; i++) {
		const char *s = list->v[i];

		am_names_add(&sorted, s);
		if (strcmp(s, AM_ALLOW_ANY) == 0 || s[0] == '@')
			rc = refuse(f, "%s: %s: delegation takes plain names only", where, am_quotes(s));
		else if (strcmp(s, recipient) == 0)
			rc = refuse(f, "%s: a member cannot task itself", where);
	}
	am_names_sort(&sorted);
	if (rc == 0 && sorted.n != list->n)
		rc = refuse(f, "%s: a name stands twice", where);
	am_names_free(&sorted);
	return rc;
}

static int
check_deny(struct am_fleet *f)
{
	jv deny = jv_object_get(jv_copy(f->policy), jv_string("task_deny"));
	int n, rc = 0;

	if (jv_get_kind(deny) != JV_KIND_ARRAY) {
		/* null, "" and {} read as absent */
		int absent = !jv_is_valid(deny) || jv_get_kind(deny) == JV_KIND_NULL ||
		    jv_equal(jv_copy(deny), jv_string("")) || jv_equal(jv_copy(deny), jv_object());

		jv_free(deny);
		return absent ? 0 : refuse(f, "task_deny: it is no list of [sender, recipient] pairs");
	}
	n = jv_array_length(jv_copy(deny));
	for (int i = 0; i < n && rc == 0; i++) {
		struct am_names pair = { 0 };
		char where[40];

		snprintf(where, sizeof where, "task_deny: entry %d", i + 1);
		rc = strings(f, jv_array_get(jv_copy(deny), i), where, &pair);
		if (rc == 0 && pair.n != 2)
			rc = refuse(f, "%s is no pair [sender, recipient]", where);
		else if (rc == 0 && strcmp(pair.v[0], pair.v[1]) == 0)
			rc = refuse(f, "%s names the same member twice", where);
		am_names_free(&pair);
	}
	jv_free(deny);
	return rc;
}

static int
check_graph(struct am_fleet *f)
{
	jv graph = jv_object_get(jv_copy(f->policy), jv_string("task_graph"));
	int all = jv_equal(jv_copy(graph), jv_string("ALL")), object = jv_get_kind(graph) == JV_KIND_OBJECT;
	int absent = !jv_is_valid(graph);

	jv_free(graph);
	if (all || absent)
		return 0;
	if (!object)
		return refuse(f, "task_graph: it is neither an object nor \"ALL\"");
	return each_list(f, "task_graph", check_senders);
}

static int
check_default_peers(struct am_fleet *f)
{
	jv v = jv_object_get(jv_copy(f->policy), jv_string("default_peers"));
	struct am_names list = { 0 };
	int rc;

	if (!jv_is_valid(v)) {
		jv_free(v);
		return 0;
	}
	rc = strings(f, v, "default_peers", &list);
	if (rc == 0)
		rc = check_peers(f, NULL, &list, "default_peers");
	am_names_free(&list);
	return rc;
}

/* Keys that mean another kind of file, whatever their value. */
static int
check_foreign(struct am_fleet *f)
{
	static const char *const manifest[] = { "feature", "schema", "create", "mounts", "entry", "expose",
	    "agent_args", "receives", NULL };
	static const char *const selection[] = { "sandboxes", "agents", "container_recreate_interval_hours", NULL };

	for (int i = 0; manifest[i] != NULL; i++)
		if (am_has(f->policy, manifest[i]))
			return refuse(f, "%s: this key belongs to a feature manifest; give a fleet policy", manifest[i]);
	for (int i = 0; selection[i] != NULL; i++)
		if (am_has(f->policy, selection[i]))
			return refuse(f, "%s: a fleet policy has no such key; its members are the names it mentions",
			    selection[i]);
	return 0;
}

static int
check_workspace(struct am_fleet *f)
{
	const char *problem;

	if (!am_has(f->policy, "workspace"))
		return refuse(f, "workspace: it is absent; name the one workspace of the fleet");
	if ((f->workspace = am_str(f->policy, "workspace")) == NULL)
		return refuse(f, "workspace: it is no string");
	if ((problem = am_name_problem(f->workspace)) != NULL)
		return refuse(f, "workspace: \"%s\": %s", am_quotes(f->workspace), problem);
	return 0;
}

static int
check_version(struct am_fleet *f)
{
	jv v = jv_object_get(jv_copy(f->policy), jv_string("version"));
	int good = !jv_is_valid(v) || jv_equal(jv_copy(v), jv_number(1));

	jv_free(v);
	return good ? 0 : refuse(f, "version: it is not 1");
}

/* null counts as absent, which is found later. */
static int
check_domain(struct am_fleet *f)
{
	jv v = jv_object_get(jv_copy(f->policy), jv_string("fleet_domain"));
	int absent = !jv_is_valid(v) || jv_get_kind(v) == JV_KIND_NULL;
	const char *problem;

	jv_free(v);
	if (absent)
		return 0;
	if ((f->domain = am_str(f->policy, "fleet_domain")) == NULL)
		return refuse(f, "fleet_domain: it is no string");
	if ((problem = am_domain_problem(f->domain)) != NULL)
		return refuse(f, "fleet_domain: \"%s\": %s", am_quotes(f->domain), problem);
	return 0;
}

/* ---- every mention ---- */

static int
mention(struct am_fleet *f, const char *name, const char *where)
{
	const char *problem = am_name_problem(name);

	if (problem != NULL)
		return refuse(f, "%s: the name \"%s\": %s", where, am_quotes(name), problem);
	am_names_add(&f->members, name);
	return 0;
}

static int
mention_names(struct am_fleet *f, const char *key, const struct am_names *list, const char *where)
{
	(void)key;
	for (size_t i = 0; i < list->n; i++)
		if (mention(f, list->v[i], where) != 0)
			return -1;
	return 0;
}

/* A peer list: what is no plain name was checked with the list. */
static int
mention_peers(struct am_fleet *f, const char *key, const struct am_names *list, const char *where)
{
	if (key != NULL && mention(f, key, where) != 0)
		return -1;
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i][0] != '@' && strcmp(list->v[i], AM_ALLOW_ANY) != 0 &&
		    mention(f, list->v[i], where) != 0)
			return -1;
	return 0;
}

static int
mention_graph(struct am_fleet *f, const char *key, const struct am_names *list, const char *where)
{
	return mention(f, key, where) != 0 ? -1 : mention_names(f, key, list, where);
}

/* Consumes list; what is no list was found harmless before. */
static int
mention_array(struct am_fleet *f, jv list, const char *where, each_fn *each)
{
	struct am_names names = { 0 };
	int rc;

	if (jv_get_kind(list) != JV_KIND_ARRAY) {
		jv_free(list);
		return 0;
	}
	rc = strings(f, list, where, &names);
	if (rc == 0)
		rc = each(f, NULL, &names, where);
	am_names_free(&names);
	return rc;
}

static int
mention_all(struct am_fleet *f)
{
	jv deny = am_get(f->policy, "task_deny", JV_KIND_ARRAY);
	jv graph = am_get(f->policy, "task_graph", JV_KIND_OBJECT);
	int has_graph = jv_is_valid(graph), rc;

	jv_free(graph);
	rc = each_list(f, "groups", mention_names);
	if (rc == 0)
		rc = mention_array(f, am_get(f->policy, "default_peers", JV_KIND_ARRAY), "default_peers", mention_peers);
	if (rc == 0)
		rc = each_list(f, "peers", mention_peers);
	if (rc == 0 && has_graph)
		rc = each_list(f, "task_graph", mention_graph);
	for (int i = 0, n = jv_is_valid(deny) ? jv_array_length(jv_copy(deny)) : 0; i < n && rc == 0; i++)
		rc = mention_array(f, jv_array_get(jv_copy(deny), i), "task_deny", mention_names);
	jv_free(deny);
	return rc;
}

int
am_fleet_load(struct am_fleet *f, jv policy)
{
	*f = (struct am_fleet){ .policy = policy };
	if (jv_get_kind(policy) != JV_KIND_OBJECT)
		return refuse(f, "it is no JSON object");
	if (check_foreign(f) != 0 || check_workspace(f) != 0)
		return -1;
	if (am_has(policy, "_source"))
		return refuse(f, "_source: this key is reserved; remove it");
	if (check_version(f) != 0 || each_list(f, "groups", check_group) != 0 || check_default_peers(f) != 0 ||
	    each_list(f, "peers", check_peers) != 0 || check_domain(f) != 0 || check_deny(f) != 0 ||
	    check_graph(f) != 0)
		return -1;
	if (f->domain == NULL)
		return refuse(f, "fleet_domain: it is absent; every address ends with it");
	if (mention_all(f) != 0)
		return -1;
	am_names_sort(&f->members);
	if (f->members.n == 0)
		return refuse(f, "it names no member; name one in groups, peers or task_graph");
	return 0;
}

int
am_fleet_read(struct am_fleet *f, const char *path, int nofollow)
{
	int use_stdin = path == NULL || strcmp(path, "-") == 0;
	jv policy = use_stdin ? am_json_read(NULL, AM_JSON_MAX) : am_json_read_regular(path, nofollow, AM_JSON_MAX);
	int errnum = errno;

	if (jv_is_valid(policy))
		return am_fleet_load(f, policy);
	*f = (struct am_fleet){ .policy = jv_invalid() };
	refuse(f, "%s", am_json_why(policy));
	return errnum == 0 ? -1 : -2;
}

void
am_fleet_free(struct am_fleet *f)
{
	am_names_free(&f->members);
	jv_free(f->policy);
	f->policy = jv_invalid();
}
