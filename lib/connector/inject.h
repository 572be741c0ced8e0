/*
 * inject - hand one text to a session and learn what became of it
 * (spec connector, sections 6.9 to 6.11; spec claude-code, section 3).
 *
 * Never blocks. One process must open, send and wait: a session gives its
 * receipts to nobody else.
 */
#ifndef AM_INJECT_H
#define AM_INJECT_H

#include <jv.h>
#include <poll.h>
#include <stddef.h>
#include <sys/un.h>

#define AM_INJECT_REPLIES 4
#define AM_INJECT_FDS (2 + AM_INJECT_REPLIES)
#define AM_FRAME_MAX 1000000		/* bytes; a session drops one of more than 1048576 characters */

enum am_verdict {
	AM_V_WAITING,
	AM_V_HELD,		/* news once, then it goes on waiting */
	AM_V_SILENT,		/* no receipt: taken, as far as can be known */
	AM_V_DELIVERED,
	AM_V_DENIED,
	AM_V_REFUSED,		/* the session takes no messages */
	AM_V_GONE,		/* it certainly did not arrive: may be sent again */
	AM_V_DUPLICATE,		/* dropped as said already: never again */
	AM_V_HOLD_OVER,		/* held, and nothing more came */
	AM_V_UNCERTAIN		/* it may have arrived */
};

struct am_reply {
	int fd;
	size_t len;
	char line[16384];
};

struct am_injection {
	int conn, listener;
	struct sockaddr_un reply;
	struct am_reply *replies[AM_INJECT_REPLIES];
	char msg_id[37];
	char *frame;
	size_t len, sent, auth;		/* auth: bytes of the first line */
	long long deadline, wait_ms, hold_ms;	/* milliseconds of am_now */
	int held;
	char unknown[64];		/* a status that says nothing to us */
	char detail[512];		/* what the verdict rests on, in words */
};

/*
 * Borrows the text. Reads the key, binds the reply socket beside the session's, connects: 0; or
 * -1 with the cause in detail, and nothing is left behind.
 */
int am_inject_open(struct am_injection *in, const char *socket, const char *key_file, jv text);

/* Begins to send. Receipts are waited for wait_ms, after a held one hold_ms more. */
void am_inject_send(struct am_injection *in, long long wait_ms, long long hold_ms);

/* Fills in what to poll for; how many. */
int am_inject_poll(const struct am_injection *in, struct pollfd fds[AM_INJECT_FDS]);

/* Goes on where the descriptors say so. */
enum am_verdict am_inject_step(struct am_injection *in);

/* 1 when a whole message may have reached the session. */
int am_inject_sent(const struct am_injection *in);

void am_inject_close(struct am_injection *in);

#endif
