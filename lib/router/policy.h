/*
 * policy - who gets a request (spec router, sections 10 and 11).
 */
#ifndef AM_ROUTER_POLICY_H
#define AM_ROUTER_POLICY_H

#include "router/intent.h"
#include "router/request.h"

/*
 * Either makes a plan (1, for am_plan_free), or gives the answer (0), or
 * cannot tell now (-1, errno).
 */
int am_decide(const struct am_router *r, const struct am_inst *from, struct am_request *q, struct am_plan *p);

/* The answer that follows from what became of the plan's targets. */
void am_answer_placed(const struct am_router *r, struct am_request *q, const struct am_plan *p);

/* Owns: the distinct members that a request names in to and cc, as indexes; invalid when one is nobody's. */
jv am_recipients(const struct am_conf *c, jv draft);

#endif
