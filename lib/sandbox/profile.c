#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../diag.h"
#include "../file.h"
#include "../yamlread.h"
#include "profile.h"

#define PROFILE_MAX (1u << 20)

int
ams_profile_id_fits(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= AMS_PROVIDER_NAME_MAX && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && s[0] != '-' &&
	    s[n - 1] != '-' && strstr(s, "--") == NULL;
}

void
ams_diagnose(struct ams_diagnosis *d, const char *id, const char *field, const char *text)
{
	if (d->faults++ == 0)
		fprintf(stderr, "Provider profile diagnostics:\n");
	fprintf(stderr, "  error %s profile=%s field=%s %s\n", d->source, am_quotes(id), field, text);
}

/* ---- YAML ---- */

/* A plain scalar means what it means in JSON; everything else is text. */
static jv
scalar(const struct am_yaml *y)
{
	static const char *const nulls[] = { "", "~", "null" };
	jv v;

	for (size_t i = 0; y->plain && i < sizeof nulls / sizeof nulls[0]; i++)
		if (strcmp(y->text, nulls[i]) == 0)
			return jv_null();
	v = y->plain ? am_json_parse(y->text, strlen(y->text)) : jv_invalid();
	switch (jv_get_kind(v)) {
	case JV_KIND_TRUE: case JV_KIND_FALSE: case JV_KIND_NUMBER:
		return v;
	default:
		jv_free(v);
		return jv_string(y->text);
	}
}

static jv
from_yaml(const struct am_yaml *y)
{
	jv v = y->kind == AM_YAML_MAP ? jv_object() : jv_array();

	if (y->kind == AM_YAML_SCALAR) {
		jv_free(v);
		return scalar(y);
	}
	for (const struct am_yaml *m = y->first; m != NULL; m = m->next)
		v = y->kind == AM_YAML_MAP ? jv_object_set(v, jv_string(m->key), from_yaml(m)) : jv_array_append(v, from_yaml(m));
	return v;
}

static jv
read_yaml(const char *path)
{
	struct am_yaml *tree;
	char why[256], *text;
	size_t len;
	jv v;

	if ((text = am_read_path(path, 0, PROFILE_MAX, &len)) == NULL)
		return jv_invalid_with_msg(jv_string(strerror(errno)));
	tree = am_yaml_parse(text, len, why);
	free(text);
	if (tree == NULL)
		return jv_invalid_with_msg(jv_string(why));
	v = from_yaml(tree);
	am_yaml_free(tree);
	return v;
}

static void
print_text(jv v)
{
	char *text = am_json_text(v, AM_COMPACT, NULL);

	fputs(text, stdout);
	free(text);
}

static void print_yaml(jv v, int indent);

/* What stands after "key:" or "-": a JSON scalar is one of YAML too. */
static void
print_value(jv v, int indent)
{
	int nested = (jv_get_kind(v) == JV_KIND_OBJECT && jv_object_length(jv_copy(v)) > 0) ||
	    (jv_get_kind(v) == JV_KIND_ARRAY && jv_array_length(jv_copy(v)) > 0);

	putchar(nested ? '\n' : ' ');
	if (nested) {
		print_yaml(v, indent + 2);
		return;
	}
	print_text(v);
	putchar('\n');
}

static void
print_yaml(jv v, int indent)
{
	if (jv_get_kind(v) == JV_KIND_ARRAY) {
		jv_array_foreach(v, i, one) {
			printf("%*s-", indent, "");
			print_value(one, indent);
			jv_free(one);
		}
		return;
	}
	jv_object_foreach(v, key, value) {
		const char *name = jv_string_value(key);
		int plain = name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name);

		printf("%*s", indent, "");
		if (plain)
			fputs(name, stdout);
		else
			print_text(key);
		putchar(':');
		print_value(value, indent);
		jv_free(key);
		jv_free(value);
	}
}

void
ams_profile_yaml(jv profile)
{
	print_yaml(profile, 0);
}

/* ---- judged ---- */

static void
check_credentials(struct ams_diagnosis *d, const char *id, jv profile)
{
	jv list = am_get(profile, "credentials", JV_KIND_ARRAY);

	if (am_has(profile, "credentials") && !jv_is_valid(list))
		ams_diagnose(d, id, "credentials", "must be a list");
	if (jv_is_valid(list)) {
		jv_array_foreach(list, i, one) {
			if (am_str(one, "name") == NULL)
				ams_diagnose(d, id, "credentials.name", "is required");
			jv_free(one);
		}
	}
	jv_free(list);
}

static jv
read_either(struct ams_diagnosis *d)
{
	const char *dot = strrchr(d->source, '.');
	jv v;

	if (dot == NULL || (strcmp(dot, ".json") != 0 && strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0)) {
		ams_diagnose(d, "-", "-", "its name must end in .json, .yaml or .yml");
		return jv_invalid();
	}
	v = strcmp(dot, ".json") == 0 ? am_json_read(d->source, PROFILE_MAX) : read_yaml(d->source);
	if (jv_get_kind(v) == JV_KIND_OBJECT)
		return v;
	ams_diagnose(d, "-", "-", jv_is_valid(v) ? "must be an object" : am_json_why(jv_copy(v)));
	jv_free(v);
	return jv_invalid();
}

jv
ams_profile_read(struct ams_diagnosis *d)
{
	static const char *const known[] = { "id", "display_name", "description", "category", "inference_capable", "credentials",
	    "discovery", "endpoints", "binaries", "resource_version", "source", "scope", "annotations", NULL };
	static const char *const categories[] = { "other", "inference", "agent", "source_control", "messaging", "data", "knowledge", NULL };
	const char *id, *category, *key;
	jv v = read_either(d);
	size_t i = 0;

	if (!jv_is_valid(v))
		return v;
	id = am_str(v, "id");
	if (id == NULL || !ams_profile_id_fits(id))
		ams_diagnose(d, id != NULL ? id : "-", "id", "must match ^[a-z0-9]+(-[a-z0-9]+)*$");
	id = id != NULL ? id : "-";
	if (am_str(v, "display_name") == NULL)
		ams_diagnose(d, id, "display_name", "is required");
	if ((key = am_unknown_key(v, known)) != NULL)
		ams_diagnose(d, id, am_quotes(key), "unknown field");
	if ((category = am_str(v, "category")) != NULL) {
		while (categories[i] != NULL && strcmp(categories[i], category) != 0)
			i++;
		if (categories[i] == NULL)
			ams_diagnose(d, id, "category", "unknown category");
	}
	check_credentials(d, id, v);
	if (d->faults == 0)
		return v;
	jv_free(v);
	return jv_invalid();
}
