/*
 * check - the checks stream, as a probe writes it (amap-checks(5)).
 *
 * A record has, in this order: section, id, subject (a member or null),
 * claim, outcome, expected, actual, provenance, reason, remedy, avoid.
 */
#ifndef AM_CHECK_H
#define AM_CHECK_H

#include "json.h"

#define AM_PASS "PASS"
#define AM_FAIL "FAIL"
#define AM_UNKNOWN "UNKNOWN"

struct am_check {
	const char *section, *id, *subject, *claim;
	jv expected, actual;		/* consumed; left alone they print as null */
	const char *provenance;		/* where the expected value comes from */
	const char *reason;		/* why it could not be told; for UNKNOWN */
	const char *remedy;		/* must not be empty unless it is a PASS */
	const char *avoid;		/* the tempting wrong fix, or NULL */
};

/* What was written so far; rc is AM_PROBLEM once a check was no PASS. */
struct am_checks {
	FILE *fp;
	long count;
	int rc;
};

/* Prints a record with this outcome. Aborts when a check that is no PASS has no remedy. */
void am_check_put(struct am_checks *out, const struct am_check *c, const char *outcome);

/* The usual rule: PASS when expected equals actual, else FAIL. */
void am_check_equal(struct am_checks *out, const struct am_check *c);

/* UNKNOWN, and why; expected and actual are freed and not printed. */
void am_check_unknown(struct am_checks *out, const struct am_check *c, const char *reason);

/* A warning line; warnings never change a verdict. */
void am_check_warning(struct am_checks *out, const char *section, const char *text);

/* The end line. The result is the program's exit status, for am_finish. */
int am_check_end(struct am_checks *out);

#endif
