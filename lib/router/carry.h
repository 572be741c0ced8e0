/*
 * carry - carrying out a plan: each target gets its notice.
 */
#ifndef AM_ROUTER_CARRY_H
#define AM_ROUTER_CARRY_H

#include "router/intent.h"
#include "router/request.h"

/*
 * 0 when it is known what became of each target, -1 when the request must
 * wait. resumed: some may have been placed before.
 */
int amr_carry_out(struct amr_router *r, struct amr_inst *from, const struct amr_request *q, struct amr_plan *p, int resumed);

/*
 * What became of a plan whose request is not there any more: 1 when some
 * target has its notice, 0 when none has (what was begun is taken away), -1
 * when that cannot be told now.
 */
int amr_find_placed(const struct amr_router *r, struct amr_plan *p);

#endif
