/*
 * mainproc - the main process of a unit, once: started through bubblewrap and
 * amap-confine, told of by those, and taken away with all that it left.
 */
#ifndef AMS_MAINPROC_H
#define AMS_MAINPROC_H

#include "denied.h"
#include "launch.h"
#include "output.h"
#include "proc.h"

struct ams_main {
	struct ams_launch *launch;
	struct ams_output *io;
	struct ams_denied denied;
	pid_t child;			/* bubblewrap; 0 while none runs */
	int status;			/* of amap-confine, until the main process runs; -1 */
	int announced;			/* amap-confine has begun */
	struct ams_proc main, init;	/* it, and its namespace's first process */
	int main_fd, init_fd;		/* pidfds of these; -1 */
	char why[512];			/* it did not start, or amap-confine gave up */
};

void ams_main_init(struct ams_main *m, struct ams_launch *l, struct ams_output *io);

/* -1 with errno. */
int ams_main_start(struct ams_main *m);

/* What amap-confine says on m->status; flags as of recvmsg(2). 1 when the main process runs from now on. */
int ams_main_hear(struct ams_main *m, int flags);

/* Asks it to end; what cannot be asked yet is killed. */
void ams_main_ask_to_end(const struct ams_main *m);

/* After bubblewrap was waited for: waits until the namespace is empty. */
void ams_main_reap(struct ams_main *m);

#endif
