/*
 * sight - first sight of an instance, and what was staged before it
 * (spec router, section 7).
 */
#ifndef AM_ROUTER_SIGHT_H
#define AM_ROUTER_SIGHT_H

#include "router/request.h"

/* Makes sure that the marker stands, and that in->snapshot and in->first_seen are its own. -1 with errno. */
int am_sight(struct am_turn *t);

/* Keeps the copy and gives the answer. */
void am_quarantine(struct am_turn *t, struct am_request *q);

#endif
