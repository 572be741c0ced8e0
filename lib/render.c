#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "render.h"

#define PAYLOAD "/opt/amap/payload"

int
am_run_as_parse(const char *s, struct am_run_as *out)
{
	unsigned *part[2] = { &out->uid, &out->gid };

	for (int i = 0; i < 2; i++) {
		unsigned long long v = 0;
		const char *from = s;

		for (; *s >= '0' && *s <= '9'; s++) {
			v = v * 10 + (unsigned)(*s - '0');
			if (v > 4294967294u)
				return -1;
		}
		if (s == from || v == 0 || *s != (i == 0 ? ':' : '\0'))
			return -1;
		*part[i] = (unsigned)v;
		s++;
	}
	return 0;
}

/* ---- the policy ---- */

static void
yaml_string(FILE *fp, const char *s)
{
	/* Paths that passed am_path_problem: printable UTF-8 without white space. */
	putc('"', fp);
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', fp);
		putc(*s, fp);
	}
	putc('"', fp);
}

static void
yaml_list(FILE *fp, const char *key, const char *const *fixed, const struct am_member *m, int read_only)
{
	fprintf(fp, "  %s:\n", key);
	for (; *fixed != NULL; fixed++)
		fprintf(fp, "    - \"%s\"\n", *fixed);
	for (int i = 0; i < AM_ROWS; i++) {
		if (m->rows[i].read_only != read_only)
			continue;
		fprintf(fp, "    - ");
		yaml_string(fp, m->rows[i].target);
		putc('\n', fp);
	}
}

char *
am_render_policy(const struct am_member *m, const struct am_run_as *run_as)
{
	static const char *const ro[] = { "/bin", "/usr", "/lib", "/proc", "/dev/urandom", "/etc", "/var/log", NULL };
	static const char *const rw[] = { "/sandbox", "/tmp", "/dev/null", NULL };
	char *text;
	size_t len;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL)
		abort();
	fprintf(fp, "# Sandbox policy rendered by amap-openshell. Re-render it; do not edit it.\n"
	    "version: 1\nfilesystem_policy:\n  include_workdir: false\n");
	yaml_list(fp, "read_only", ro, m, 1);
	yaml_list(fp, "read_write", rw, m, 0);
	fprintf(fp, "landlock:\n  compatibility: \"hard_requirement\"\n"
	    "process:\n  run_as_user: \"%u\"\n  run_as_group: \"%u\"\n", run_as->uid, run_as->gid);
	if (fclose(fp) != 0)
		abort();
	return text;
}

/* ---- the create vector ---- */

static jv
driver_config(const struct am_member *m)
{
	jv mounts = jv_array(), config;
	char *text;

	for (int i = 0; i < AM_ROWS; i++) {
		jv mount = am_set(jv_object(), "read_only", jv_bool(m->rows[i].read_only));

		mount = am_set_str(mount, "source", m->rows[i].source);
		mount = am_set_str(mount, "target", m->rows[i].target);
		mounts = jv_array_append(mounts, am_set_str(mount, "type", "bind"));
	}
	config = am_set(jv_object(), "docker", am_set(jv_object(), "mounts", mounts));
	text = am_json_text(config, AM_SORTED, NULL);
	jv_free(config);
	config = jv_string(text);
	free(text);
	return config;
}

/* Consumes words: appends strings up to a NULL. */
static jv
append(jv words, const char *const *more)
{
	for (; *more != NULL; more++)
		words = jv_array_append(words, jv_string(*more));
	return words;
}

#define WORDS(...) ((const char *const []){ __VA_ARGS__, NULL })

