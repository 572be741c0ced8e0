/*
 * amap-field - print fields of a JSON object, one line for each object
 *
 * For shell scripts: what is printed is fit for `read`, or nothing is.
 */
#include <stdio.h>
#include <string.h>

#include "diag.h"
#include "json.h"
#include "utf8.h"

static const char usage[] =
    "usage: amap-field [--each LIST] [--only] KEY...\n"
    "\n"
    "Reads one JSON object and prints the strings under the keys on one line, with tabs between\n"
    "them; nothing for a key that is absent or null. Exit status: 0; 1 a value is no string or not\n"
    "printable; 2 standard input is no JSON object.\n"
    "\n"
    "  --each LIST  one line for each object of the array under the key LIST\n"
    "  --only       refuse an object with other keys than these\n";

static int only;

/* 1 when every value can be printed; only then is something printed. */
static int
print_fields(jv object, char **keys, int n)
{
	const char *unknown = only ? am_unknown_key(object, (const char *const *)keys) : NULL;

	if (unknown != NULL) {
		am_warnx("%s: a key that is not expected", am_quotes(unknown));
		return 0;
	}
	for (int i = 0; i < n; i++) {
		const char *s = am_str(object, keys[i]), *p;
		jv null = am_get(object, keys[i], JV_KIND_NULL);
		int is_null = jv_is_valid(null), len;
		uint32_t c;

		jv_free(null);
		if (s == NULL && am_has(object, keys[i]) && !is_null) {
			am_warnx("%s: what stands under this key is no string", am_quotes(keys[i]));
			return 0;
		}
		for (p = s == NULL ? "" : s; *p != '\0'; p += len) {
			if ((len = am_utf8_next(p, strlen(p), &c)) < 0 || !am_printable(c)) {
				am_warnx("%s: the value is not printable", am_quotes(keys[i]));
				return 0;
			}
		}
	}
	for (int i = 0; i < n; i++) {
		const char *s = am_str(object, keys[i]);

		printf("%s%c", s == NULL ? "" : s, i == n - 1 ? '\n' : '\t');
	}
	return 1;
}

static int
print_each(jv document, const char *list, char **keys, int n)
{
	jv a = am_get(document, list, JV_KIND_ARRAY);
	const char *const list_only[] = { list, NULL }, *unknown = only ? am_unknown_key(document, list_only) : NULL;
	int rc = AM_OK;

	if (unknown != NULL) {
		am_warnx("%s: a key that is not expected", am_quotes(unknown));
		rc = AM_PROBLEM;
	}
	if (!jv_is_valid(a)) {
		am_warnx("%s: no array under this key", am_quotes(list));
		rc = AM_PROBLEM;
	}
	for (int i = 0; rc == AM_OK && i < jv_array_length(jv_copy(a)); i++) {
		jv object = jv_array_get(jv_copy(a), i);

		if (!print_fields(object, keys, n))
			rc = AM_PROBLEM;
		jv_free(object);
	}
	jv_free(a);
	return rc;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "each", required_argument, NULL, 'e' },
		{ "only", no_argument, NULL, 'o' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *list = NULL;
	int c, rc;
	jv document;

	am_prog = "amap-field";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'e': list = optarg; break;
		case 'o': only = 1; break;
		default: am_std_option(c, usage);
		}
	}
	if (optind == argc)
		am_usage(usage);
	document = am_json_read(NULL, AM_JSON_MAX);
	if (!jv_is_valid(document))
		am_diex("<stdin>: %s", am_json_why(document));
	if (jv_get_kind(document) != JV_KIND_OBJECT)
		am_diex("<stdin>: not an object");
	if (list != NULL)
		rc = print_each(document, list, argv + optind, argc - optind);
	else
		rc = print_fields(document, argv + optind, argc - optind) ? AM_OK : AM_PROBLEM;
	jv_free(document);
	return am_finish(rc);
}
