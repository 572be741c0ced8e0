/*
 * denied - telling of attempts to reach a network that is not there.
 *
 * The kernel shows each call of connect and sendto whose address is as long as
 * one of the Internet's to whoever holds the filter's listener, and waits. The
 * call always goes on then, as if nobody had looked: it is the empty network
 * namespace that refuses. So what a program does to the address meanwhile
 * changes a line of the log, and nothing else.
 */
#ifndef AMS_DENIED_H
#define AMS_DENIED_H

#include <netinet/in.h>

#include "record.h"

#define AMS_DENIED_RECENT 16

struct ams_denied {
	int listener;			/* -1 */
	struct ams_ring *log;
	long long second;		/* of these lines */
	int lines;
	struct { char who[INET6_ADDRSTRLEN + 8]; long long until; } recent[AMS_DENIED_RECENT];
	size_t next;
};

void ams_denied_open(struct ams_denied *d, struct ams_ring *log);

/* Takes over the listener of a new main process; -1 for none. */
void ams_denied_listen(struct ams_denied *d, int listener);

/* What poll(2) said of the listener: one attempt, or that nobody is left to make one. */
void ams_denied_serve(struct ams_denied *d, short revents);

#endif
