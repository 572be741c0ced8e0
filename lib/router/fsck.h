/*
 * fsck - is the state of a router sound, and do the lanes agree with it?
 */
#ifndef AM_ROUTER_FSCK_H
#define AM_ROUTER_FSCK_H

#include <stdio.h>

/*
 * Prints "problem: PATH: TEXT" and "note: PATH: TEXT" lines; returns the
 * number of problems, or -1 with errno when the directory cannot be read.
 * Lanes are found by the root that each first-seen marker declares.
 */
long amr_fsck(FILE *fp, const char *state_dir);

#endif
