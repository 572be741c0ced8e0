/* The report for people (spec verify, section 3), and the words that the other forms share with it. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "utf8.h"
#include "verdict.h"

#define VALUE_MAX 400		/* characters of one value in a line */
#define DASH " \xe2\x80\x94 "	/* U+2014 */

void
am_put_text(FILE *fp, const char *text)
{
	size_t len = strlen(text);

	for (size_t p = 0; p < len; ) {
		uint32_t c;
		int n = am_utf8_next(text + p, len - p, &c);

		if (n > 0 && am_printable(c)) {
			fwrite(text + p, 1, (size_t)n, fp);
			p += (size_t)n;
			continue;
		}
		for (int i = 0; i < (n > 0 ? n : 1); i++)
			fprintf(fp, "\\x%02x", (unsigned char)text[p++]);
	}
}

/* A value as ASCII JSON, keys sorted, cut. */
static void
put_value(FILE *fp, jv v)
{
	size_t len;
	char *text = am_json_text(v, AM_SORTED, &len);

	if (len > VALUE_MAX)
		strcpy(text + VALUE_MAX - 3, "...");
	fputs(text, fp);
	free(text);
}

static void
put_joint(FILE *fp, int *parts)
{
	if ((*parts)++ > 0)
		fputs("; ", fp);
}

static void
map_difference(FILE *fp, jv expected, jv actual)
{
	jv both = jv_keys(jv_object_merge(jv_copy(expected), jv_copy(actual)));
	int parts = 0;

	jv_array_foreach(both, i, key) {
		const char *k = jv_string_value(key);
		jv e = jv_object_get(jv_copy(expected), jv_copy(key));
		jv a = jv_object_get(jv_copy(actual), jv_copy(key));

		if (!jv_is_valid(a)) {
			put_joint(fp, &parts);
			fprintf(fp, "missing %s: expected ", k);
			put_value(fp, e);
		} else if (!jv_is_valid(e)) {
			put_joint(fp, &parts);
			fprintf(fp, "unexpected %s: found ", k);
			put_value(fp, a);
		} else if (!jv_equal(jv_copy(e), jv_copy(a))) {
			put_joint(fp, &parts);
			fprintf(fp, "%s: expected ", k);
			put_value(fp, e);
			fputs(", found ", fp);
			put_value(fp, a);
		}
		jv_free(e);
		jv_free(a);
		jv_free(key);
	}
	jv_free(both);
}

/* Owns: what stands in a and not in b. */
static jv
without(jv a, jv b)
{
	jv left = jv_array();

	jv_array_foreach(a, i, x) {
		int there = 0;

		jv_array_foreach(b, k, y)
			there |= jv_equal(jv_copy(x), y);
		if (!there)
			left = jv_array_append(left, jv_copy(x));
		jv_free(x);
	}
	return left;
}

static int
list_difference(FILE *fp, jv expected, jv actual)
{
	jv missing = without(expected, actual), found = without(actual, expected);
	int parts = 0;

	if (jv_array_length(jv_copy(missing)) > 0) {
		put_joint(fp, &parts);
		fputs("missing ", fp);
		put_value(fp, missing);
	}
	if (jv_array_length(jv_copy(found)) > 0) {
		put_joint(fp, &parts);
		fputs("found ", fp);
		put_value(fp, found);
	}
	jv_free(missing);
	jv_free(found);
	return parts;
}

char *
am_difference(jv expected, jv actual)
{
	jv_kind e = jv_get_kind(expected), a = jv_get_kind(actual);
	char *text = NULL;
	size_t len = 0;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL)
		abort();
	if (e == JV_KIND_OBJECT && a == JV_KIND_OBJECT)
		map_difference(fp, expected, actual);
	else if (e != JV_KIND_ARRAY || a != JV_KIND_ARRAY || !list_difference(fp, expected, actual)) {
		fputs("expected ", fp);
		put_value(fp, expected);
		fputs(", found ", fp);
		put_value(fp, actual);
	}
	if (fclose(fp) != 0)
		abort();
	return text;
}

void
am_put_finding(FILE *fp, const struct am_verdict_check *c)
{
	if (c->outcome == AM_IS_FAIL) {
		jv expected = am_get_or_null(c->rec, "expected"), actual = am_get_or_null(c->rec, "actual");
		char *difference = am_difference(expected, actual);

		fputs("NOT ", fp);
		am_put_text(fp, c->claim);
		fputs(": ", fp);
		am_put_text(fp, difference);
		fputs(" (expected from ", fp);
		am_put_text(fp, c->provenance == NULL ? "the claim itself" : c->provenance);
		fputs(")", fp);
		free(difference);
		jv_free(expected);
		jv_free(actual);
	} else {
		fputs("UNKNOWN whether ", fp);
		am_put_text(fp, c->claim);
		fputs(": ", fp);
		am_put_text(fp, c->reason);
	}
	fputs(DASH, fp);
	am_put_text(fp, c->remedy);
	if (c->avoid != NULL && c->avoid[0] != '\0') {
		fputs(strncasecmp(c->avoid, "do not ", 7) == 0 ? " (" : " (do not: ", fp);
		am_put_text(fp, c->avoid);
		fputs(")", fp);
	}
}

void
am_verdict_report(FILE *fp, const struct am_verdict *v)
{
	const char *section = "";

	for (size_t i = 0; i < v->count; i++) {
		const struct am_verdict_check *c = &v->checks[i];

		if (strcmp(c->section, section) != 0) {
			section = c->section;
			am_put_text(fp, section);
			fprintf(fp, ": %s\n", am_section_title(section));
		}
		fprintf(fp, "  %-7s ", am_outcome_word[c->outcome]);
		am_put_text(fp, c->claim);
		putc('\n', fp);
	}
	for (size_t i = 0; i < v->count; i++)
		if (v->checks[i].outcome != AM_IS_PASS) {
			am_put_finding(fp, &v->checks[i]);
			putc('\n', fp);
		}
	jv_array_foreach(v->warnings, i, w) {
		fputs("warning: ", fp);
		am_put_text(fp, am_str(w, "warning"));
		putc('\n', fp);
		jv_free(w);
	}
}

void
am_verdict_jsonl(FILE *fp, const struct am_verdict *v)
{
	long n = (long)v->count;

	for (size_t i = 0; i < v->count; i++)
		am_put(fp, jv_copy(v->checks[i].rec));
	jv_array_foreach(v->warnings, i, w) {
		am_put(fp, w);
		n++;
	}
	am_put_end(fp, n);
}
