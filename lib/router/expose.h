/*
 * expose - what is said about mail from outside that a sender got
 * (spec router, section 14).
 */
#ifndef AM_ROUTER_EXPOSE_H
#define AM_ROUTER_EXPOSE_H

#include "router/router.h"

/* Owns the sender_exposure object; invalid when it cannot be told. */
jv am_exposure(const struct am_router *r, struct am_inst *sender);

/*
 * Around a mail delivery of ours into an instance's inbox: so that our own
 * notice does not count as a change that must be looked into.
 */
struct am_inbox_mark { struct am_version before; int known; };
struct am_inbox_mark am_inbox_before(const struct am_router *r, const struct am_inst *in);
void am_inbox_after(const struct am_router *r, struct am_inst *in, const struct am_inbox_mark *mark);

#endif
