#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render.h"

#define PAYLOAD "/opt/amap/payload"

const char *const am_policy_read_only[] = {
	"/bin", "/usr", "/lib", "/proc", "/dev/urandom", "/etc", "/var/log", NULL
};
const char *const am_policy_read_write[] = { "/sandbox", "/tmp", "/dev/null", NULL };
const char *const am_main_command[] = {
	"--", PAYLOAD "/amap-main", "--mcp-config", PAYLOAD "/mcp-servers.json", "--append-system-prompt-file",
	PAYLOAD "/INBOX-POLICY.md", "--settings", PAYLOAD "/claude-settings.json", "--dangerously-skip-permissions", NULL
};

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
yaml_item(struct am_buf *out, const char *s)
{
	/* A path that passed am_path_problem: printable, without white space. */
	am_buf_strings(out, "    - \"");
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			am_buf_byte(out, '\\');
		am_buf_byte(out, *s);
	}
	am_buf_strings(out, "\"\n");
}

static void
yaml_list(struct am_buf *out, const char *key, const char *const *fixed, const struct am_member *m, int read_only)
{
	am_buf_strings(out, "  ", key, ":\n");
	for (; *fixed != NULL; fixed++)
		yaml_item(out, *fixed);
	for (int i = 0; i < AM_ROWS; i++)
		if (m->rows[i].read_only == read_only)
			yaml_item(out, m->rows[i].target);
}

void
am_render_policy(struct am_buf *out, const struct am_member *m, const struct am_run_as *run_as)
{
	char ids[128];

	am_buf_strings(out, "# Sandbox policy rendered by amap-openshell. Re-render it; do not edit it.\n"
	    "version: 1\nfilesystem_policy:\n  include_workdir: false\n");
	yaml_list(out, "read_only", am_policy_read_only, m, 1);
	yaml_list(out, "read_write", am_policy_read_write, m, 0);
	snprintf(ids, sizeof ids, "process:\n  run_as_user: \"%u\"\n  run_as_group: \"%u\"\n", run_as->uid,
	    run_as->gid);
	am_buf_strings(out, "landlock:\n  compatibility: \"hard_requirement\"\n", ids);
}

/* ---- the create command ---- */

#define word(w, ...) word_list(w, (const char *const []){ __VA_ARGS__, NULL })

/* Adds one word, of all the strings up to a NULL. */
static void
word_list(struct am_words *w, const char *const *strings)
{
	am_buf_list(&w->text, strings);
	am_buf_byte(&w->text, '\0');
	w->n++;
}

/* Adds a word for each of the strings up to a NULL. */
static void
words_list(struct am_words *w, const char *const *strings)
{
	for (; *strings != NULL; strings++)
		word(w, *strings);
}

#define words(w, ...) words_list(w, (const char *const []){ __VA_ARGS__, NULL })

/* Keys sorted, no spaces, non-ASCII escaped. */
static void
driver_config(struct am_words *w, const struct am_member *m)
{
	struct am_buf *out = &w->text;

	am_buf_strings(out, "{\"docker\":{\"mounts\":[");
	for (int i = 0; i < AM_ROWS; i++) {
		const struct am_row *r = &m->rows[i];

		am_buf_strings(out, i > 0 ? "," : "", "{\"read_only\":", r->read_only ? "true" : "false", ",\"source\":");
		am_json_string(out, r->source, strlen(r->source), AM_SORTED);
		am_buf_strings(out, ",\"target\":");
		am_json_string(out, r->target, strlen(r->target), AM_SORTED);
		am_buf_strings(out, ",\"type\":\"bind\"}");
	}
	word(w, "]}}");
}

void
am_render_words(struct am_words *w, const struct am_member *m, const char *image, int restart_policy)
{
	*w = (struct am_words){ 0 };
	words(w, "openshell", "--workspace", m->workspace, "sandbox", "create", "--name", m->name, "--from", image,
	    "--provider", "amap-claude-code", "--auto-providers", "--policy");
	word(w, m->home, "/policies/", m->name, ".yaml");
	words(w, "--driver-config-json");
	driver_config(w, m);
	words(w, "--env", "AMAP_INBOX_DIR=/opt/amap/lanes/inbox", "--env", "AMAP_PEER_DIR=/opt/amap/lanes/peer",
	    "--env", "AMAP_OUTBOX_DIR=/opt/amap/lanes/outbox", "--env");
	word(w, "AMAP_SELF_ADDRESS=", m->address);
	words(w, "--env");
	word(w, "AMAP_SELF=", m->address);
	words(w, "--env", "AMAP_ROSTER_DIR=/opt/amap/roster");
	if (restart_policy)
		words(w, "--restart-policy", "on-failure");
	words(w, "--detach", "--tty");
	words_list(w, am_main_command);
}

static int
is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	    (c != '\0' && strchr("_@%+=:,./-", c) != NULL);
}

static void
shell_word(struct am_buf *out, const char *s)
{
	const char *p = s;

	while (is_bare(*p))
		p++;
	if (*s != '\0' && *p == '\0') {
		am_buf_add(out, s, (size_t)(p - s));
		return;
	}
	am_buf_byte(out, '\'');
	for (; *s != '\0'; s++) {
		if (*s == '\'')
			am_buf_strings(out, "'\"'\"'");
		else
			am_buf_byte(out, *s);
	}
	am_buf_byte(out, '\'');
}

int
am_render_script(struct am_buf *out, const struct am_words *w)
{
	const char *s = w->text.s;

	for (size_t i = 0; i < w->n; i++, s += strlen(s) + 1) {
		if (strchr(s, '\n') != NULL)
			return -1;
		if (i > 0)
			am_buf_byte(out, ' ');
		shell_word(out, s);
	}
	am_buf_byte(out, '\n');
	return 0;
}

void
am_file_record(struct am_buf *out, const char *path, const char *content, size_t len)
{
	am_buf_strings(out, "{\"path\":");
	am_json_string(out, path, strlen(path), AM_COMPACT);
	am_buf_strings(out, ",\"mode\":\"0644\",\"content\":");
	am_json_string(out, content, len, AM_COMPACT);
	am_buf_strings(out, "}\n");
}
