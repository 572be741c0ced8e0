/*
 * delivery - the notices that wait, and the rounds in which they are delivered
 * (spec connector, sections 6.4 to 6.12). The room of inbox-delivery that knows
 * what to do; the program knows when.
 */
#ifndef AM_DELIVERY_H
#define AM_DELIVERY_H

#include <poll.h>

#include "connector/notices.h"

struct am_delivery_conf {
	const char *notices[2];		/* by lane */
	const char *messages;
	const char *state, *outcomes, *source;
	const char *self;		/* NULL when it is not known */
	double window;			/* seconds to wait for a receipt */
};

/* Opens the journal below the state directory and reads the own ancestors; -1 with errno. */
int am_delivery_open(const struct am_delivery_conf *conf);

/* Looks after what an earlier life left half done. */
void am_delivery_recover(void);

/* Lists the directories anew. */
void am_delivery_scan(void);

/*
 * Goes on with everything that can go on. The milliseconds until there is
 * something to do again, -1 when only an event can bring it.
 */
int am_delivery_step(void);

#define AM_DELIVERY_FDS 512
/* What to poll for; how many. */
int am_delivery_poll(struct pollfd fds[AM_DELIVERY_FDS]);

/* Ends what is under way; what cannot be told is reported and not done again. */
void am_delivery_stop(void);

#endif
