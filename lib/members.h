/*
 * members - a members stream kept whole, for a probe that compares members.
 */
#ifndef AM_MEMBERS_H
#define AM_MEMBERS_H

#include "lane.h"

struct am_members {
	struct am_member *v;	/* in the stream's order, which is by name */
	size_t n;
	jv records;		/* what the strings lie in */
	char why[512];		/* not empty: the members are not known, and why */
};

/*
 * Reads a whole members stream (path "-": standard input). 0; -1 with why set
 * when it is cut, broken, names nobody, or names two workspaces: then n is 0.
 * A record {"problem":TEXT} in place of the members says why there are none.
 */
int am_members_read(struct am_members *m, const char *path);
void am_members_free(struct am_members *m);

#endif
