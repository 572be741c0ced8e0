/*
 * amap-verdict - the report of a stream of checks, and the answer.
 *
 * Exit 0 only when at least one check was read and every one is a PASS. A
 * stream that is cut, an operand's file without a check, a record that is no
 * sound check: each is an UNKNOWN of its own. Page: amap-verdict(1).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "verdict/verdict.h"

static const char usage[] =
"usage: amap-verdict [--format FORM] [SECTION=FILE | FILE ...]\n"
"\n"
"Reads check records (amap-checks(5)) from the files, or from standard input,\n"
"and prints the verdict. SECTION=FILE says which section's evidence a file is:\n"
"a section that is named so and has no check is UNKNOWN.\n"
"\n"
"  --format FORM  report (the default), jsonl, tap, junit, nagios or prometheus\n";

static const struct {
	const char *name;
	void (*put)(FILE *, const struct am_verdict *);
} forms[] = {
	{ "report", am_verdict_report },
	{ "jsonl", am_verdict_jsonl },
	{ "tap", am_verdict_tap },
	{ "junit", am_verdict_junit },
	{ "nagios", am_verdict_nagios },
	{ "prometheus", am_verdict_prometheus },
};

static void
read_stream(struct am_verdict *v, FILE *fp, const char *name, const char *section)
{
	struct am_stream in = { .fp = fp, .name = name };
	jv rec;
	int got;

	while ((got = am_next(&in, &rec)) > 0)
		am_verdict_add(v, rec, section == NULL ? "other" : section);
	if (got < 0)
		am_verdict_doubt(v, section == NULL ? "other" : section, "every check of this part was made",
		    am_stream_why(&in), "run verify again and look at what its probes say on standard error");
}

/* A section that was named and of which nothing is known. */
static void
expect(struct am_verdict *v, const char *section)
{
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(v->checks[i].section, section) == 0)
			return;
	am_verdict_doubt(v, section, "every check of this part was made", "no probe printed a check",
	    "run verify again and look at what its probes say on standard error");
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "format", required_argument, NULL, 'f' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct am_verdict v = { .warnings = jv_array() };
	jv named = jv_array();
	size_t form = 0;
	int c, rc;

	am_prog = "amap-verdict";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			for (form = 0; form < sizeof forms / sizeof forms[0]; form++)
				if (strcmp(forms[form].name, optarg) == 0)
					break;
			if (form == sizeof forms / sizeof forms[0])
				am_diex("--format %s: one of report, jsonl, tap, junit, nagios, prometheus is needed",
				    am_quotes(optarg));
			break;
		default: am_std_option(c, usage);
		}
	}
	if (optind == argc)
		read_stream(&v, stdin, "<stdin>", NULL);
	for (; optind < argc; optind++) {
		char *eq = strchr(argv[optind], '='), *path = argv[optind];
		const char *section = NULL;
		FILE *fp;

		if (eq != NULL && eq != path && memchr(path, '/', (size_t)(eq - path)) == NULL) {
			*eq = '\0';
			section = path;
			named = jv_array_append(named, jv_string(section));
			path = eq + 1;
		}
		if (strcmp(path, "-") == 0)
			read_stream(&v, stdin, "<stdin>", section);
		else if ((fp = fopen(path, "re")) == NULL)
			am_die("%s", path);
		else {
			read_stream(&v, fp, path, section);
			fclose(fp);
		}
	}
	jv_array_foreach(named, i, section) {
		expect(&v, jv_string_value(section));
		jv_free(section);
	}
	jv_free(named);
	am_verdict_sort(&v);
	forms[form].put(stdout, &v);
	rc = v.count > 0 && v.outcomes[AM_IS_PASS] == v.count ? AM_OK : AM_PROBLEM;
	am_verdict_free(&v);
	return am_finish(rc);
}
