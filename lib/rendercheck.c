#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "render.h"
#include "yamlread.h"

#define fault(out, ...) fault_list(out, (const char *const []){ __VA_ARGS__, NULL })

static void
fault_list(struct am_buf *out, const char *const *strings)
{
	if (out->n > 0)
		am_buf_strings(out, "; ");
	am_buf_list(out, strings);
}

static int
overlap(const char *a, const char *b)
{
	return am_path_under(a, b) || am_path_under(b, a);
}

static void
check_target(struct am_buf *out, const struct am_member *m, int i)
{
	static const char *const reserved[] = { "/sandbox", "/opt/openshell", "/etc/openshell", "/etc/openshell-tls",
	    "/run/openshell", "/run/openshell-sidecar", "/run/netns", "/var/run/netns", "/proc", "/sys", "/dev", NULL };
	const struct am_row *row = &m->rows[i];
	const char *problem = am_path_problem(row->target);

	if (problem != NULL) {
		fault(out, "the target of ", row->role, ": ", problem);
		return;
	}
	for (int n = 0; reserved[n] != NULL; n++)
		if (overlap(row->target, reserved[n]))
			fault(out, "the target of ", row->role, " overlaps ", reserved[n]);
	if (am_path_under(row->target, "/tmp"))
		fault(out, "the target of ", row->role, " lies below /tmp, which is writable");
	for (int n = 0; n < i; n++)
		if (am_path_problem(m->rows[n].target) == NULL && overlap(row->target, m->rows[n].target))
			fault(out, "the targets of ", m->rows[n].role, " and ", row->role, " overlap");
}

int
am_rows_are_own(const struct am_member *m)
{
	for (int i = 0; i < AM_ROWS; i++)
		if (!am_row_is_own(&m->rows[i], i))
			return 0;
	return 1;
}

static void
check_rows(struct am_buf *out, const struct am_member *m)
{
	/* The table's own rows have no fault, which a test shows: this is for rows from elsewhere. */
	for (int i = 0; i < AM_ROWS && !am_rows_are_own(m); i++) {
		if (!m->rows[i].read_only && strcmp(m->rows[i].role, "outbox") != 0)
			fault(out, m->rows[i].role, " is writable");
		check_target(out, m, i);
	}
}

/* ---- the policy, read back ---- */

/* How often a list of the policy holds a path. */
static int
holds(const struct am_yaml *list, const char *path)
{
	const struct am_yaml *e = list == NULL || list->kind != AM_YAML_LIST ? NULL : list->first;
	int n = 0;

	for (; e != NULL; e = e->next)
		n += e->kind == AM_YAML_SCALAR && !e->plain && strcmp(e->text, path) == 0;
	return n;
}

static int
length(const struct am_yaml *list)
{
	const struct am_yaml *e = list == NULL || list->kind != AM_YAML_LIST ? NULL : list->first;
	int n = 0;

	for (; e != NULL; e = e->next)
		n++;
	return n;
}

/* The members of a map must be these and no other. */
static void
check_keys(struct am_buf *out, const struct am_yaml *map, const char *where, const char *const *keys)
{
	const struct am_yaml *m = map == NULL || map->kind != AM_YAML_MAP ? NULL : map->first;
	int n;

	for (n = 0; keys[n] != NULL; n++)
		if (am_yaml_get(map, keys[n]) == NULL)
			fault(out, "the policy lacks ", keys[n], " in ", where);
	for (; m != NULL; m = m->next) {
		for (n = 0; keys[n] != NULL && strcmp(keys[n], m->key) != 0; )
			n++;
		if (keys[n] == NULL)
			fault(out, "the policy has ", m->key, " in ", where);
	}
}

static void
check_scalar(struct am_buf *out, const struct am_yaml *map, const char *key, const char *want, int plain)
{
	const struct am_yaml *v = am_yaml_get(map, key);

	if (v == NULL || v->kind != AM_YAML_SCALAR || v->plain != plain || strcmp(v->text, want) != 0)
		fault(out, "the policy's ", key, " is not ", want);
}

/* One of the two lists: the fixed paths and the targets with that flag, each once, and no other. */
static void
check_list(struct am_buf *out, const struct am_yaml *files, const char *key, const char *const *fixed,
    const struct am_member *m, int read_only)
{
	const struct am_yaml *list = am_yaml_get(files, key);
	int n = 0;

	for (; fixed[n] != NULL; n++)
		if (holds(list, fixed[n]) != 1)
			fault(out, "the policy's ", key, " has not ", fixed[n], " once");
	for (int i = 0; i < AM_ROWS; i++) {
		int want = m->rows[i].read_only == read_only;

		n += want;
		if (holds(list, m->rows[i].target) != want)
			fault(out, "the policy's ", key, " and the flag of ", m->rows[i].role, " disagree");
	}
	if (length(list) != n)
		fault(out, "the policy's ", key, " has other paths");
}