jv
am_render_vector(const struct am_member *m, const char *image, int restart_policy)
{
	static const char *const lanes[] = { "--env", "AMAP_INBOX_DIR=/opt/amap/lanes/inbox",
	    "--env", "AMAP_PEER_DIR=/opt/amap/lanes/peer", "--env", "AMAP_OUTBOX_DIR=/opt/amap/lanes/outbox", NULL };
	jv words = append(jv_array(), WORDS("openshell", "--workspace", m->workspace, "sandbox", "create", "--name",
	    m->name, "--from", image, "--provider", "amap-claude-code", "--auto-providers", "--policy"));

	words = jv_array_append(words, jv_string_fmt("%s/policies/%s.yaml", m->home, m->name));
	words = append(words, WORDS("--driver-config-json"));
	words = jv_array_append(words, driver_config(m));
	words = append(words, lanes);
	words = append(words, WORDS("--env"));
	words = jv_array_append(words, jv_string_fmt("AMAP_SELF_ADDRESS=%s", m->address));
	words = append(words, WORDS("--env"));
	words = jv_array_append(words, jv_string_fmt("AMAP_SELF=%s", m->address));
	words = append(words, WORDS("--env", "AMAP_ROSTER_DIR=/opt/amap/roster"));
	if (restart_policy)
		words = append(words, WORDS("--restart-policy", "on-failure"));
	return append(words, WORDS("--detach", "--tty", "--", PAYLOAD "/amap-main", "--mcp-config",
	    PAYLOAD "/mcp-servers.json", "--append-system-prompt-file", PAYLOAD "/INBOX-POLICY.md", "--settings",
	    PAYLOAD "/claude-settings.json", "--dangerously-skip-permissions"));
}

static void
shell_word(FILE *fp, const char *s)
{
	static const char bare[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";

	if (*s != '\0' && s[strspn(s, bare)] == '\0') {
		fputs(s, fp);
		return;
	}
	putc('\'', fp);
	for (; *s != '\0'; s++) {
		if (*s == '\'')
			fputs("'\"'\"'", fp);
		else
			putc(*s, fp);
	}
	putc('\'', fp);
}

char *
am_render_script(jv vector)
{
	int n = jv_array_length(jv_copy(vector)), newline = 0;
	char *text;
	size_t len;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL)
		abort();
	for (int i = 0; i < n; i++) {
		jv word = jv_array_get(jv_copy(vector), i);

		newline |= strchr(jv_string_value(word), '\n') != NULL;
		if (i > 0)
			putc(' ', fp);
		shell_word(fp, jv_string_value(word));
		jv_free(word);
	}
	putc('\n', fp);
	if (fclose(fp) != 0)
		abort();
	if (newline) {
		free(text);
		return NULL;
	}
	return text;
}

jv
am_file_record(const char *path, const char *content)
{
	jv r = am_set_str(jv_object(), "path", path);

	return am_set_str(am_set_str(r, "mode", "0644"), "content", content);
}

/* ---- what must never be rendered ---- */

static void __attribute__((format(printf, 2, 3)))
fault(FILE *fp, const char *fmt, ...)
{
	va_list ap;

	if (ftell(fp) > 0)
		fputs("; ", fp);
	va_start(ap, fmt);
	vfprintf(fp, fmt, ap);
	va_end(ap);
}

static int
overlap(const char *a, const char *b)
{
	return am_path_under(a, b) || am_path_under(b, a);
}

static void
check_target(FILE *fp, const struct am_member *m, int i)
{
	static const char *const reserved[] = { "/sandbox", "/opt/openshell", "/etc/openshell", "/etc/openshell-tls",
	    "/run/openshell", "/run/openshell-sidecar", "/run/netns", "/var/run/netns", "/proc", "/sys", "/dev", NULL };
	static const char *const writable[] = { "/tmp", NULL };
	const struct am_row *row = &m->rows[i];
	const char *problem = am_path_problem(row->target);

	if (problem != NULL) {
		fault(fp, "the target of %s: %s", row->role, problem);
		return;
	}
	for (int n = 0; reserved[n] != NULL; n++)
		if (overlap(row->target, reserved[n]))
			fault(fp, "the target of %s overlaps %s", row->role, reserved[n]);
	for (int n = 0; writable[n] != NULL; n++)
		if (am_path_under(row->target, writable[n]))
			fault(fp, "the target of %s lies below %s, which is writable", row->role, writable[n]);
	for (int n = 0; n < i; n++)
		if (am_path_problem(m->rows[n].target) == NULL && overlap(row->target, m->rows[n].target))
			fault(fp, "the targets of %s and %s overlap", m->rows[n].role, row->role);
}

char *
am_render_problems(const struct am_member *m)
{
	char *text;
	size_t len;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL)
		abort();
	for (int i = 0; i < AM_ROWS; i++) {
		if (!m->rows[i].read_only && strcmp(m->rows[i].role, "outbox") != 0)
			fault(fp, "%s is writable", m->rows[i].role);
		check_target(fp, m, i);
	}
	if (fclose(fp) != 0)
		abort();
	if (len > 0)
		return text;
	free(text);
	return NULL;
}
