/*
 * result - answering a request and taking it out of the outbox
 * (spec router, section 13).
 */
#ifndef AM_ROUTER_RESULT_H
#define AM_ROUTER_RESULT_H

#include "router/request.h"

/* Owns the result document. */
jv am_result(const struct am_request *q);

/* The private record of an answer, durable: what says that the request is done. -1 with errno. */
int am_record(struct am_turn *t, const struct am_request *q, jv result);	/* borrows result */

/* Publishes a result (consumes) and takes the request out of the outbox. */
void am_answer(struct am_turn *t, const char *id, jv result);

/* Both, in this order. -1 with errno when the record could not be written; then the request is still there. */
int am_conclude(struct am_turn *t, struct am_request *q);

/* Empties and removes a directory below at, bounded and following nothing. */
void am_remove_tree(int at, const char *name);

#endif