static void
check_policy(struct am_buf *out, const struct am_rendering *r)
{
	static const char *const top[] = { "version", "filesystem_policy", "landlock", "process", NULL };
	static const char *const files[] = { "include_workdir", "read_only", "read_write", NULL };
	static const char *const process[] = { "run_as_user", "run_as_group", NULL };
	static const char *const landlock[] = { "compatibility", NULL };
	char why[256] = "", id[16];
	struct am_yaml *y = am_yaml_parse(r->policy->s, r->policy->n, why);

	if (y == NULL) {
		fault(out, "the policy cannot be read back: ", why);
		return;
	}
	check_keys(out, y, "the document", top);
	check_keys(out, am_yaml_get(y, "filesystem_policy"), "filesystem_policy", files);
	check_keys(out, am_yaml_get(y, "process"), "process", process);
	check_keys(out, am_yaml_get(y, "landlock"), "landlock", landlock);
	check_scalar(out, y, "version", "1", 1);
	check_scalar(out, am_yaml_get(y, "filesystem_policy"), "include_workdir", "false", 1);
	check_scalar(out, am_yaml_get(y, "landlock"), "compatibility", "hard_requirement", 0);
	snprintf(id, sizeof id, "%u", r->run_as->uid);
	check_scalar(out, am_yaml_get(y, "process"), "run_as_user", id, 0);
	snprintf(id, sizeof id, "%u", r->run_as->gid);
	check_scalar(out, am_yaml_get(y, "process"), "run_as_group", id, 0);
	check_list(out, am_yaml_get(y, "filesystem_policy"), "read_only", am_policy_read_only, r->member, 1);
	check_list(out, am_yaml_get(y, "filesystem_policy"), "read_write", am_policy_read_write, r->member, 0);
	am_yaml_free(y);
}

/* ---- the command ---- */

#define WORDS 64

static void
check_once(struct am_buf *out, const char *const *w, size_t n, const char *option, const char *value)
{
	int times = 0, right = 1;

	for (size_t i = 0; i < n; i++)
		if (strcmp(w[i], option) == 0) {
			times++;
			right = value == NULL || (i + 1 < n && strcmp(w[i + 1], value) == 0);
		}
	if (times != 1 || !right)
		fault(out, "the command has not ", option, value == NULL ? "" : " ", value == NULL ? "" : value, " once");
}

static void
check_never(struct am_buf *out, const char *const *w, size_t n, const char *option)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(w[i], option) == 0)
			fault(out, "the command has ", option);
}

/* Over a text that must stand at p; NULL when it does not, or p is NULL. */
static const char *
over(const char *p, const char *text)
{
	size_t n = strlen(text);

	return p != NULL && strncmp(p, text, n) == 0 ? p + n : NULL;
}

/* Over a JSON string that must say this. */
static const char *
over_string(const char *p, const char *want)
{
	const char *end = p;
	int escaped = 0, same;
	char *token;
	jv v;

	if (p == NULL || *end++ != '"')
		return NULL;
	for (; *end != '"'; end++) {
		escaped |= *end == '\\';
		end += *end == '\\';
		if (*end == '\0')
			return NULL;
	}
	end++;
	if (!escaped)
		return strlen(want) == (size_t)(end - p) - 2 && memcmp(p + 1, want, strlen(want)) == 0 ? end : NULL;
	if ((token = strndup(p, (size_t)(end - p))) == NULL)
		abort();
	v = am_json_parse(token, (size_t)(end - p));
	free(token);
	same = jv_get_kind(v) == JV_KIND_STRING && strcmp(jv_string_value(v), want) == 0;
	jv_free(v);
	return same ? end : NULL;
}

/* Keys sorted, no spaces, and every mount as its row. */
static void
check_driver_config(struct am_buf *out, const char *text, const struct am_member *m)
{
	const char *p = over(text, "{\"docker\":{\"mounts\":[");

	for (int i = 0; i < AM_ROWS; i++) {
		const struct am_row *r = &m->rows[i];

		p = over(over(p, i == 0 ? "{" : ",{"), r->read_only ? "\"read_only\":true" : "\"read_only\":false");
		p = over_string(over(p, ",\"source\":"), r->source);
		p = over_string(over(p, ",\"target\":"), r->target);
		p = over(p, ",\"type\":\"bind\"}");
	}
	p = over(p, "]}}");
	if (p == NULL || *p != '\0')
		fault(out, "the command's driver config is unlike the rows");
}

static void
check_words(struct am_buf *out, const struct am_words *words, const struct am_member *m)
{
	const char *w[WORDS] = { NULL }, *s = words->text.s;
	size_t n = 0, options = 0;

	for (; n < words->n && n < WORDS; n++, s += strlen(s) + 1)
		w[n] = s;
	while (options < n && strcmp(w[options], "--") != 0)
		options++;
	check_once(out, w, n, "--", NULL);
	check_once(out, w, options, "--provider", "amap-claude-code");
	check_once(out, w, options, "--detach", NULL);
	check_once(out, w, options, "--tty", NULL);
	check_once(out, w, options, "--auto-providers", NULL);
	check_never(out, w, options, "--no-tty");
	check_never(out, w, options, "--no-auto-providers");
	check_once(out, w, options, "--driver-config-json", NULL);
	for (size_t i = 1; i < options; i++)
		if (strcmp(w[i - 1], "--driver-config-json") == 0)
			check_driver_config(out, w[i], m);
	for (size_t i = 0; i < n - options || am_main_command[i] != NULL; i++)
		if (am_main_command[i] == NULL || i == n - options || strcmp(w[options + i], am_main_command[i]) != 0) {
			fault(out, "another command follows --");
			break;
		}
}

char *
am_render_problems(const struct am_rendering *r)
{
	struct am_buf out = { 0 };

	check_rows(&out, r->member);
	if (r->policy != NULL && out.n == 0)
		check_policy(&out, r);
	if (r->words != NULL && out.n == 0)
		check_words(&out, r->words, r->member);
	return out.n == 0 ? NULL : am_buf_end(&out);
}
