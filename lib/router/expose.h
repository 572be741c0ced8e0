/*
 * expose - what is said about mail from outside that a sender got
 * (spec router, section 14).
 */
#ifndef AM_ROUTER_EXPOSE_H
#define AM_ROUTER_EXPOSE_H

#include "router/router.h"

/* Owns the sender_exposure object; invalid when it cannot be told. */
jv amr_exposure(const struct amr_router *r, struct amr_inst *sender);

/*
 * Around a mail delivery of ours into an instance's inbox: so that our own
 * notice does not count as a change that must be looked into.
 */
struct amr_inbox_mark { struct amr_version before; int known; };
struct amr_inbox_mark amr_inbox_before(const struct amr_router *r, const struct amr_inst *in);
void amr_inbox_after(const struct amr_router *r, struct amr_inst *in, const struct amr_inbox_mark *mark);

#endif
