/*
 * held - requests that wait for the operator, and what the operator decides.
 */
#ifndef AM_ROUTER_HELD_H
#define AM_ROUTER_HELD_H

#include "router/intent.h"
#include "router/request.h"

/* Keeps the bytes of a request, and of its sidecar files when they were read. Best effort, told when it fails. */
void amr_hold(const struct amr_turn *t, const struct amr_request *q);

/* The router's own notice to the sender of a decided request. */
enum amr_placed amr_place_decision(struct amr_router *r, struct amr_inst *from, const struct amr_request *q,
    const struct amr_plan *p, const struct amr_target *t);

#endif
