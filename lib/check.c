#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "diag.h"

/* A jv that was never set is all zero bits, which is no value at all. */
static jv
or_null(jv v)
{
	return jv_get_kind(v) == JV_KIND_INVALID ? jv_null() : v;
}

void
am_check_put(struct am_checks *out, const struct am_check *c, const char *outcome)
{
	jv r = jv_object();

	if (strcmp(outcome, AM_PASS) != 0) {
		out->rc = AM_PROBLEM;
		if (c->remedy == NULL || c->remedy[0] == '\0')
			abort();
	}
	out->count++;
	r = am_set_str(r, "section", c->section);
	r = am_set_str(r, "id", c->id);
	r = am_set_str(r, "subject", c->subject);
	r = am_set_str(r, "claim", c->claim);
	r = am_set_str(r, "outcome", outcome);
	r = am_set(r, "expected", or_null(c->expected));
	r = am_set(r, "actual", or_null(c->actual));
	r = am_set_str(r, "provenance", c->provenance);
	r = am_set_str(r, "reason", c->reason);
	r = am_set_str(r, "remedy", c->remedy);
	r = am_set_str(r, "avoid", c->avoid);
	am_put(out->fp, r);
}

void
am_check_equal(struct am_checks *out, const struct am_check *c)
{
	am_check_put(out, c, jv_equal(jv_copy(c->expected), jv_copy(c->actual)) ? AM_PASS : AM_FAIL);
}

void
am_check_unknown(struct am_checks *out, const struct am_check *c, const char *reason)
{
	struct am_check u = *c;

	jv_free(u.expected);
	jv_free(u.actual);
	u.expected = u.actual = jv_null();
	u.reason = reason;
	am_check_put(out, &u, AM_UNKNOWN);
}

void
am_check_warning(struct am_checks *out, const char *section, const char *text)
{
	jv r = jv_object();

	out->count++;
	r = am_set_str(r, "section", section);
	r = am_set_str(r, "warning", text);
	am_put(out->fp, r);
}

int
am_check_end(struct am_checks *out)
{
	am_put_end(out->fp, out->count);
	return out->rc;
}
