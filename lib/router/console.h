/*
 * console - the fleet as one page to read (spec router, section 19, "console").
 *
 * Much of it was written by agents. No byte of theirs is markup, and the page
 * tells a browser to run and to fetch nothing.
 */
#ifndef AM_ROUTER_CONSOLE_H
#define AM_ROUTER_CONSOLE_H

#include "router/router.h"

/* r needs its configuration and its state directory. Borrows; either document may be invalid. */
void amr_console(FILE *fp, const struct amr_router *r, jv status, jv facts);

#endif
