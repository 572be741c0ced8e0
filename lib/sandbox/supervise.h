/*
 * supervise - the one process that stays with a sandbox or a service.
 *
 * It starts the main process, keeps what that writes, restarts it by policy,
 * serves `connect`, and ends when the sandbox ends. Everything below it dies
 * with it, whatever kills it.
 */
#ifndef AM_SANDBOX_SUPERVISE_H
#define AM_SANDBOX_SUPERVISE_H

#include "launch.h"

#define AMS_STOP_GRACE 10	/* seconds between asking a main process to end and making it */

/*
 * Starts a supervisor, detached from terminal and session. The result is a
 * pipe: "R" when the main process runs; else the reason why it does not. Its
 * end without a word means that the supervisor died. -1 with errno.
 */
int ams_supervise(struct ams_launch *l, const char *first_phase);

/*
 * What a client of the ctl socket gets: first one message, struct ams_replay
 * with descriptors of output.old and output, whose first bytes are what was
 * written up to now; then the output from now on. What it sends: 'd', two
 * bytes of length, and data for the terminal; or 'r', rows and columns of two
 * bytes each.
 */
struct ams_replay {
	unsigned long long size[2];	/* of output.old and output */
};

#endif
