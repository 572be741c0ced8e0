/*
 * amap-probe-drift - are the router's files what the policy renders?
 *
 * Checks C1 and C2 of spec verify, section 5. Reads the answer "drift"
 * (amap-drift of router.json against its rendering). Page:
 * amap-probe-drift(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "check.h"
#include "diag.h"
#include "file.h"

static const char usage[] =
"usage: amap-probe-drift --home DIR --selected FILE [ANSWERS ...]\n"
"       amap-probe-drift --home DIR --problem TEXT\n"
"\n"
"Prints two checks: router.json and selected.json are their renderings.\n"
"\n"
"  --home DIR       the home\n"
"  --selected FILE  selected.json as it is rendered\n"
"  --problem TEXT   nothing could be rendered, and why\n";

static const struct am_check router = { .section = "router-config", .id = "C1", .claim = "router.json is its rendering",
    .provenance = "fleet.json and membership.json", .remedy = "write it again: amap-openshell router-config --apply",
    .avoid = "do not edit router.json: the next verb that renders it takes the edit away" };
static const struct am_check selected = { .section = "router-config", .id = "C2", .claim = "selected.json is its rendering",
    .provenance = "fleet.json and membership.json", .remedy = "write it again: amap-openshell router-config --apply",
    .avoid = "do not edit selected.json: provision and deprovision members instead" };

/* Owns: the lines of a text. */
static jv
lines(const char *text)
{
	jv list = jv_array();
	size_t n;

	for (; *text != '\0'; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (n > 0)
			list = jv_array_append(list, jv_string_sized(text, (int)n));
	}
	return list;
}

static void
unknown(struct am_checks *out, const struct am_check *c, const char *why)
{
	struct am_check u = *c;

	u.remedy = "fleet.json, membership.json and the router's files must be readable and sound";
	u.avoid = NULL;
	am_check_unknown(out, &u, why);
}

static void
check_router(struct am_checks *out, jv answers, const char *path)
{
	struct am_check c = router;
	struct am_asked a;
	char why[300];

	if (access(path, R_OK) != 0 && errno != ENOENT) {
		snprintf(why, sizeof why, "%s: %s", am_quotes(path), strerror(errno));
		unknown(out, &c, why);
	} else if (!am_asked(answers, "drift", NULL, &a) && (a.status != 1 || a.out == NULL)) {
		unknown(out, &c, a.why);
	} else {
		c.expected = jv_array();
		c.actual = lines(a.out);
		am_check_put(out, &c, a.status == 0 ? AM_PASS : AM_FAIL);
	}
}

static void
check_selected(struct am_checks *out, const char *rendered, const char *path)
{
	struct am_check c = selected;
	size_t want_len, have_len;
	char *want = am_read_path(rendered, 0, AM_JSON_MAX, &want_len), *have, why[300];
	jv drift = jv_array(), a, b;

	if (want == NULL) {
		snprintf(why, sizeof why, "the rendering %s: %s", am_quotes(rendered), strerror(errno));
		unknown(out, &c, why);
		jv_free(drift);
		return;
	}
	if ((have = am_read_path(path, 0, AM_JSON_MAX, &have_len)) == NULL && errno != ENOENT) {
		snprintf(why, sizeof why, "%s: %s", am_quotes(path), strerror(errno));
		unknown(out, &c, why);
		jv_free(drift);
		free(want);
		return;
	}
	if (have == NULL) {
		drift = jv_array_append(drift, jv_string("selected.json is absent"));
	} else if (have_len != want_len || memcmp(have, want, want_len) != 0) {
		a = am_json_parse(want, want_len);
		b = am_json_parse(have, have_len);
		drift = jv_array_append(drift, jv_string(!jv_is_valid(b) ? "selected.json is not valid JSON"
		    : jv_equal(jv_copy(a), jv_copy(b)) ? "the same document in other bytes" : "another document"));
		jv_free(a);
		jv_free(b);
	}
	c.expected = jv_array();
	c.actual = drift;
	am_check_equal(out, &c);
	free(have);
	free(want);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "home", required_argument, NULL, 'H' },
		{ "selected", required_argument, NULL, 's' },
		{ "problem", required_argument, NULL, 'p' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *home = NULL, *rendered = NULL, *problem = NULL;
	struct am_checks out = { .fp = stdout };
	char *router_path, *selected_path;
	jv answers;
	int ch;

	am_prog = "amap-probe-drift";
	while ((ch = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (ch) {
		case 'H': home = optarg; break;
		case 's': rendered = optarg; break;
		case 'p': problem = optarg; break;
		default: am_std_option(ch, usage);
		}
	}
	if (home == NULL || (rendered == NULL) == (problem == NULL))
		am_usage(usage);
	if (problem != NULL) {
		unknown(&out, &router, am_quotes(problem));
		unknown(&out, &selected, am_quotes(problem));
		return am_finish(am_check_end(&out));
	}
	answers = am_answers_read(argv + optind, argc - optind);
	if (!jv_is_valid(answers))
		am_diex("%s", am_json_why(answers));
	if (asprintf(&router_path, "%s/router.json", home) < 0 || asprintf(&selected_path, "%s/selected.json", home) < 0)
		abort();
	check_router(&out, answers, router_path);
	check_selected(&out, rendered, selected_path);
	jv_free(answers);
	free(router_path);
	free(selected_path);
	return am_finish(am_check_end(&out));
}
