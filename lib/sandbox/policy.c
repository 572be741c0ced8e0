#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../path.h"
#include "policy.h"

/* Reasons of one kind, collected into one line. */
struct refusal {
	enum ams_policy_fault fault;
	char *why;
};

__attribute__((format(printf, 3, 4))) static int
fail(struct refusal *r, enum ams_policy_fault fault, const char *fmt, ...)
{
	char one[256];
	size_t used = strlen(r->why);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(one, sizeof one, fmt, ap);
	va_end(ap);
	/* What cannot be read comes first; unsafe things are all listed. */
	if (r->fault == AMS_POLICY_FINE || (r->fault == AMS_POLICY_UNSAFE && fault == AMS_POLICY_UNSAFE)) {
		r->fault = fault;
		snprintf(r->why + used, 512 - used, "%s%s", used ? "; " : "", one);
	}
	return -1;
}

static int
only_keys(struct refusal *r, const struct am_yaml *map, const char *where, const char *const *known)
{
	if (map == NULL)
		return 0;
	if (map->kind != AM_YAML_MAP)
		return fail(r, AMS_POLICY_UNREADABLE, "line %ld: %s: not a map", map->line, where);
	for (const struct am_yaml *n = map->first; n != NULL; n = n->next) {
		size_t i = 0;

		while (known[i] != NULL && strcmp(known[i], n->key) != 0)
			i++;
		if (known[i] == NULL)
			return fail(r, AMS_POLICY_UNREADABLE, "line %ld: %s: unknown field `%.64s`", n->line, where, n->key);
	}
	return 0;
}

static const char *
scalar(struct refusal *r, const struct am_yaml *map, const char *key)
{
	const struct am_yaml *n = am_yaml_get(map, key);

	if (n == NULL)
		return NULL;
	if (n->kind != AM_YAML_SCALAR) {
		fail(r, AMS_POLICY_UNREADABLE, "line %ld: %s: not a single value", n->line, key);
		return NULL;
	}
	return n->text;
}

static int
policy_path(struct refusal *r, const char *path, int writable)
{
	if (strlen(path) > AMS_POLICY_PATH_MAX)
		return fail(r, AMS_POLICY_UNSAFE, "a path is longer than %d bytes", AMS_POLICY_PATH_MAX);
	if (strcmp(path, "/") == 0)
		return writable ? fail(r, AMS_POLICY_UNSAFE, "read_write path '/' is too broad") : 0;
	if (path[0] != '/')
		return fail(r, AMS_POLICY_UNSAFE, "path '%.100s' is not absolute", path);
	if (am_path_problem(path) != NULL)
		return fail(r, AMS_POLICY_UNSAFE, "path '%.100s': %s", path, am_path_problem(path));
	return 0;
}

static void
paths(struct refusal *r, const struct am_yaml *fs, const char *key, const char **list, size_t *n, int writable)
{
	const struct am_yaml *seq = am_yaml_get(fs, key);

	if (seq == NULL)
		return;
	if (seq->kind != AM_YAML_LIST) {
		fail(r, AMS_POLICY_UNREADABLE, "line %ld: %s: not a list", seq->line, key);
		return;
	}
	for (const struct am_yaml *e = seq->first; e != NULL; e = e->next) {
		if (e->kind != AM_YAML_SCALAR) {
			fail(r, AMS_POLICY_UNREADABLE, "line %ld: %s: not a path", e->line, key);
			return;
		}
		if (*n == AMS_POLICY_PATHS) {
			fail(r, AMS_POLICY_UNSAFE, "more than %d paths", AMS_POLICY_PATHS);
			return;
		}
		if (policy_path(r, e->text, writable) == 0)
			list[(*n)++] = e->text;
	}
}

/* "sandbox" or a number from 1 to 4294967294, in plain decimal. */
static void
identity(struct refusal *r, const char *field, const char *value)
{
	char *end;
	unsigned long long n;

	if (value == NULL || strcmp(value, "sandbox") == 0)
		return;
	n = value[0] >= '1' && value[0] <= '9' ? strtoull(value, &end, 10) : 0;
	if (n == 0 || *end != '\0' || n > 4294967294ull)
		fail(r, AMS_POLICY_UNSAFE, "%s must be 'sandbox' or a numeric UID/GID in range [1, 4294967294], got '%.40s'",
		    field, value);
}

static void
networks(struct refusal *r, struct ams_policy *p)
{
	static const char *const rule_keys[] = { "name", "endpoints", "binaries", NULL };

	if ((p->networks = am_yaml_get(p->tree, "network_policies")) == NULL)
		return;
	if (p->networks->kind != AM_YAML_MAP) {
		fail(r, AMS_POLICY_UNREADABLE, "line %ld: network_policies: not a map", p->networks->line);
		return;
	}
	for (const struct am_yaml *n = p->networks->first; n != NULL; n = n->next) {
		if (strncmp(n->key, "_provider_", 10) == 0)
			fail(r, AMS_POLICY_UNSAFE, "network policy key '%.64s' uses the reserved prefix '_provider_'", n->key);
		only_keys(r, n, "network_policies", rule_keys);
	}
}

