/*
 * verdict - the rooms of amap-verdict: check records read back, put in order,
 * and printed in one of several forms.
 */
#ifndef AM_VERDICT_H
#define AM_VERDICT_H

#include <stdio.h>

#include "json.h"

enum am_outcome { AM_IS_PASS, AM_IS_FAIL, AM_IS_UNKNOWN };

/* One check, read back. The strings live as long as rec. */
struct am_verdict_check {
	jv rec;
	enum am_outcome outcome;
	const char *section, *id, *subject, *claim;	/* subject: NULL for the whole fleet */
	const char *provenance, *reason, *remedy, *avoid;
	size_t seen;					/* its place in the input */
};

struct am_verdict {
	struct am_verdict_check *checks;	/* by section, subject, id */
	size_t count;
	jv warnings;				/* records, as they came */
	size_t outcomes[3];
};

/* Consumes a record. Anything that is no sound record becomes an UNKNOWN check of its section. */
void am_verdict_add(struct am_verdict *v, jv rec, const char *section);

/* An UNKNOWN check of the reader's own. */
void am_verdict_doubt(struct am_verdict *v, const char *section, const char *claim, const char *reason,
    const char *remedy);

/* Puts the checks in their order; after the last addition. */
void am_verdict_sort(struct am_verdict *v);

void am_verdict_free(struct am_verdict *v);

/* The word, the title of a section, and how the two sides of a check differ (owned, from malloc). */
extern const char *const am_outcome_word[3];
const char *am_section_title(const char *section);
char *am_difference(jv expected, jv actual);

/* Prints text so that a terminal or a log shows it as what it is: unprintable bytes as \xNN. */
void am_put_text(FILE *fp, const char *text);

/* The line that says what is wrong with a check that is no PASS. */
void am_put_finding(FILE *fp, const struct am_verdict_check *c);

/* The forms (amap-verdict(1)). */
void am_verdict_report(FILE *fp, const struct am_verdict *v);
void am_verdict_jsonl(FILE *fp, const struct am_verdict *v);
void am_verdict_tap(FILE *fp, const struct am_verdict *v);
void am_verdict_junit(FILE *fp, const struct am_verdict *v);
void am_verdict_nagios(FILE *fp, const struct am_verdict *v);
void am_verdict_prometheus(FILE *fp, const struct am_verdict *v);

#endif
