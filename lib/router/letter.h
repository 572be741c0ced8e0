/*
 * letter - the documents of one message: for the recipient, for the ledger and
 * for the audit log (spec router, sections 12 and 16).
 */
#ifndef AM_ROUTER_LETTER_H
#define AM_ROUTER_LETTER_H

#include "router/router.h"

struct amr_blob {
	char *bytes;
	size_t len;
	jv filename, media_type;	/* for display, as they are shown */
	char sha256[65];
};

struct amr_letter {
	const char *from;		/* an instance; NULL: the router itself */
	jv subject, body;		/* strings, borrowed */
	const struct amr_blob *blobs;
	size_t n_blobs;
	const char *in_reply_to;	/* NULL: answers nothing */
	const char *req_id;		/* "" for the router's own */
	jv exposure;			/* borrowed; invalid: not assessed, or mail */
	jv audit;			/* borrowed; what the audit line says beyond the usual; invalid: no line */
};

/* Own their documents. from, to: addresses; instance: the recipient's name. */
jv amr_letter_message(const struct amr_letter *l, const char *nid, const char *ts, const char *from, const char *to);
jv amr_letter_notice(const struct amr_letter *l, int peer, const char *nid, const char *ts, const char *from);
jv amr_letter_ledger(const struct amr_letter *l, const char *instance, int peer, const char *nid, const char *ts,
    const char *from);
jv amr_letter_audit(const struct amr_letter *l, const char *instance, int peer, const char *nid, const char *from,
    const char *to);

/* Owns: what is not printable becomes a space, none at either end; at most max characters. */
jv amr_display_text(jv text, size_t max);

#endif
