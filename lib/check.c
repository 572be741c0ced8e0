#include <stdlib.h>
#include <string.h>

#include "check.h"

void
am_check_put(FILE *fp, const struct am_check *c, const char *outcome)
{
	jv r = jv_object();

	if (strcmp(outcome, AM_PASS) != 0 && (c->remedy == NULL || c->remedy[0] == '\0'))
		abort();
	r = am_set_str(r, "section", c->section);
	r = am_set_str(r, "id", c->id);
	r = am_set_str(r, "subject", c->subject);
	r = am_set_str(r, "claim", c->claim);
	r = am_set_str(r, "outcome", outcome);
	r = am_set(r, "expected", c->expected);
	r = am_set(r, "actual", c->actual);
	r = am_set_str(r, "provenance", c->provenance);
	r = am_set_str(r, "reason", c->reason);
	r = am_set_str(r, "remedy", c->remedy);
	r = am_set_str(r, "avoid", c->avoid);
	am_put(fp, r);
}

void
am_check_equal(FILE *fp, const struct am_check *c)
{
	am_check_put(fp, c, jv_equal(jv_copy(c->expected), jv_copy(c->actual)) ? AM_PASS : AM_FAIL);
}

void
am_check_warning(FILE *fp, const char *section, const char *text)
{
	jv r = jv_object();

	r = am_set_str(r, "section", section);
	r = am_set_str(r, "warning", text);
	am_put(fp, r);
}
