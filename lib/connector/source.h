/*
 * source - ask the session source which session to speak to (spec connector, section 6.5).
 */
#ifndef AM_SOURCE_H
#define AM_SOURCE_H

#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

#include "child.h"

struct am_rows {
	int count;		/* sessions; the rest is the first one's */
	pid_t pid;		/* 0 when the source does not know it */
	char socket[256], key[4096];
};

struct am_source {
	int runs;
	struct am_child child;
	long long deadline;
};

/* Starts it; -1 with errno. */
int am_source_start(struct am_source *s, const char *path);

int am_source_poll(const struct am_source *s, struct pollfd fds[2]);

/* 0 it still runs, 1 *rows is its answer, -1 it cannot tell and why says so. */
int am_source_step(struct am_source *s, struct am_rows *rows, char why[400]);

/* Ends it without an answer. */
void am_source_stop(struct am_source *s);

#endif
