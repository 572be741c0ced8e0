#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "verdict.h"

const char *const am_outcome_word[3] = { AM_PASS, AM_FAIL, AM_UNKNOWN };

static const struct {
	const char *id, *title;
} sections[] = {
	{ "install", "the installed payload and layout" },
	{ "router-config", "the router's rendered configuration" },
	{ "gateway", "the gateway's configuration" },
	{ "members", "each member" },
	{ "router-container", "the router's container" },
	{ "router-health", "the router's health" },
};

#define SECTIONS (sizeof sections / sizeof sections[0])

static size_t
rank(const char *section)
{
	size_t i;

	for (i = 0; i < SECTIONS && strcmp(sections[i].id, section) != 0; i++)
		;
	return i;
}

const char *
am_section_title(const char *section)
{
	size_t i = rank(section);

	return i < SECTIONS ? sections[i].title : "other checks";
}

static struct am_verdict_check *
append(struct am_verdict *v)
{
	struct am_verdict_check *c;

	if ((v->count & (v->count - 1)) == 0 &&
	    (v->checks = realloc(v->checks, (v->count == 0 ? 1 : 2 * v->count) * sizeof *v->checks)) == NULL)
		abort();
	c = &v->checks[v->count];
	memset(c, 0, sizeof *c);
	c->seen = v->count++;
	return c;
}

/* Consumes rec, which is sound. */
static void
keep(struct am_verdict *v, jv rec, enum am_outcome outcome)
{
	struct am_verdict_check *c = append(v);

	c->rec = rec;
	c->outcome = outcome;
	c->section = am_str(rec, "section");
	c->id = am_str(rec, "id");
	c->subject = am_str(rec, "subject");
	c->claim = am_str(rec, "claim");
	c->provenance = am_str(rec, "provenance");
	c->reason = am_str(rec, "reason");
	c->remedy = am_str(rec, "remedy");
	c->avoid = am_str(rec, "avoid");
	v->outcomes[outcome]++;
}

void
am_verdict_doubt(struct am_verdict *v, const char *section, const char *claim, const char *reason, const char *remedy)
{
	jv r = jv_object();

	r = am_set_str(r, "section", section);
	r = am_set_str(r, "id", "-");
	r = am_set_str(r, "subject", NULL);
	r = am_set_str(r, "claim", claim);
	r = am_set_str(r, "outcome", AM_UNKNOWN);
	r = am_set(r, "expected", jv_null());
	r = am_set(r, "actual", jv_null());
	r = am_set_str(r, "provenance", NULL);
	r = am_set_str(r, "reason", reason);
	r = am_set_str(r, "remedy", remedy);
	r = am_set_str(r, "avoid", NULL);
	keep(v, r, AM_IS_UNKNOWN);
}

void
am_verdict_add(struct am_verdict *v, jv rec, const char *section)
{
	const char *outcome = am_str(rec, "outcome"), *remedy = am_str(rec, "remedy"), *why = NULL;
	int i = 0;

	if (am_str(rec, "section") != NULL)
		section = am_str(rec, "section");
	if (am_str(rec, "warning") != NULL && !am_has(rec, "outcome")) {
		v->warnings = jv_array_append(v->warnings, rec);
		return;
	}
	if (outcome != NULL)
		while (i < 3 && strcmp(am_outcome_word[i], outcome) != 0)
			i++;
	if (outcome == NULL || i == 3)
		why = "a record has no outcome that is known";
	else if (am_str(rec, "section") == NULL || am_str(rec, "id") == NULL || am_str(rec, "claim") == NULL)
		why = "a record lacks its section, its id or its claim";
	else if (i != AM_IS_PASS && (remedy == NULL || *remedy == '\0'))
		why = "a check that is no PASS has no remedy";
	else if (i == AM_IS_UNKNOWN && am_str(rec, "reason") == NULL)
		why = "a check that is UNKNOWN gives no reason";
	if (why == NULL) {
		keep(v, rec, (enum am_outcome)i);
		return;
	}
	am_verdict_doubt(v, section, "the checks are what a probe printed", why,
	    "run the probe of this section by hand and look at its output");
	jv_free(rec);
}

/* M2 before M10: letters by letter, numbers by value. */
static int
compare_ids(const char *a, const char *b)
{
	size_t n = strcspn(a, "0123456789"), m = strcspn(b, "0123456789");
	int rc = strncmp(a, b, n > m ? n : m);
	long x, y;

	if (rc != 0)
		return rc;
	x = strtol(a + n, NULL, 10);
	y = strtol(b + m, NULL, 10);
	return (x > y) - (x < y);
}

static int
compare(const void *va, const void *vb)
{
	const struct am_verdict_check *a = va, *b = vb;
	size_t ra = rank(a->section), rb = rank(b->section);
	int rc;

	if (ra != rb)
		return ra < rb ? -1 : 1;
	if ((rc = strcmp(a->section, b->section)) != 0)
		return rc;
	if ((rc = strcmp(a->subject == NULL ? "" : a->subject, b->subject == NULL ? "" : b->subject)) != 0)
		return rc;
	if ((rc = compare_ids(a->id, b->id)) != 0)
		return rc;
	return a->seen < b->seen ? -1 : 1;
}

void
am_verdict_sort(struct am_verdict *v)
{
	if (v->count > 0)
		qsort(v->checks, v->count, sizeof *v->checks, compare);
}

void
am_verdict_free(struct am_verdict *v)
{
	for (size_t i = 0; i < v->count; i++)
		jv_free(v->checks[i].rec);
	free(v->checks);
	jv_free(v->warnings);
}
