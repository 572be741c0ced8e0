/*
 * request - one request as read, and what is answered (spec router, 8 and 13).
 */
#ifndef AM_ROUTER_REQUEST_H
#define AM_ROUTER_REQUEST_H

#include "router/deliver.h"

struct amr_answer {
	const char *outcome, *reason;	/* outcome NULL: none yet */
	jv detail, message_id;		/* a string or null */
	jv recipients, attachments;	/* an array, or invalid: no such member */
	int hold;			/* keep a copy for the operator */
};

struct amr_request {
	char id[AM_REQ_ID_MAX + 1];
	char *bytes;			/* NULL: could not be read */
	size_t len;
	char digest[65];		/* "" when the bytes are not there */
	jv doc, draft;
	struct amr_blob *blobs;
	size_t n_blobs;
	struct amr_answer answer;
};

void amr_request_init(struct amr_request *q, const char *id);
void amr_request_free(struct amr_request *q);

/* Gives the answer; detail NULL for none. */
void amr_refuse(struct amr_request *q, const char *outcome, const char *reason, const char *detail);

/*
 * Takes the bytes (from malloc, ended by a NUL) and judges all that needs no
 * other file: 0, or -1 with the answer given.
 */
int amr_request_judge(struct amr_request *q, char *bytes, size_t len, const char *instance);

/*
 * Reads the sidecar directory below outbox: 0, -1 with the answer given, or 1
 * when it cannot be told now (amr_is_shortage).
 */
int amr_request_attach(struct amr_request *q, int outbox, const struct amr_conf *c);

/* What it replies to; NULL for a cold send. Valid while the request lives. */
jv amr_request_key(const struct amr_request *q);	/* owns a string; invalid: none */

/* 1 when the name is a request's; the id (without "req-" and ".json") in out. */
int amr_is_request_name(const char *name, char out[AM_REQ_ID_MAX + 1]);

#endif
