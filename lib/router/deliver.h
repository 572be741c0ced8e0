/*
 * deliver - placing one message in one member's tree (spec router, section 12).
 */
#ifndef AM_ROUTER_DELIVER_H
#define AM_ROUTER_DELIVER_H

#include "router/letter.h"

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

#endif
