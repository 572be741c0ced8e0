#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "gateway.h"

#define NAME "amap-openshell-mounts"

const struct am_setting am_driver_settings[AM_DRIVER_SETTINGS] = {
	{ "openshell.drivers.docker", "allow_driver_config", "true", "a create may bring its own mounts" },
	{ "openshell.drivers.docker", "enable_bind_mounts", "true", "these mounts may be directories of the host" },
	{ "openshell.drivers.docker.resource_admission", "enabled", "false",
	    "the driver does not turn sandboxes away for their resources" },
};

/* The registration of the interceptor; %s is the home. An array has this one string. */
static const struct {
	const char *key;
	enum am_toml_kind kind;
	const char *value;
	int binding;			/* it stands in the bindings table */
} registration[] = {
	{ "name", AM_TOML_STRING, NAME, 0 },
	{ "grpc_endpoint", AM_TOML_STRING, "unix://%s" AM_INTERCEPTOR_SOCKET, 0 },
	{ "allow_insecure_transport", AM_TOML_BOOL, "true", 0 },
	{ "failure_policy", AM_TOML_STRING, "fail_closed", 0 },
	{ "binding_policy", AM_TOML_STRING, "exact", 0 },
	{ "timeout", AM_TOML_STRING, "2s", 0 },
	{ "rpc", AM_TOML_STRING, "openshell.v1.OpenShell/CreateSandbox", 1 },
	{ "phases", AM_TOML_ARRAY, "validate", 1 },
};

#define SETTINGS ((int)(sizeof registration / sizeof registration[0]))

/* ---- reading ---- */

static int __attribute__((format(printf, 2, 3)))
unsure(struct am_gateway *g, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(g->why, sizeof g->why, fmt, ap);
	va_end(ap);
	g->unsure = 1;
	return -1;
}

static char *
read_file(struct am_gateway *g, const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	char *text = NULL;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		snprintf(g->why, sizeof g->why, "%s", strerror(errno));
		return NULL;
	}
	if (fd < 0 || fstat(fd, &st) != 0)
		unsure(g, "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		unsure(g, "not a regular file");
	else if ((text = am_read_fd(fd, AM_GATEWAY_MAX, len)) == NULL)
		unsure(g, "%s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return text;
}

void
am_gateway_read(struct am_gateway *g, const char *path)
{
	char *text, why[200];
	size_t len;

	*g = (struct am_gateway){ 0 };
	if (path == NULL) {
		unsure(g, "nobody knows where it is");
		return;
	}
	if ((text = read_file(g, path, &len)) == NULL)
		return;
	if ((g->root = am_toml_parse(text, len, why, sizeof why)) == NULL)
		unsure(g, "%s", why);
	free(text);
}

void
am_gateway_free(struct am_gateway *g)
{
	am_toml_free(g->root);
	g->root = NULL;
}

/* ---- judging ---- */

/* The table under a dotted path; NULL when it is none. */
static const struct am_toml *
table_at(const struct am_toml *t, const char *path)
{
	char part[64];

	while (t != NULL && *path != '\0') {
		size_t n = strcspn(path, ".");

		snprintf(part, sizeof part, "%.*s", (int)n, path);
		t = am_toml_get(t, part);
		path += n + (path[n] == '.');
	}
	return t == NULL || t->kind != AM_TOML_TABLE ? NULL : t;
}

/* 1 when a value is of this kind and says this; an array, when it says nothing else. */
static int
equals(const struct am_toml *v, enum am_toml_kind kind, const char *text)
{
	if (v == NULL || v->kind != kind)
		return 0;
	if (kind == AM_TOML_ARRAY)
		return v->first == v->last && equals(v->first, AM_TOML_STRING, text);
	return strcmp(v->text, text) == 0;
}

enum am_verdict
am_gateway_setting(const struct am_gateway *g, int setting)
{
	const struct am_setting *s = &am_driver_settings[setting];
	const struct am_toml *t;

	if (g->unsure)
		return AM_UNSURE;
	t = table_at(g->root, s->table);
	/* A header with spaces inside of its brackets counts as another table (spec bringup, section 5). */
	return t != NULL && !t->spaced && equals(am_toml_get(t, s->key), AM_TOML_BOOL, s->value) ? AM_PRESENT : AM_ABSENT;
}

/* The tables of an array that stands in [[headers]]; the array itself or NULL. */
static const struct am_toml *
headed(const struct am_toml *t, const char *key)
{
	const struct am_toml *a = am_toml_get(t, key);

	return a != NULL && a->kind == AM_TOML_ARRAY && a->made == AM_TOML_HEADER ? a : NULL;
}

/* What a setting says for a home; from malloc. */
static char *
value_of(int i, const char *home)
{
	char *text;

	if (asprintf(&text, registration[i].value, home) < 0)
		abort();
	return text;
}

/* The setting as TOML spells it, the key padded; from malloc. */
static char *
spell(int i, const char *home, int width)
{
	int quoted = registration[i].kind != AM_TOML_BOOL, list = registration[i].kind == AM_TOML_ARRAY;
	char *value = value_of(i, home), *text;
	size_t len;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL)
		abort();
	fprintf(fp, "%-*s = %s%s", width, registration[i].key, list ? "[" : "", quoted ? "\"" : "");
	for (const char *p = value; *p != '\0'; p++)
		fprintf(fp, "%s%c", *p == '"' || *p == '\\' ? "\\" : "", *p);
	fprintf(fp, "%s%s", quoted ? "\"" : "", list ? "]" : "");
	if (fclose(fp) != 0)
		abort();
	free(value);
	return text;
}

