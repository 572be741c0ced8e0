/*
 * giveup - what amap-confine gives up, step by step, and cannot get back.
 *
 * Paths are landlock.h, system calls are filter.h.
 */
#ifndef AMS_GIVEUP_H
#define AMS_GIVEUP_H

#include <sys/ioctl.h>
#include <sys/types.h>

#include "limits.h"

/*
 * A new pseudo-terminal as controlling terminal and standard streams of this
 * session's leader; its other end. -1 with errno.
 */
int ams_give_terminal(const struct winsize *size);

/* Root becomes this user with this group alone; who is somebody already stays. -1 with errno. */
int ams_become(uid_t uid, gid_t gid);

/* The bounding set falls only with CAP_SETPCAP; without it no-new-privs makes it moot. */
void ams_give_up_bounds(void);

/* All capabilities, and every way to get one back. -1 with errno. */
int ams_give_up_capabilities(void);

void ams_reset_signals(void);

/* -1 when done; else which limit could not be set, with errno. */
int ams_set_limits(const struct ams_limits *l);

#endif
