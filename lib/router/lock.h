/*
 * lock - the one drainer of a state directory (spec router, section 6).
 */
#ifndef AM_ROUTER_LOCK_H
#define AM_ROUTER_LOCK_H

#include "router/router.h"

/*
 * Makes the state directory where it is missing, opens it and takes the lock:
 * 0; 1 when another process holds it; -1 with errno. why gets one line.
 */
int amr_lock(struct amr_router *r, const char *state_dir, char *why, size_t size);

/* At a good end: the next holder need not look for what was left half done. */
void amr_unlock(struct amr_router *r);

#endif
