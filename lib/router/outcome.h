/*
 * outcome - what a member's connector claims became of a notice
 * (spec router, section 15).
 */
#ifndef AM_ROUTER_OUTCOME_H
#define AM_ROUTER_OUTCOME_H

#include "router/router.h"

/* One pass over an instance's outcome directories. in->outcomes_due stays set when files wait. */
void am_take_outcomes(struct am_router *r, struct am_inst *in);

/* Makes in->denied agree with what is recorded on disk. */
void am_refresh_denied(const struct am_router *r, struct am_inst *in);

enum am_outcome { AM_DELIVERED, AM_HELD, AM_DENIED_THERE, AM_REFUSED, AM_AMBIGUOUS, AM_INJECT_FAILED, AM_OUTCOMES };
extern const char *const am_outcome_names[AM_OUTCOMES];

/* What an outcome file says, judged by itself: 0 and *outcome, or -1. Borrows doc. */
int am_outcome_judge(jv doc, const char *nid, enum am_outcome *outcome);

#endif
