/*
 * check - one line of the checks stream (amap-checks(5)).
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
	jv expected, actual;		/* consumed; jv_null() when there is none */
	const char *provenance;		/* where the expected value comes from */
	const char *reason;		/* why it could not be told; for UNKNOWN */
	const char *remedy;		/* must not be empty unless it is a PASS */
	const char *avoid;		/* the tempting wrong fix, or NULL */
};

/* Prints a record with this outcome. Aborts when a check that is no PASS has no remedy. */
void am_check_put(FILE *fp, const struct am_check *c, const char *outcome);

/* The usual rule: PASS when expected equals actual, else FAIL. */
void am_check_equal(FILE *fp, const struct am_check *c);

/* A warning line; warnings never change a verdict. */
void am_check_warning(FILE *fp, const char *section, const char *text);

#endif
