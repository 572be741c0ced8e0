/*
 * policy - who gets a request (spec router, sections 10 and 11).
 */
#ifndef AM_ROUTER_POLICY_H
#define AM_ROUTER_POLICY_H

#include "router/intent.h"
#include "router/request.h"

/*
 * Either makes a plan (1, for amr_plan_free), or gives the answer (0), or
 * cannot tell now (-1, errno).
 */
int amr_decide(const struct amr_router *r, const struct amr_inst *from, struct amr_request *q, struct amr_plan *p);

/* The answer that follows from what became of the plan's targets. */
void amr_answer_placed(const struct amr_router *r, struct amr_request *q, const struct amr_plan *p);

/* Owns: the distinct members that a request names in to and cc, as indexes; invalid when one is nobody's. */
jv amr_recipients(const struct amr_conf *c, jv draft);

#endif
