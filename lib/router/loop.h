/*
 * loop - the life of the router: polls by the timer, turns by events
 * (spec router, section 6).
 */
#ifndef AM_ROUTER_LOOP_H
#define AM_ROUTER_LOOP_H

#include "router/router.h"

/* Both with r->conf loaded and the lock held. Drains once; or for ever, until a signal to stop. */
void am_once(struct am_router *r);
void am_run(struct am_router *r, double interval);

#endif
