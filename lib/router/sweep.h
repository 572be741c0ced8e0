/*
 * sweep - temporary files that a run left when it ended badly.
 */
#ifndef AM_ROUTER_SWEEP_H
#define AM_ROUTER_SWEEP_H

#include "router/router.h"

/* With the lock held, nobody else writes such files where this looks. */
void amr_sweep(const struct amr_router *r);

/* 1 for the name of a temporary file of am_publish. */
int amr_is_temporary(const char *name);

#endif
