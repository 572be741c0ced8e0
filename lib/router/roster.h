/*
 * roster - publishing who is in the fleet (spec router, section 18).
 */
#ifndef AM_ROUTER_ROSTER_H
#define AM_ROUTER_ROSTER_H

#include "router/router.h"

/* Publishes, or leaves the old one; tells when that changes. */
void amr_roster_publish(struct amr_router *r);

#endif
