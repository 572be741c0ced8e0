/*
 * cgroup - one cgroup (version 2) for a sandbox, where the caller may make one.
 *
 * It is made beside or above the caller's own, in the nearest cgroup that is
 * the caller's to divide and passes on the controllers memory and pids: as a
 * rule root's on any host with systemd, and a user's below user@.service. Where
 * there is none the limits of setrlimit(2) stand alone.
 */
#ifndef AMS_CGROUP_H
#define AMS_CGROUP_H

#include "limits.h"

#define AMS_CGROUP_PATH 512

/* The directory to make one in, from malloc; NULL with the reason in *why (static). */
char *ams_cgroup_home(const char **why);

/* The cgroup of this unit, with its limits; its directory in path. -1 with errno. */
int ams_cgroup_make(const char *home, int unit, const struct ams_limits *l, char path[AMS_CGROUP_PATH]);

/* The calling process goes into it. -1 with errno. */
int ams_cgroup_enter(const char *path);

/* When what ran there has ended. */
void ams_cgroup_remove(const char *path);

#endif
