/* What is read as TOML is a tree whose keys stand once in their table. */
#include <stdint.h>
#include <stdlib.h>

#include "toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const struct am_toml *t)
{
	if (t->kind != AM_TOML_TABLE && t->kind != AM_TOML_ARRAY && (t->text == NULL || t->first != NULL))
		abort();
	for (const struct am_toml *m = t->first; m != NULL; m = m->next) {
		if (t->kind == AM_TOML_TABLE ? am_toml_get(t, m->key) != m : m->key != NULL)
			abort();
		check(m);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[200] = "";
	struct am_toml *t = am_toml_parse((const char *)data, size, why, sizeof why);

	if (t != NULL)
		check(t);
	else if (why[0] == '\0')
		abort();
	am_toml_free(t);
	return 0;
}
