#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "fleet.h"

#define PLAN_MAX (256u << 20)	/* names stand in a plan once per edge */

static int __attribute__((format(printf, 2, 3)))
refuse(struct am_fleet *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->why, sizeof f->why, fmt, ap);
	va_end(ap);
	return -1;
}

/* A refusal about a list: the one of a key in a member of the policy, or the member itself. */
static int
refuse_list(struct am_fleet *f, const char *member, const char *key, const char *what, const char *why)
{
	return refuse(f, "%s%s%.100s: %s%s%s%s", member, key == NULL ? "" : ".", key == NULL ? "" : am_quotes(key),
	    what == NULL ? "" : "\"", what == NULL ? "" : am_quotes(what), what == NULL ? "" : "\": ", why);
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
strings(struct am_fleet *f, jv list, const char *member, const char *key, struct am_names *out)
{
	int rc = 0, n;

	if (jv_get_kind(list) != JV_KIND_ARRAY) {
		jv_free(list);
		return refuse_list(f, member, key, NULL, "it is no list of names");
	}
	n = jv_array_length(jv_copy(list));
	for (int i = 0; i < n && rc == 0; i++) {
		jv v = jv_array_get(jv_copy(list), i);
		const char *s = text_of(v);

		if (s == NULL)
			rc = refuse_list(f, member, key, NULL, "an entry is no string");
		else
			am_names_add(out, s);
		jv_free(v);	/* the document keeps its own reference */
	}
	jv_free(list);
	return rc;
}

/* What is done with a list: the one of a key in a member of the policy, or (key NULL) the member itself. */
typedef int list_fn(struct am_fleet *f, const char *member, const char *key, const struct am_names *list);

/* Consumes list. */
static int
with_list(struct am_fleet *f, const char *member, const char *key, jv list, list_fn *each)
{
	struct am_names names = { 0 };
	int rc = strings(f, list, member, key, &names);

	if (rc == 0)
		rc = each(f, member, key, &names);
	am_names_free(&names);
	return rc;
}

/* For every key of an object, in the order of the file. Absent counts as empty; anything else is refused. */
static int
each_list(struct am_fleet *f, const char *member, list_fn *each)
{
	jv o = jv_object_get(jv_copy(f->policy), jv_string(member));
	int rc = 0;

	if (jv_get_kind(o) != JV_KIND_OBJECT) {
		rc = jv_is_valid(o) ? refuse(f, "%s: it is no object", member) : 0;
		jv_free(o);
		return rc;
	}
	for (int i = jv_object_iter(o); rc == 0 && jv_object_iter_valid(o, i); i = jv_object_iter_next(o, i)) {
		jv k = jv_object_iter_key(o, i);
		const char *key = text_of(k);

		if (key == NULL)
			rc = refuse(f, "%s: a key holds a NUL character", member);
		else
			rc = with_list(f, member, key, jv_object_iter_value(o, i), each);
		jv_free(k);
	}
	jv_free(o);
	return rc;
}

static int
check_group(struct am_fleet *f, const char *member, const char *key, const struct am_names *list)
{
	if (strcmp(key, "all") == 0)
		return refuse_list(f, member, NULL, "all", "no group can have this name, @all means every member");
	for (size_t i = 0; i < list->n; i++)
		if (strchr(list->v[i], '@') != NULL || strcmp(list->v[i], AM_ALLOW_ANY) == 0)
			return refuse_list(f, member, key, list->v[i], "a group holds plain names only");
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
check_peers(struct am_fleet *f, const char *member, const char *key, const struct am_names *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const char *s = list->v[i];

		if (strcmp(s, AM_ALLOW_ANY) == 0 && list->n > 1)
			return refuse_list(f, member, key, s, "it must be the only entry");
		if (s[0] == '@' && !is_group(f, s + 1))
			return refuse_list(f, member, key, s, "no such group");
	}
	return 0;
}

static int
check_senders(struct am_fleet *f, const char *member, const char *recipient, const struct am_names *list)
{
	struct am_names sorted = { 0 };
	int rc = 0;

	for (size_t i = 0; i < list->n && rc == 0; i++) {
		const char *s = list->v[i];

		am_names_add(&sorted, s);
		if (strcmp(s, AM_ALLOW_ANY) == 0 || s[0] == '@')
			rc = refuse_list(f, member, recipient, s, "delegation takes plain names only");
		else if (strcmp(s, recipient) == 0)
			rc = refuse_list(f, member, recipient, NULL, "a member cannot task itself");
	}
	am_names_sort(&sorted);
	if (rc == 0 && sorted.n != list->n)
		rc = refuse_list(f, member, recipient, NULL, "a name stands twice");
	am_names_free(&sorted);
	return rc;
}

static int
check_pair(struct am_fleet *f, const char *member, const char *key, const struct am_names *list)
{
	if (list->n != 2)
		return refuse_list(f, member, key, NULL, "an entry is no pair [sender, recipient]");
	if (strcmp(list->v[0], list->v[1]) == 0)
		return refuse_list(f, member, key, list->v[0], "a pair names it twice");
	return 0;
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
	for (int i = 0; i < n && rc == 0; i++)
		rc = with_list(f, "task_deny", NULL, jv_array_get(jv_copy(deny), i), check_pair);
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

	if (jv_is_valid(v))
		return with_list(f, "default_peers", NULL, v, check_peers);
	jv_free(v);
	return 0;
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
mention(struct am_fleet *f, const char *member, const char *key, const char *name)
{
	const char *problem = am_name_problem(name);

	if (problem != NULL)
		return refuse_list(f, member, key, name, problem);
	am_names_add(&f->members, name);
	return 0;
}

static int
mention_names(struct am_fleet *f, const char *member, const char *key, const struct am_names *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (mention(f, member, key, list->v[i]) != 0)
			return -1;
	return 0;
}

/* A peer list: what is no plain name was checked with the list. */
static int
mention_peers(struct am_fleet *f, const char *member, const char *key, const struct am_names *list)
{
	if (key != NULL && mention(f, member, NULL, key) != 0)
		return -1;
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i][0] != '@' && strcmp(list->v[i], AM_ALLOW_ANY) != 0 &&
		    mention(f, member, key, list->v[i]) != 0)
			return -1;
	return 0;
}

