/*
 * deliver - placing one message in one member's tree (spec router, section 12).
 */
#ifndef AM_ROUTER_DELIVER_H
#define AM_ROUTER_DELIVER_H

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

enum amr_placed {
	AM_PLACED,
	AM_FAILED,	/* nothing that the recipient could see is there */
	AM_DOUBT	/* it may be seen, and is not known to be durable */
};

/* The notice is the last write. Logs what fails. */
enum amr_placed amr_place(const struct amr_router *r, const struct amr_letter *l, struct amr_inst *to, int peer,
    const char *nid, const char *ts);

/* The audit line alone, of a placement that was cut short after its notice. */
int amr_place_audit(const struct amr_router *r, const struct amr_letter *l, const struct amr_inst *to, int peer,
    const char *nid, const char *ts);

/* Whether a notice stands in a tree, with its message and its record: AM_PLACED (and durable now), AM_FAILED, or AM_DOUBT. */
enum amr_placed amr_placed_already(const struct amr_router *r, const struct amr_inst *to, int peer, const char *nid);

/* Takes away what an unfinished placement left behind; best effort. */
void amr_unplace(const struct amr_router *r, const struct amr_inst *to, int peer, const char *nid);

/* Owns: what is not printable becomes a space; at most max characters. */
jv amr_printable_text(jv text, size_t max);

/* Owns: the same, without spaces at either end. */
jv amr_display_text(jv text, size_t max);

#endif
