/*
 * watch - being woken by what appears in outboxes and outcome directories.
 *
 * An event only says where to look, and what it does not say the poll finds:
 * watches are set again at each poll, and any doubt is a rescan.
 */
#ifndef AM_ROUTER_WATCH_H
#define AM_ROUTER_WATCH_H

#include "router/router.h"

void amr_watch_open(struct amr_router *r);

/* Sets, or sets again, the watches of one or of all; those of instances no longer admitted go. */
void amr_watch(struct amr_router *r, struct amr_inst *in);
void amr_watch_all(struct amr_router *r);

/* Reads what happened; instances with something to do stand in the line afterwards. */
void amr_watch_read(struct amr_router *r);

/* Puts an instance at the end of the line, once; takes the first out of it. */
void amr_line_up(struct amr_router *r, struct amr_inst *in);
struct amr_inst *amr_line_next(struct amr_router *r);

#endif
