/*
 * amap-drift - say how a router.json differs from the one that is rendered
 *
 * The lines and their order: spec deployment, section 12, router-config.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "json.h"

static const char usage[] =
    "usage: amap-drift RENDERED FILE\n"
    "\n"
    "Compares the router's configuration FILE with RENDERED and prints a line for each\n"
    "difference. Exit status: 0 the same bytes, 1 not, 2 RENDERED cannot be read.\n";

/* Section 5, in its order. */
static const char *const known[] = {
	"state_dir", "instances_dir", "selected_json", "fleet_domain", "task_graph", "peer_senders", "peers", NULL
};

static char *
text_of(jv v)
{
	char *text = am_json_text(v, AM_SORTED, NULL);

	jv_free(v);
	return text;
}

static int lines;		/* printed about single keys */

/* A line with a value or two; consumes them. An invalid one is not there. */
static void
say(char sign, const char *key, const char *name, jv have, jv want)
{
	char *old = jv_is_valid(have) ? text_of(have) : strdup("absent");
	char *new = jv_is_valid(want) ? text_of(want) : strdup("absent");

	if (old == NULL || new == NULL)
		abort();
	if (name != NULL)
		printf("%c %s[%s] %s -> %s\n", sign, key, am_quotes(name), am_quotes(old), am_quotes(new));
	else if (sign == '~')
		printf("~ %s: %s -> %s\n", key, am_quotes(old), am_quotes(new));
	else
		printf("%c %s: %s\n", sign, key, am_quotes(sign == '+' ? new : old));
	free(old);
	free(new);
	lines++;
}

/* Consumes list: sorted, and every element once. */
static jv
set_of(jv list)
{
	jv sorted = jv_sort(list, jv_copy(list)), out = jv_array();
	int n = jv_array_length(jv_copy(sorted));

	for (int i = 0; i < n; i++) {
		jv v = jv_array_get(jv_copy(sorted), i);

		if (i > 0 && jv_equal(jv_copy(v), jv_array_get(jv_copy(sorted), i - 1)))
			jv_free(v);
		else
			out = jv_array_append(out, v);
	}
	jv_free(sorted);
	return out;
}

/* Consumes both. Lists of peers are sets. */
static int
differ(const char *key, jv a, jv b)
{
	if (strcmp(key, "peers") == 0 && jv_get_kind(a) == JV_KIND_ARRAY && jv_get_kind(b) == JV_KIND_ARRAY) {
		a = set_of(a);
		b = set_of(b);
	}
	return !jv_equal(a, b);
}

/* Borrows both objects: the members that differ, by name. */
static void
compare_names(const char *key, jv have, jv want)
{
	jv all = jv_keys(jv_object_merge(jv_copy(have), jv_copy(want)));
	int n = jv_array_length(jv_copy(all));

	for (int i = 0; i < n; i++) {
		jv name = jv_array_get(jv_copy(all), i);
		jv old = jv_object_get(jv_copy(have), jv_copy(name)), new = jv_object_get(jv_copy(want), jv_copy(name));

		if (jv_is_valid(old) && jv_is_valid(new) && !differ(key, jv_copy(old), jv_copy(new))) {
			jv_free(old);
			jv_free(new);
		} else {
			say('~', key, jv_string_value(name), old, new);
		}
		jv_free(name);
	}
	jv_free(all);
}

static void
compare_key(const char *key, jv have, jv want)
{
	jv old = jv_object_get(jv_copy(have), jv_string(key)), new = jv_object_get(jv_copy(want), jv_string(key));

	if (!jv_is_valid(old) && !jv_is_valid(new)) {
		jv_free(old);
		jv_free(new);
	} else if (!jv_is_valid(old) || !jv_is_valid(new)) {
		say(jv_is_valid(new) ? '+' : '-', key, NULL, old, new);
	} else if (jv_get_kind(old) == JV_KIND_OBJECT && jv_get_kind(new) == JV_KIND_OBJECT) {
		compare_names(key, old, new);
		jv_free(old);
		jv_free(new);
	} else if (differ(key, jv_copy(old), jv_copy(new))) {
		say('~', key, NULL, old, new);
	} else {
		jv_free(old);
		jv_free(new);
	}
}

/* Borrows. */
static int
is_known(jv key)
{
	for (const char *const *k = known; *k != NULL; k++)
		if (jv_equal(jv_copy(key), jv_string(*k)))
			return 1;
	return 0;
}

/* Keys that no renderer writes, in the order of the file. */
static void
strange_keys(jv have)
{
	for (int i = jv_object_iter(have); jv_object_iter_valid(have, i); i = jv_object_iter_next(have, i)) {
		jv key = jv_object_iter_key(have, i);

		if (!is_known(key)) {
			printf("- %s: not a key of a rendered router.json\n", am_quotes(jv_string_value(key)));
			lines++;
		}
		jv_free(key);
	}
}

static void
compare(jv have, jv want, const char *path)
{
	if (!jv_is_valid(have)) {
		printf("%s is not valid JSON: %s\n", am_quotes(path), am_json_why(jv_copy(have)));
	} else if (jv_get_kind(have) != JV_KIND_OBJECT) {
		printf("the file on disk is not a JSON object\n");
	} else {
		strange_keys(have);
		for (const char *const *k = known; *k != NULL; k++)
			compare_key(*k, have, want);
		if (lines == 0)
			printf("same content, different bytes (whitespace or key order)\n");
	}
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	char *want_text, *have_text;
	size_t want_len, have_len;
	jv want, have;
	int c, rc = AM_PROBLEM;

	am_prog = "amap-drift";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		am_std_option(c, usage);
	if (argc - optind != 2)
		am_usage(usage);
	argv += optind;
	if ((want_text = am_read_path(argv[0], O_NOFOLLOW, AM_JSON_MAX, &want_len)) == NULL)
		am_die("%s", am_quotes(argv[0]));
	want = am_json_parse(want_text, want_len);
	if (jv_get_kind(want) != JV_KIND_OBJECT)
		am_diex("%s: not a JSON object", am_quotes(argv[0]));
	if ((have_text = am_read_path(argv[1], O_NOFOLLOW, AM_JSON_MAX, &have_len)) == NULL) {
		if (errno == ENOENT)
			printf("%s is absent: render it to create it\n", am_quotes(argv[1]));
		else
			printf("%s cannot be read: %s\n", am_quotes(argv[1]), strerror(errno));
	} else if (have_len == want_len && memcmp(have_text, want_text, want_len) == 0) {
		rc = AM_OK;
	} else {
		have = am_json_parse(have_text, have_len);
		compare(have, want, argv[1]);
		jv_free(have);
	}
	free(have_text);
	free(want_text);
	jv_free(want);
	return am_finish(rc);
}
