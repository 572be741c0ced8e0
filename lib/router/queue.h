/*
 * queue - the requests of one instance that wait for their turn, as a scan of
 * its outbox or an event found them (spec router, section 8.1).
 */
#ifndef AM_ROUTER_QUEUE_H
#define AM_ROUTER_QUEUE_H

#include "router/router.h"

/* Fills the queue anew with what lies in the outbox; -1 with errno. */
int amr_queue_scan(struct amr_turn *t);

/* A file that an event told of. */
void amr_queue_event(struct amr_inst *in, const char *file);

void amr_queue_empty(struct amr_inst *in);

#endif
