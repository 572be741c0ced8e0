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

#endif
