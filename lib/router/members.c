#include <stdlib.h>
#include <string.h>

#include "router/router.h"

static size_t
place_of(const struct amr_router *r, const char *name, int *found)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int d = strcmp(name, r->inst[mid]->name);

		if (d == 0) {
			*found = 1;
			return mid;
		}
		if (d < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	*found = 0;
	return lo;
}

struct amr_inst *
amr_inst_find(const struct amr_router *r, const char *name)
{
	int found;
	size_t i = place_of(r, name, &found);

	return found ? r->inst[i] : NULL;
}

static struct amr_inst *
new_inst(const char *name)
{
	struct amr_inst *in = calloc(1, sizeof *in);

	if (in == NULL || (in->name = strdup(name)) == NULL)
		abort();
	in->alerts = in->denied = jv_invalid();
	in->pass_alerts = jv_array();
	in->rescan = 1;
	return in;
}

void
amr_adopt(struct amr_router *r)
{
	int found;

	for (size_t i = 0; i < r->n; i++)
		r->inst[i]->at = -1;
	for (size_t k = 0; k < r->conf->n; k++) {
		size_t i = place_of(r, r->conf->members[k].name, &found);

		if (!found) {
			if ((r->inst = realloc(r->inst, (r->n + 1) * sizeof *r->inst)) == NULL)
				abort();
			memmove(r->inst + i + 1, r->inst + i, (r->n - i) * sizeof *r->inst);
			r->inst[i] = new_inst(r->conf->members[k].name);
			r->n++;
		}
		r->inst[i]->at = (long)k;
	}
}