/* The block of our name; NULL when there is none or more than one. */
static const struct am_toml *
find_block(const struct am_toml *root)
{
	const struct am_toml *list = headed(table_at(root, "openshell.gateway"), "interceptors"), *found = NULL, *b;
	int n = 0;

	for (b = list == NULL ? NULL : list->first; b != NULL; b = b->next)
		if (equals(am_toml_get(b, "name"), AM_TOML_STRING, NAME)) {
			found = b;
			n++;
		}
	return n == 1 && !found->spaced ? found : NULL;
}

enum am_verdict
am_gateway_embedded(const struct am_gateway *g, const char *home)
{
	if (g->unsure)
		return AM_UNSURE;
	return equals(am_toml_get(table_at(g->root, "amap.embedded"), "home"), AM_TOML_STRING, home) ? AM_PRESENT : AM_ABSENT;
}

enum am_verdict
am_gateway_registration(const struct am_gateway *g, const char *home, struct am_registration *out)
{
	static const char *const rows[] = { ("one block named " NAME), "one bindings table", "not disabled",
	    "not fail_open" };
	const struct am_toml *block = find_block(g->root), *bindings = headed(block, "bindings"), *b;
	int one = bindings != NULL && bindings->first == bindings->last && !bindings->first->spaced, all = 1;
	int disabled = equals(am_toml_get(block, "disabled"), AM_TOML_BOOL, "true");
	int open_ = equals(am_toml_get(block, "failure_policy"), AM_TOML_STRING, "fail_open");
	char *value;

	for (b = bindings == NULL ? NULL : bindings->first; b != NULL; b = b->next) {
		disabled |= equals(am_toml_get(b, "disabled"), AM_TOML_BOOL, "true");
		open_ |= equals(am_toml_get(b, "failure_policy"), AM_TOML_STRING, "fail_open");
	}
	for (int i = 0; i < SETTINGS; i++) {
		value = value_of(i, home);
		out->row[i] = spell(i, home, 0);
		b = registration[i].binding ? one ? bindings->first : NULL : block;
		out->met[i] = equals(am_toml_get(b, registration[i].key), registration[i].kind, value);
		free(value);
	}
	for (int i = SETTINGS; i < AM_REGISTRATION_ROWS; i++)
		if ((out->row[i] = strdup(rows[i - SETTINGS])) == NULL)
			abort();
	out->met[SETTINGS] = block != NULL;
	out->met[SETTINGS + 1] = one;
	out->met[SETTINGS + 2] = block != NULL && !disabled;
	out->met[SETTINGS + 3] = block != NULL && !open_;
	for (int i = 0; i < AM_REGISTRATION_ROWS; i++)
		all &= out->met[i];
	return g->unsure ? AM_UNSURE : all ? AM_PRESENT : AM_ABSENT;
}

void
am_registration_free(struct am_registration *r)
{
	for (int i = 0; i < AM_REGISTRATION_ROWS; i++)
		free(r->row[i]);
}

/* ---- the fragments ---- */

void
am_gateway_driver_fragment(FILE *fp)
{
	const char *table = "";

	fprintf(fp, "# What bind mounts need. Merge this into the gateway's gateway.toml, then restart it.\n");
	for (int i = 0; i < AM_DRIVER_SETTINGS; i++) {
		const struct am_setting *s = &am_driver_settings[i];

		if (strcmp(table, s->table) != 0)
			fprintf(fp, "%s[%s]\n", i == 0 ? "" : "\n", s->table);
		table = s->table;
		fprintf(fp, "%s = %s\n", s->key, s->value);
	}
}

void
am_gateway_interceptor_fragment(FILE *fp, const char *home)
{
	fprintf(fp, "# Who decides about mounts. Start the interceptor before the gateway: it fails closed.\n"
	    "[[openshell.gateway.interceptors]]\n");
	for (int i = 0; i < SETTINGS; i++) {
		char *line = spell(i, home, registration[i].binding ? 6 : 14);

		if (registration[i].binding && !registration[i - 1].binding)
			fprintf(fp, "\n[[openshell.gateway.interceptors.bindings]]\n");
		fprintf(fp, "%s\n", line);
		free(line);
	}
}
