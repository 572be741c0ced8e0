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
int am_carry_out(struct am_router *r, struct am_inst *from, const struct am_request *q, struct am_plan *p, int resumed);

/*
 * What became of a plan whose request is not there any more: 1 when some
 * target has its notice, 0 when none has (what was begun is taken away), -1
 * when that cannot be told now.
 */
int am_find_placed(const struct am_router *r, struct am_plan *p);

#endif
