/*
 * held - requests that wait for the operator, and what the operator decides.
 */
#ifndef AM_ROUTER_HELD_H
#define AM_ROUTER_HELD_H

#include "router/intent.h"
#include "router/request.h"

/* Keeps the bytes of a request, and of its sidecar files when they were read. Best effort, told when it fails. */
void am_hold(const struct am_turn *t, const struct am_request *q);

/* The router's own notice to the sender of a decided request. */
enum am_placed am_place_decision(struct am_router *r, struct am_inst *from, const struct am_request *q,
    const struct am_plan *p, const struct am_target *t);

#endif
