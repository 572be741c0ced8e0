/*
 * submit - the three tools of inbox-submit (spec connector, section 5).
 *
 * Each takes its arguments as an object, as they come over MCP, and answers
 * with one text; nothing here is specific to MCP.
 */
#ifndef AM_SUBMIT_H
#define AM_SUBMIT_H

#include <jv.h>

#include "mcp.h"

/* Sets the outbox that the tools work on; borrowed for the life of the program. */
void am_submit_into(const char *outbox);

/* All borrow their arguments. */
void am_submit(jv arguments, struct am_answer *answer);
void am_submit_result(jv arguments, struct am_answer *answer);
void am_peers(jv arguments, struct am_answer *answer);

/* The number of the request last published by am_submit; a static buffer. */
const char *am_submitted(void);

#endif
