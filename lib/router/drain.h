/*
 * drain - one instance's turn: its requests, one after the other
 * (spec router, sections 7 to 13).
 */
#ifndef AM_ROUTER_DRAIN_H
#define AM_ROUTER_DRAIN_H

#include "router/router.h"

/* A whole turn: 0, or -1 when the instance could not be drained; that is counted and told. */
int amr_take_turn(struct amr_router *r, struct amr_inst *in, long budget_ms, const volatile int *stop);

#endif
