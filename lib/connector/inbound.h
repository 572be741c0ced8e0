/*
 * inbound - the messaging socket of a session, seen from the session
 * (spec connector, section 6.10; spec claude-code, sections 2 and 3).
 */
#ifndef AM_INBOUND_H
#define AM_INBOUND_H

#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

#define AM_INBOUND_CONNS 256	/* a sender keeps its own open until it knows what became of the message */
#define AM_INBOUND_FDS (AM_INBOUND_CONNS + 1)
#define AM_INBOUND_LINE_MAX 1048576

struct am_message {
	char *text;
	size_t len;
	char reply[108];	/* where receipts go; empty for nowhere */
	char msg_id[64];
	pid_t sender;
};

struct am_conn {
	int fd, known;		/* it gave the token */
	pid_t peer;
	char *buf;
	size_t len, cap;
};

struct am_inbound {
	int fd;
	char path[108], token[33];
	size_t count;
	struct am_conn conns[AM_INBOUND_CONNS];		/* in the order in which they came */
};

/*
 * Makes a private directory for the socket and listens there at PID.sock; -1
 * with a clause in why.
 */
int am_inbound_open(struct am_inbound *in, char why[300]);
int am_inbound_poll(const struct am_inbound *in, struct pollfd fds[AM_INBOUND_FDS]);

/* Takes what has come; the callback owns the text of each message. */
void am_inbound_step(struct am_inbound *in, void (*take)(struct am_message *m));

/* Tells the sender, who must be the listener there, what became of its message: 0, or -1 with errno. */
int am_inbound_receipt(const struct am_inbound *in, const struct am_message *m, const char *status,
    const char *detail, const char *reason);

void am_inbound_close(struct am_inbound *in);

#endif
