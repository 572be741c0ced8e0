/*
 * resolve - who may reach whom (spec deployment, section 3).
 *
 * The names are the fleet's members, or the recorded ones when the fleet is
 * already (partly) up; a recorded name that the policy no longer mentions has
 * the default peers and no senders. Nothing is ever made symmetric.
 */
#ifndef AM_RESOLVE_H
#define AM_RESOLVE_H

#include "fleet.h"

/* Members by their index in the sorted names, ascending. */
struct am_set {
	unsigned *v;
	size_t n, cap;
};

struct am_pair {
	unsigned from, to;
};

struct am_pairs {
	struct am_pair *v;
	size_t n, cap;
};

struct am_reach {
	const struct am_names *names;
	struct am_links {
		int any;		/* mail: the list is ALLOW_ANY, and peers is empty */
		struct am_set peers;	/* mail: whom this member lists */
		struct am_set senders;	/* delegation: who may task it; empty when all is set */
	} *links;
	int all;			/* every member may task every other one: the policy says ALL and denies nothing */
};

/* Names: sorted, and holding every member of the fleet. They must outlive the result. */
void am_resolve(struct am_reach *reach, const struct am_fleet *fleet, const struct am_names *names);
void am_reach_free(struct am_reach *reach);

int am_lists(const struct am_reach *reach, unsigned a, unsigned b);	/* a's mail list has b */
int am_tasks(const struct am_reach *reach, unsigned a, unsigned b);	/* a may task b */

/* Owned by the caller (free v). a lists b, b does not list a: sorted by a, then b. */
void am_one_sided(const struct am_reach *reach, struct am_pairs *out);

/*
 * The pairs (sender, recipient) of the delegation graph between which one
 * side, or both, also lists the other for mail: sorted by recipient, then
 * sender. The router takes a fleet without any.
 */
void am_both_lanes(const struct am_reach *reach, struct am_pairs *out);

#endif
