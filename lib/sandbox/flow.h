/*
 * flow - bytes carried from one descriptor to another, waiting for neither.
 *
 * One step at a time, between other work: a reader that takes nothing holds up
 * what it reads from, never the program.
 */
#ifndef AM_SANDBOX_FLOW_H
#define AM_SANDBOX_FLOW_H

#include <poll.h>
#include <stddef.h>

struct ams_flow {
	int from, to;		/* from: -1 when no more comes; to: -1 for nowhere yet */
	size_t at, len;		/* what of buf is still to be written */
	unsigned long long done;	/* bytes written up to now */
	char buf[16384];
};

/* For poll: fills two entries. */
void ams_flow_poll(const struct ams_flow *f, struct pollfd p[2]);

/* Does what is due by them; -1 with errno when it cannot be written, and has ended with that. */
int ams_flow_write(struct ams_flow *f, const struct pollfd p[2]);
void ams_flow_read(struct ams_flow *f, const struct pollfd p[2]);

/* Whether all that came is written and no more comes. */
int ams_flow_ended(const struct ams_flow *f);

#endif
