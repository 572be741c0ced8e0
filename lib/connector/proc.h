/*
 * proc - what /proc says about a process (spec deployment, section 8, openshell-sessions).
 */
#ifndef AM_PROC_H
#define AM_PROC_H

#include <sys/types.h>

struct am_proc {
	pid_t pid, ppid;
	char state;		/* field 3: Z and X run nothing */
	char comm[64];
	char start[24];		/* field 22 of proc(5): digits */
};

/* pid 0 is this process, as /proc sees it. -1 when there is no readable stat. */
int am_proc_read(pid_t pid, struct am_proc *p);

/* 1 when the process name, or the base name of argument 0 or 1, is one of the NULL-ended names. */
int am_proc_runs(const struct am_proc *p, const char *const *names);

/* 1 when both have the same name and the same arguments. */
int am_proc_same_words(const struct am_proc *p, const struct am_proc *q);

/* 1 when the process lives and started at this time. */
int am_proc_is(pid_t pid, const char *start);

#endif
