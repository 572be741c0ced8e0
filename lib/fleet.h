/*
 * fleet - the operator's policy, loaded strictly (spec deployment, sections
 * 1 and 2), and the rules for names.
 */
#ifndef AM_FLEET_H
#define AM_FLEET_H

#include <stddef.h>

#include "json.h"

#define AM_NAME_MAX 19
#define AM_PLAN_MAX (256u << 20)	/* bytes of a plan: names stand in it once per edge */
#define AM_ALLOW_ANY "ALLOW_ANY"

/*
 * The rule for a sandbox name and for a workspace: 1 to 19 of a-z, 0-9 and
 * "-"; no "-" first, last or twice in a row. NULL when it is met, else the
 * reason as a clause.
 */
const char *am_name_problem(const char *name);

/* The rule for a fleet's domain; NULL or a clause. */
const char *am_domain_problem(const char *domain);

/* An OpenShell ID: not empty, no white space, nothing unprintable; NULL or a clause. */
const char *am_id_problem(const char *id);

/* A list of strings that somebody else owns. */
struct am_names {
	const char **v;
	size_t n, cap;
};

void am_names_add(struct am_names *names, const char *name);
void am_names_sort(struct am_names *names);		/* by code point; drops what stands twice */
long am_names_find(const struct am_names *sorted, const char *name);	/* the index, -1 when absent */
void am_names_free(struct am_names *names);

struct am_fleet {
	jv policy;			/* the document; owns every string below */
	const char *workspace, *domain;
	struct am_names members;	/* every name that is mentioned, sorted */
	char why[512];			/* the refusal: names the key and the fault, fit for a terminal */
};

/*
 * Consumes the policy. 0, or -1 with why set; the first fault in the order of
 * section 1 decides. am_fleet_free is due in both cases.
 */
int am_fleet_load(struct am_fleet *fleet, jv policy);

/*
 * Reads a policy from a file (NULL or "-": standard input) that must be a
 * regular one, or anything when it is standard input. With nofollow a
 * symbolic link is refused. 0; -1 refused, why set; -2 it could not be read,
 * why set as well.
 */
int am_fleet_read(struct am_fleet *fleet, const char *path, int nofollow);

void am_fleet_free(struct am_fleet *fleet);

#endif
