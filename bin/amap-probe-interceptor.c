/*
 * amap-probe-interceptor - does the gateway really ask before it mounts?
 *
 * Checks V2 and V3 of spec verify, section 6. Reads the answers "gateway-info"
 * and "probe-create", a create that must be refused, and by whom it was is
 * read from the refusal. Page: amap-probe-interceptor(1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "check.h"
#include "diag.h"

#define NAME "amap-openshell-mounts"
#define PREFIX "amap-openshell interceptor: "

static const char usage[] =
"usage: amap-probe-interceptor --source PATH [ANSWERS ...]\n"
"\n"
"Prints two checks: the interceptor is negotiated; it refused the probe create.\n"
"\n"
"  --source PATH  the directory that the probe create asked for\n";

static void
check_negotiated(struct am_checks *out, jv answers)
{
	struct am_check c = { .section = "gateway", .id = "V2", .claim = "the gateway has negotiated the mounts interceptor",
	    .provenance = "gateway info", .remedy = "make \"gateway info -o json\" answer, then verify again" };
	jv doc = jv_invalid(), list;
	struct am_asked a;
	int there = 0;

	if (!am_asked(answers, "gateway-info", NULL, &a)) {
		am_check_unknown(out, &c, a.why);
		return;
	}
	doc = am_json_parse(a.out, strlen(a.out));
	list = am_get(doc, "extensions", JV_KIND_ARRAY);
	if (!jv_is_valid(list)) {
		am_check_unknown(out, &c, jv_is_valid(doc) ? "gateway info has no list of extensions" : "gateway info printed no JSON");
	} else {
		c.expected = jv_string(NAME);
		c.actual = jv_array();
		jv_array_foreach(list, i, e) {
			const char *kind = am_str(e, "kind"), *name = am_str(e, "configured_name");

			if (kind != NULL && strcmp(kind, "gateway-interceptor") == 0) {
				there |= name != NULL && strcmp(name, NAME) == 0;
				c.actual = jv_array_append(c.actual, name == NULL ? jv_null() : jv_string(name));
			}
			jv_free(e);
		}
		c.remedy = "register the interceptor (amap-openshell gateway-config), start it, and restart the gateway";
		am_check_put(out, &c, there ? AM_PASS : AM_FAIL);
	}
	jv_free(list);
	jv_free(doc);
}

/* From malloc: the text without what an error report puts between its words. */
static char *
squash(const char *text)
{
	char *copy = strdup(text), *to;

	if (copy == NULL)
		abort();
	for (to = copy; *text != '\0'; ) {
		if (strchr(" \t\r\n\v\f", *text) != NULL)
			text++;
		else if (strncmp(text, "\xe2\x94\x82", 3) == 0)		/* U+2502 */
			text += 3;
		else if (strncmp(text, "\xc3\x97", 2) == 0)		/* U+00D7 */
			text += 2;
		else
			*to++ = *text++;
	}
	*to = '\0';
	return copy;
}

static int
holds(const char *squashed, const char *words)
{
	char *w = squash(words);
	int found = strstr(squashed, w) != NULL;

	free(w);
	return found;
}

static void
check_refused(struct am_checks *out, jv answers, const char *source)
{
	static const char wanted[] = "refused by the interceptor";
	struct am_check c = { .section = "gateway", .id = "V3", .claim = "a create that asks for another's directory is refused by"
	    " the interceptor", .provenance = "a probe create that nothing may ever fulfil",
	    .remedy = "make \"sandbox create\" answer, then verify again" };
	char *text, *squashed, remedy[900];
	const char *verdict = wanted, *line;
	struct am_asked a;

	if (!am_asked(answers, "probe-create", NULL, &a) && a.status < 0) {
		am_check_unknown(out, &c, a.why);
		return;
	}
	if (asprintf(&text, "%s\n%s", a.out == NULL ? "" : a.out, a.err == NULL ? "" : a.err) < 0)
		abort();
	squashed = squash(text);
	line = text + strspn(text, " \t\r\n");
	snprintf(remedy, sizeof remedy, "the interceptor must run and be registered; the gateway said: %s",
	    am_quote(line, strcspn(line, "\r\n")));
	if (a.status == 0) {
		verdict = "created: nothing refused it";
		snprintf(remedy, sizeof remedy, "delete the probe yourself (sandbox list shows an amap-verify- name; \"sandbox delete"
		    " NAME\"), then register the interceptor; the gateway said: %s", am_quote(line, strcspn(line, "\r\n")));
	} else if (holds(squashed, PREFIX)) {
		if (!holds(squashed, source))
			verdict = "refused by the interceptor, but not for the outbox";
	} else if (holds(squashed, "failed closed")) {
		verdict = "the interceptor failed closed";
	} else {
		verdict = "refused by the gateway, not the interceptor";
	}
	c.remedy = remedy;
	c.expected = jv_string(wanted);
	c.actual = jv_string(verdict);
	am_check_equal(out, &c);
	free(squashed);
	free(text);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "source", required_argument, NULL, 's' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct am_checks out = { .fp = stdout };
	const char *source = NULL;
	jv answers;
	int ch;

	am_prog = "amap-probe-interceptor";
	while ((ch = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (ch) {
		case 's': source = optarg; break;
		default: am_std_option(ch, usage);
		}
	}
	if (source == NULL)
		am_usage(usage);
	answers = am_answers_read(argv + optind, argc - optind);
	if (!jv_is_valid(answers))
		am_diex("%s", am_json_why(answers));
	check_negotiated(&out, answers);
	check_refused(&out, answers, source);
	jv_free(answers);
	return am_finish(am_check_end(&out));
}