/* What a policy without a single path gets, so that a program can start at all. */
static void
baseline(struct ams_policy *p)
{
	static const char *const ro[] = { "/bin", "/usr", "/lib", "/lib64", "/proc", "/dev/urandom", "/etc", "/var/log" };
	static const char *const rw[] = { "/sandbox", "/tmp", "/dev/null" };

	for (p->n_ro = 0; p->n_ro < sizeof ro / sizeof ro[0]; p->n_ro++)
		p->read_only[p->n_ro] = ro[p->n_ro];
	for (p->n_rw = 0; p->n_rw < sizeof rw / sizeof rw[0]; p->n_rw++)
		p->read_write[p->n_rw] = rw[p->n_rw];
}

void
ams_policy_default(struct ams_policy *p)
{
	memset(p, 0, sizeof *p);
	p->hard = 1;
	baseline(p);
}

static void
overlaps(struct refusal *r, const struct ams_policy *p)
{
	if (p->n_ro + p->n_rw > AMS_POLICY_PATHS)
		fail(r, AMS_POLICY_UNSAFE, "more than %d paths", AMS_POLICY_PATHS);
	for (size_t i = 0; i < p->n_ro; i++)
		for (size_t j = 0; j < p->n_rw; j++)
			if (am_path_under(p->read_only[i], p->read_write[j]))
				fail(r, AMS_POLICY_UNSAFE, "read_only path '%.100s' has no effect at or below read_write path '%.100s'",
				    p->read_only[i], p->read_write[j]);
}

enum ams_policy_fault
ams_policy_parse(const char *text, size_t len, struct ams_policy *p, char why[512])
{
	static const char *const top_keys[] = { "version", "filesystem_policy", "landlock", "process", "network_policies", NULL };
	static const char *const fs_keys[] = { "include_workdir", "read_only", "read_write", NULL };
	static const char *const landlock_keys[] = { "compatibility", NULL };
	static const char *const process_keys[] = { "run_as_user", "run_as_group", NULL };
	struct refusal r = { .why = why };
	const struct am_yaml *fs;
	const char *s;

	memset(p, 0, sizeof *p);
	why[0] = '\0';
	if ((p->tree = am_yaml_parse(text, len, why)) == NULL)
		return AMS_POLICY_UNREADABLE;
	if (only_keys(&r, p->tree, "policy", top_keys) == 0) {
		fs = am_yaml_get(p->tree, "filesystem_policy");
		only_keys(&r, fs, "filesystem_policy", fs_keys);
		only_keys(&r, am_yaml_get(p->tree, "landlock"), "landlock", landlock_keys);
		only_keys(&r, am_yaml_get(p->tree, "process"), "process", process_keys);

		if ((s = scalar(&r, p->tree, "version")) == NULL || strcmp(s, "1") != 0)
			fail(&r, AMS_POLICY_UNREADABLE, "version: must be 1");
		if ((s = scalar(&r, fs, "include_workdir")) != NULL) {
			if (strcmp(s, "true") != 0 && strcmp(s, "false") != 0)
				fail(&r, AMS_POLICY_UNREADABLE, "include_workdir: must be true or false");
			p->include_workdir = strcmp(s, "true") == 0;
		}
		paths(&r, fs, "read_only", p->read_only, &p->n_ro, 0);
		paths(&r, fs, "read_write", p->read_write, &p->n_rw, 1);
		if ((s = scalar(&r, am_yaml_get(p->tree, "landlock"), "compatibility")) != NULL) {
			if (strcmp(s, "best_effort") != 0 && strcmp(s, "hard_requirement") != 0)
				fail(&r, AMS_POLICY_UNREADABLE, "landlock.compatibility: must be best_effort or hard_requirement");
			p->hard = strcmp(s, "hard_requirement") == 0;
		}
		p->user = scalar(&r, am_yaml_get(p->tree, "process"), "run_as_user");
		p->group = scalar(&r, am_yaml_get(p->tree, "process"), "run_as_group");
		identity(&r, "process.run_as_user", p->user);
		identity(&r, "process.run_as_group", p->group);
		networks(&r, p);
		if (p->n_ro == 0 && p->n_rw == 0)
			baseline(p);
		if (p->include_workdir && p->n_rw < AMS_POLICY_PATHS)
			p->read_write[p->n_rw++] = AMS_WORKDIR;
		overlaps(&r, p);
	}
	if (r.fault != AMS_POLICY_FINE)
		ams_policy_free(p);
	return r.fault;
}

void
ams_policy_free(struct ams_policy *p)
{
	am_yaml_free(p->tree);
	memset(p, 0, sizeof *p);
}

uid_t
ams_policy_uid(const struct ams_policy *p, uid_t fallback)
{
	return p->user == NULL || strcmp(p->user, "sandbox") == 0 ? fallback : (uid_t)strtoul(p->user, NULL, 10);
}

gid_t
ams_policy_gid(const struct ams_policy *p, gid_t fallback)
{
	return p->group == NULL || strcmp(p->group, "sandbox") == 0 ? fallback : (gid_t)strtoul(p->group, NULL, 10);
}
