/*
 * names - the rules for names, domains and IDs (spec deployment, section 2),
 * and lists of names.
 */
#ifndef AM_NAMES_H
#define AM_NAMES_H

#include <stddef.h>

#define AM_NAME_MAX 19

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

#endif
