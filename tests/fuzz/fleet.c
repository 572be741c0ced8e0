/*
 * A policy that is loaded has sound names only, resolves without an error, and
 * its warnings and overlaps are true.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int true_)
{
	if (!true_)
		abort();
}

static void
check(const struct am_fleet *f, const struct am_reach *r)
{
	struct am_pairs one = { 0 }, both = { 0 };
	const struct am_names *names = r->names;

	must(names->n > 0 && am_domain_problem(f->domain) == NULL && am_name_problem(f->workspace) == NULL);
	for (size_t i = 0; i < names->n; i++) {
		must(am_name_problem(names->v[i]) == NULL);
		must(i == 0 || strcmp(names->v[i - 1], names->v[i]) < 0);
	}
	am_one_sided(r, &one);
	for (size_t i = 0; i < one.n; i++)
		must(am_lists(r, one.v[i].from, one.v[i].to) && !am_lists(r, one.v[i].to, one.v[i].from));
	am_both_lanes(r, &both);
	for (size_t i = 0; i < both.n; i++)
		must(am_tasks(r, both.v[i].from, both.v[i].to) && (am_lists(r, both.v[i].from, both.v[i].to) ||
		    am_lists(r, both.v[i].to, both.v[i].from)));
	free(one.v);
	free(both.v);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct am_fleet f;
	struct am_reach r;
	jv policy;

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	policy = am_json_parse(text, size);
	free(text);
	if (!jv_is_valid(policy)) {
		jv_free(policy);
		return 0;
	}
	if (am_fleet_load(&f, policy) == 0) {
		am_resolve(&r, &f, &f.members);
		check(&f, &r);
		am_reach_free(&r);
	} else {
		must(f.why[0] != '\0');
	}
	am_fleet_free(&f);
	return 0;
}
