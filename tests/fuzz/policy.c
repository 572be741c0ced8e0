/*
 * What is read as YAML is a tree whose keys stand once in their map; a policy
 * that is taken has sound paths, and no read-only one that a writable one
 * undoes; one that is not has a reason.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "sandbox/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const struct am_yaml *y)
{
	if ((y->kind == AM_YAML_SCALAR) != (y->text != NULL) || (y->kind == AM_YAML_SCALAR && y->first != NULL))
		abort();
	for (const struct am_yaml *m = y->first; m != NULL; m = m->next) {
		if (y->kind == AM_YAML_MAP ? am_yaml_get(y, m->key) != m : m->key != NULL)
			abort();
		check(m);
	}
}

static void
sound(const char *const *list, size_t n, int writable)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], "/") == 0 ? writable : am_path_problem(list[i]) != NULL)
			abort();
}

static void
judge(const char *text, size_t size)
{
	char why[512] = "";
	struct ams_policy p;

	if (ams_policy_parse(text, size, &p, why) != AMS_POLICY_FINE) {
		if (why[0] == '\0' || p.tree != NULL)
			abort();
		return;
	}
	if (p.n_ro + p.n_rw == 0 || p.n_ro + p.n_rw > AMS_POLICY_PATHS || ams_policy_uid(&p, 1) == 0 || ams_policy_gid(&p, 1) == 0)
		abort();
	sound(p.read_only, p.n_ro, 0);
	sound(p.read_write, p.n_rw, 1);
	for (size_t i = 0; i < p.n_ro; i++)
		for (size_t k = 0; k < p.n_rw; k++)
			if (am_path_under(p.read_only[i], p.read_write[k]))
				abort();
	ams_policy_free(&p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[256] = "";
	struct am_yaml *y = am_yaml_parse((const char *)data, size, why);

	if (y != NULL)
		check(y);
	else if (why[0] == '\0')
		abort();
	am_yaml_free(y);
	judge((const char *)data, size);
	return 0;
}
