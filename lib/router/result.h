/*
 * result - answering a request and taking it out of the outbox
 * (spec router, section 13).
 */
#ifndef AM_ROUTER_RESULT_H
#define AM_ROUTER_RESULT_H

#include "router/request.h"

/* Owns the result document. */
jv amr_result(const struct amr_request *q);

/* The private record of an answer, durable: what says that the request is done. -1 with errno. */
int amr_record(struct amr_turn *t, const struct amr_request *q, jv result);	/* borrows result */

/*
 * Both at once (consumes result). -1: it is not recorded; 0; 1: recorded, and
 * must be tried again. intent: one stands behind the answer, so that it does
 * not matter which of the two names a loss of power keeps.
 */
int amr_record_and_answer(struct amr_turn *t, const struct amr_request *q, jv result, int intent);

/*
 * Publishes a result (consumes) and takes the request out of the outbox. -1
 * with errno when it must be tried again; then the request is still there.
 */
int amr_answer(struct amr_turn *t, const char *id, jv result);

#endif
