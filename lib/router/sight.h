/*
 * sight - first sight of an instance, and what was staged before it
 * (spec router, section 7).
 */
#ifndef AM_ROUTER_SIGHT_H
#define AM_ROUTER_SIGHT_H

#include "router/request.h"

/* Makes sure that the marker stands, and that in->snapshot and in->first_seen are its own. -1 with errno. */
int amr_sight(struct amr_turn *t);

/* Keeps the copy and gives the answer. */
void amr_quarantine(struct amr_turn *t, struct amr_request *q);

#endif
