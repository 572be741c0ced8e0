/*
 * outcome - what a member's connector claims became of a notice
 * (spec router, section 15).
 */
#ifndef AM_ROUTER_OUTCOME_H
#define AM_ROUTER_OUTCOME_H

#include "router/router.h"

/* One pass over an instance's outcome directories; what exceeds its budget waits for the next poll. */
void amr_take_outcomes(struct amr_router *r, struct amr_inst *in);

/* Makes in->denied agree with what is recorded on disk (denied.c). */
void amr_refresh_denied(const struct amr_router *r, struct amr_inst *in);

enum amr_outcome { AM_DELIVERED, AM_HELD, AM_DENIED_THERE, AM_REFUSED, AM_AMBIGUOUS, AM_INJECT_FAILED, AM_OUTCOMES };
extern const char *const amr_outcome_names[AM_OUTCOMES];

/* What an outcome file says, judged by itself: 0 and *outcome, or -1. Borrows doc. */
int amr_outcome_judge(jv doc, const char *nid, enum amr_outcome *outcome);

#define AM_OUTCOME_MAX 65536	/* bytes of one file */

/* Owns the recipient's ledger record of a peer notice; invalid when there is none. */
jv amr_outcome_ledger(const struct amr_router *r, const struct amr_inst *in, const char *nid);

/* Owns a string of an object; null when it has none. */
jv amr_outcome_member(jv doc, const char *key);

#endif
