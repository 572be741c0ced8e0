/*
 * reset - making an instance one that was never seen (spec router, section 20).
 */
#ifndef AM_ROUTER_RESET_H
#define AM_ROUTER_RESET_H

#include "router/router.h"

/* What a reset removed, or would remove. */
struct amr_reset {
	int dry;
	long state, mailbox;	/* entries */
	long left;		/* entries that could not be removed */
	int was_seen, inbox, outbox, peer;	/* what is there */
};

/* 0 when nothing stands in the way; -1 after putting in why which lane is no plain directory. */
int amr_reset_check(const struct amr_router *r, size_t member, char *why, size_t size);

/* With the lock held, unless dry. -1 with errno. */
int amr_reset(struct amr_router *r, size_t member, struct amr_reset *out);

#endif