static int
mention_graph(struct am_fleet *f, const char *member, const char *key, const struct am_names *list)
{
	return mention(f, member, NULL, key) != 0 ? -1 : mention_names(f, member, key, list);
}

static int
mention_all(struct am_fleet *f)
{
	jv defaults = am_get(f->policy, "default_peers", JV_KIND_ARRAY);
	jv graph = am_get(f->policy, "task_graph", JV_KIND_OBJECT);
	jv deny = am_get(f->policy, "task_deny", JV_KIND_ARRAY);
	int n = jv_is_valid(deny) ? jv_array_length(jv_copy(deny)) : 0, rc;

	rc = each_list(f, "groups", mention_names);
	if (rc == 0 && jv_is_valid(defaults))
		rc = with_list(f, "default_peers", NULL, jv_copy(defaults), mention_peers);
	if (rc == 0)
		rc = each_list(f, "peers", mention_peers);
	if (rc == 0 && jv_is_valid(graph))
		rc = each_list(f, "task_graph", mention_graph);
	for (int i = 0; i < n && rc == 0; i++)
		rc = with_list(f, "task_deny", NULL, jv_array_get(jv_copy(deny), i), mention_names);
	jv_free(defaults);
	jv_free(graph);
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
	switch (errnum) {
	case 0:			/* its bytes are no policy */
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case EINVAL:		/* no regular file */
		return -1;
	default:
		return -2;
	}
}

void
am_fleet_free(struct am_fleet *f)
{
	am_names_free(&f->members);
	jv_free(f->policy);
	f->policy = jv_invalid();
}

jv
am_plan_read(const char *path)
{
	const char *name = path == NULL || strcmp(path, "-") == 0 ? "<stdin>" : path, *workspace;
	jv plan = am_json_read(path, PLAN_MAX), members;

	if (!jv_is_valid(plan))
		return jv_invalid_with_msg(jv_string_fmt("%s: %s", name, am_json_why(plan)));
	members = am_get(plan, "members", JV_KIND_ARRAY);
	workspace = am_str(plan, "workspace");
	if (!jv_is_valid(members) || workspace == NULL || am_name_problem(workspace) != NULL || am_str(plan, "domain") == NULL) {
		jv_free(plan);
		plan = jv_invalid_with_msg(jv_string_fmt("%s: not a plan; give the output of amap-fleet", name));
	}
	jv_free(members);
	return plan;
}
