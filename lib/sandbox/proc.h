/*
 * proc - naming a process so that a number used again is never mistaken.
 *
 * A process is its id together with its start time, within one boot.
 */
#ifndef AM_SANDBOX_PROC_H
#define AM_SANDBOX_PROC_H

#include <sys/types.h>

struct ams_proc {
	pid_t pid;
	unsigned long long start;	/* clock ticks after boot; 0: none */
};

/* Fills in the start time (and the parent, unless NULL); -1 when there is no such process. */
int ams_proc_look(pid_t pid, struct ams_proc *p, pid_t *parent);

/* A descriptor for exactly this process; -1 with ESRCH when it is gone. */
int ams_proc_open(const struct ams_proc *p);

/* 1 while it lives. */
int ams_proc_alive(const struct ams_proc *p);

/* The boot in which such numbers mean anything: 36 characters and a NUL. */
void ams_boot_id(char out[37]);

#endif
