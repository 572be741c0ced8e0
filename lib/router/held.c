#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "router/held.h"
#include "router/log.h"

void
am_hold(const struct am_turn *t, const struct am_request *q)
{
	int dir = am_state_dir(t->r, t->in->name, "held");
	char name[AM_REQ_ID_MAX + 16];

	snprintf(name, sizeof name, "req-%s.json", q->id);
	if (dir < 0 || am_publish(dir, name, q->bytes, q->len, 0600) != 0)
		am_log(AM_WARNING, ".outbound", "no copy of held request %s of %s: %s", q->id, t->in->name, strerror(errno));
	if (dir >= 0)
		close(dir);
}

enum am_placed
am_place_decision(struct am_router *r, struct am_inst *from, const struct am_request *q, const struct am_plan *p,
    const struct am_target *t)
{
	(void)r; (void)from; (void)q; (void)p; (void)t;
	return AM_FAILED;
}
