/* The forms that other programs read: TAP, JUnit, a monitoring plug-in's line, Prometheus text. */
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

/* Owns, from malloc: what a put function prints. */
static char *
captured(void (*put)(FILE *, const struct am_verdict_check *), const struct am_verdict_check *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL)
		abort();
	put(fp, c);
	if (fclose(fp) != 0)
		abort();
	return text;
}

static void
put_claim(FILE *fp, const struct am_verdict_check *c)
{
	am_put_text(fp, c->claim);
}

static void
put_section(FILE *fp, const struct am_verdict_check *c)
{
	am_put_text(fp, c->section);
}

static void
put_subject(FILE *fp, const struct am_verdict_check *c)
{
	am_put_text(fp, c->subject == NULL ? "" : c->subject);
}

static void
put_id(FILE *fp, const struct am_verdict_check *c)
{
	am_put_text(fp, c->id);
}

/* Prints what put prints, each byte of special replaced by its word. */
static void
put_escaped(FILE *fp, void (*put)(FILE *, const struct am_verdict_check *), const struct am_verdict_check *c,
    const char *special, const char *const *words)
{
	char *text = captured(put, c);

	for (const char *p = text; *p != '\0'; p++) {
		const char *at = strchr(special, *p);

		if (at == NULL)
			putc(*p, fp);
		else
			fputs(words[at - special], fp);
	}
	free(text);
}

/* ---- TAP (version 13) ---- */

void
am_verdict_tap(FILE *fp, const struct am_verdict *v)
{
	static const char *const hash[] = { "\\#", "\\\\" };

	fprintf(fp, "TAP version 13\n1..%zu\n", v->count);
	for (size_t i = 0; i < v->count; i++) {
		const struct am_verdict_check *c = &v->checks[i];

		fprintf(fp, "%s %zu - ", c->outcome == AM_IS_PASS ? "ok" : "not ok", i + 1);
		put_escaped(fp, put_section, c, "#\\", hash);
		putc(' ', fp);
		put_escaped(fp, put_id, c, "#\\", hash);
		putc(' ', fp);
		put_escaped(fp, put_claim, c, "#\\", hash);
		putc('\n', fp);
		if (c->outcome != AM_IS_PASS) {
			fputs("# ", fp);
			am_put_finding(fp, c);
			putc('\n', fp);
		}
	}
	jv_array_foreach(v->warnings, i, w) {
		fputs("# warning: ", fp);
		am_put_text(fp, am_str(w, "warning"));
		putc('\n', fp);
		jv_free(w);
	}
}

/* ---- JUnit ---- */

static const char xml_special[] = "&<>\"'";
static const char *const xml_words[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&apos;" };

static void
put_xml(FILE *fp, void (*put)(FILE *, const struct am_verdict_check *), const struct am_verdict_check *c)
{
	put_escaped(fp, put, c, xml_special, xml_words);
}

void
am_verdict_junit(FILE *fp, const struct am_verdict *v)
{
	fprintf(fp, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	    "<testsuites tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n",
	    v->count, v->outcomes[AM_IS_FAIL], v->outcomes[AM_IS_UNKNOWN]);
	for (size_t i = 0, end; i < v->count; i = end) {
		size_t n[3] = { 0, 0, 0 };

		for (end = i; end < v->count && strcmp(v->checks[end].section, v->checks[i].section) == 0; end++)
			n[v->checks[end].outcome]++;
		fputs("  <testsuite name=\"", fp);
		put_xml(fp, put_section, &v->checks[i]);
		fprintf(fp, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n", end - i, n[AM_IS_FAIL],
		    n[AM_IS_UNKNOWN]);
		for (size_t k = i; k < end; k++) {
			const struct am_verdict_check *c = &v->checks[k];
			const char *element = c->outcome == AM_IS_FAIL ? "failure" : "error";

			fputs("    <testcase classname=\"amap.", fp);
			put_xml(fp, put_section, c);
			fputs("\" name=\"", fp);
			put_xml(fp, put_id, c);
			putc(' ', fp);
			put_xml(fp, put_claim, c);
			if (c->outcome == AM_IS_PASS) {
				fputs("\"/>\n", fp);
				continue;
			}
			fprintf(fp, "\">\n      <%s message=\"", element);
			put_xml(fp, am_put_finding, c);
			fputs("\"/>\n    </testcase>\n", fp);
		}
		fputs("  </testsuite>\n", fp);
	}
	fputs("</testsuites>\n", fp);
}

/* ---- a monitoring plug-in's line ---- */

void
am_verdict_nagios(FILE *fp, const struct am_verdict *v)
{
	static const char *const bar[] = { "/" };	/* "|" begins the performance data */
	const char *word = v->outcomes[AM_IS_FAIL] > 0 ? "CRITICAL"
	    : v->outcomes[AM_IS_UNKNOWN] > 0 || v->count == 0 ? "UNKNOWN" : "OK";

	fprintf(fp, "AMAP %s - %zu of %zu checks pass|pass=%zu fail=%zu unknown=%zu\n", word, v->outcomes[AM_IS_PASS],
	    v->count, v->outcomes[AM_IS_PASS], v->outcomes[AM_IS_FAIL], v->outcomes[AM_IS_UNKNOWN]);
	for (size_t i = 0; i < v->count; i++)
		if (v->checks[i].outcome != AM_IS_PASS) {
			put_escaped(fp, am_put_finding, &v->checks[i], "|", bar);
			putc('\n', fp);
		}
}

/* ---- Prometheus text ---- */

void
am_verdict_prometheus(FILE *fp, const struct am_verdict *v)
{
	static const char *const words[] = { "\\\\", "\\\"" };

	fputs("# HELP amap_checks Checks of the last verify, by outcome.\n# TYPE amap_checks gauge\n", fp);
	for (int i = 0; i < 3; i++)
		fprintf(fp, "amap_checks{outcome=\"%s\"} %zu\n", am_outcome_word[i], v->outcomes[i]);
	fputs("# HELP amap_check_pass 1 when the check is a PASS, 0 when it is a FAIL or an UNKNOWN.\n"
	    "# TYPE amap_check_pass gauge\n", fp);
	for (size_t i = 0; i < v->count; i++) {
		const struct am_verdict_check *c = &v->checks[i];

		/* two of one name and labels would spoil the whole page: the first stands */
		if (i > 0 && strcmp(c->section, c[-1].section) == 0 && strcmp(c->id, c[-1].id) == 0 &&
		    strcmp(c->subject == NULL ? "" : c->subject, c[-1].subject == NULL ? "" : c[-1].subject) == 0)
			continue;
		fputs("amap_check_pass{section=\"", fp);
		put_escaped(fp, put_section, c, "\\\"", words);
		fputs("\",id=\"", fp);
		put_escaped(fp, put_id, c, "\\\"", words);
		fputs("\",member=\"", fp);
		put_escaped(fp, put_subject, c, "\\\"", words);
		fprintf(fp, "\",outcome=\"%s\"} %d\n", am_outcome_word[c->outcome], c->outcome == AM_IS_PASS);
	}
}
