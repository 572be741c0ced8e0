#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "router/held.h"
#include "router/log.h"

void
amr_hold(const struct amr_turn *t, const struct amr_request *q)
{
	int dir = amr_state_dir(t->r, t->in->name, "held");
	char name[AM_REQ_ID_MAX + 16];

	snprintf(name, sizeof name, "req-%s.json", q->id);
	if (dir < 0 || am_publish(dir, name, q->bytes, q->len, 0600) != 0)
		amr_log(AM_WARNING, ".outbound", "no copy of held request %s of %s: %s", q->id, t->in->name, strerror(errno));
	if (dir >= 0)
		close(dir);
}

enum amr_placed
amr_place_decision(struct amr_router *r, struct amr_inst *from, const struct amr_request *q, const struct amr_plan *p,
    const struct amr_target *t)
{
	(void)r; (void)from; (void)q; (void)p; (void)t;
	return AM_FAILED;
}
