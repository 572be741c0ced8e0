/*
 * membership - which sandbox is which member (spec deployment, section 5).
 *
 * Absent and empty differ: absent means that nothing was ever recorded.
 */
#ifndef AM_MEMBERSHIP_H
#define AM_MEMBERSHIP_H

#include <stddef.h>

#include "fleet.h"
#include "json.h"

struct am_record {
	const char *workspace, *name, *id;
};

struct am_membership {
	jv doc;				/* owns the strings that were read */
	int absent;			/* there is no such file */
	struct am_record *v;		/* sorted by name */
	size_t n;
	char why[512];
};

/*
 * Reads path (NULL or "-": standard input), strictly. 0; -1 refused, or -2
 * unreadable, with why set. am_membership_free is due in every case.
 */
int am_membership_read(struct am_membership *m, const char *path);
void am_membership_free(struct am_membership *m);

/* NULL when name is not recorded. */
struct am_record *am_membership_find(const struct am_membership *m, const char *name);

/* The recorded names, sorted, borrowed from m; am_names_free. */
void am_membership_names(const struct am_membership *m, struct am_names *out);

#endif
