/*
 * mounts - the directories that a confined router needs (spec router, 22.3).
 */
#ifndef AM_ROUTER_MOUNTS_H
#define AM_ROUTER_MOUNTS_H

#include <stdio.h>

#include "router/conf.h"

/* Prints PATH TAB rw|ro, parents first. -1 after naming on standard error what is missing. */
int amr_mounts_print(FILE *fp, const struct amr_conf *c);

#endif
