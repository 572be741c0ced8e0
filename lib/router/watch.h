/*
 * watch - being woken by what appears in outboxes and outcome directories.
 *
 * An event only says where to look, and what it does not say the poll finds:
 * watches are set again at each poll, and any doubt is a rescan.
 */
#ifndef AM_ROUTER_WATCH_H
#define AM_ROUTER_WATCH_H

#include "router/router.h"

void am_watch_open(struct am_router *r);

/* Sets, or sets again, the watches of an admitted instance, or takes them away. */
void am_watch(struct am_router *r, struct am_inst *in);

/* Reads what happened; instances with something to do stand in the line afterwards. */
void am_watch_read(struct am_router *r);

/* Puts an instance at the end of the line, once; takes the first out of it. */
void am_line_up(struct am_router *r, struct am_inst *in);
struct am_inst *am_line_next(struct am_router *r);

#endif
