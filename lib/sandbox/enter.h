/*
 * enter - run a command inside the namespaces of a running sandbox.
 *
 * By the kernel's own call on a descriptor of the sandbox's first process, so
 * a number used again is never entered; then through amap-confine with the
 * same policy, so the command has the main process's authority and no more.
 */
#ifndef AM_SANDBOX_ENTER_H
#define AM_SANDBOX_ENTER_H

#include "proc.h"

struct ams_enter {
	struct ams_proc init;
	uid_t uid;
	gid_t gid;
	int policy, env;	/* as in a launch */
	const char *cgroup;	/* "" for none */
	int tty;
	long timeout;		/* seconds; 0: none */
	char *const *args;	/* of amap-confine: options, "--", the command */
	int status;		/* the command's, or amap-confine's */
	char why[1024];
};

/*
 * 0 when the command ran; its status is in status (128 + n after signal n, 124
 * when the time ran out). -1 with why when it never started.
 */
int ams_enter(struct ams_enter *e);

#endif
