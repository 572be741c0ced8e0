/*
 * lane - the five mounts of a member (spec deployment, section 6).
 *
 * This one table decides every read-only flag anywhere: the driver config, the
 * sandbox policy, admission and the checks all take it from here or from the
 * members stream that is made of it.
 */
#ifndef AM_LANE_H
#define AM_LANE_H

#include <stddef.h>

#include "json.h"

#define AM_ROWS 5

struct am_row {
	const char *role, *target;
	char *source;
	int read_only;
};

/* A member's rows below a home. The sources are from malloc: am_rows_free. */
void am_rows_make(struct am_row rows[AM_ROWS], const char *home, const char *name);
void am_rows_free(struct am_row rows[AM_ROWS]);

/* 1 when target and flag of row i are those of the table. */
int am_row_is_own(const struct am_row *row, int i);

/* A record of the members stream, read. */
struct am_member {
	const char *name, *workspace, *address;
	char *home;			/* the sources lie below it */
	struct am_row rows[AM_ROWS];
};

/*
 * Borrows the record, which must outlive the result. -1 with why set unless it
 * has name, workspace, address, and the five rows in their order, whose sources
 * are the member's own below one home. Targets and flags are taken as they are:
 * who uses them judges them. am_member_free is due in both cases.
 */
int am_member_read(struct am_member *member, jv record, char *why, size_t size);
void am_member_free(struct am_member *member);

/*
 * Reads a members stream (path NULL or "-": standard input) and calls each for
 * every member, or only for the one whose name is given; each returns -1, with
 * why set, to end it. The number of calls, or -1 with why set.
 */
typedef int am_member_fn(const struct am_member *member, void *arg, char *why, size_t size);
long am_members_each(const char *path, const char *name, am_member_fn *each, void *arg, char *why, size_t size);

#endif
