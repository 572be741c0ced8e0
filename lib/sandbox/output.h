/*
 * output - what a main process writes: kept, put into the log by lines, and
 * carried to the terminals that are connected; and what those type.
 */
#ifndef AMS_OUTPUT_H
#define AMS_OUTPUT_H

#include <poll.h>

#include "record.h"

#define AMS_CLIENTS 8
#define AMS_OUTPUT_FDS (3 + AMS_CLIENTS)

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

struct ams_output {
	int unit;
	struct ams_ring log, output;
	int pipe, terminal;		/* of the main process; -1 */
	int held;			/* the terminal's other side: one that is let go may be opened again */
	char typed[512];		/* for the terminal, which takes no more just now */
	size_t typed_at, typed_len;
	int listener, clients[AMS_CLIENTS];
	char line[1024];		/* the unfinished last line */
	size_t line_len;
	char last[256];			/* the last finished one */
};

void ams_output_open(struct ams_output *o, int unit);

/* Serves the unit's ctl socket. The working directory is the unit's. -1 with errno. */
int ams_output_listen(struct ams_output *o);

/* Takes over the other end of what a new main process writes to. */
void ams_output_pipe(struct ams_output *o, int pipe);
void ams_output_terminal(struct ams_output *o, int terminal);

/* For poll: fills AMS_OUTPUT_FDS entries; and does what is due by them. */
void ams_output_poll(const struct ams_output *o, struct pollfd *p);
void ams_output_serve(struct ams_output *o, const struct pollfd *p);

/* The main process has ended: takes what it left, and closes its ends. */
void ams_output_end(struct ams_output *o);

/* To the files; at the end of every round, because lines are kept together until then. */
void ams_output_flush(struct ams_output *o);

#endif
