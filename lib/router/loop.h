/*
 * loop - the life of the router: polls by the timer, turns by events
 * (spec router, section 6).
 */
#ifndef AM_ROUTER_LOOP_H
#define AM_ROUTER_LOOP_H

#include "router/router.h"

/* Both with r->conf loaded and the lock held. Drains once; or for ever, until a signal to stop. */
void amr_once(struct amr_router *r);
void amr_run(struct amr_router *r, double interval);

#endif
