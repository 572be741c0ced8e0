/*
 * render - what a member's sandbox is made from (spec deployment, sections 6
 * and 7): the sandbox policy and the create vector.
 */
#ifndef AM_RENDER_H
#define AM_RENDER_H

#include <stddef.h>

#include "lane.h"

/* UID:GID as the option takes it: digits, neither 0, at most 4294967294. -1 when it is not that. */
struct am_run_as {
	unsigned uid, gid;
};

int am_run_as_parse(const char *s, struct am_run_as *out);

/* The policy file; from malloc. */
char *am_render_policy(const struct am_member *member, const struct am_run_as *run_as);

/* The create vector, a JSON array of strings whose first is "openshell". Owns. */
jv am_render_vector(const struct am_member *member, const char *image, int restart_policy);

/* Borrows: the vector as one line for sh; from malloc, NULL when a word holds a newline. */
char *am_render_script(jv vector);

/* A record of the files stream: a file of mode 0644. Owns. */
jv am_file_record(const char *path, const char *content);

/*
 * What must never leave a renderer: rows that the table would not make. All
 * faults, as clauses joined by "; " in memory from malloc; NULL when there is
 * none.
 */
char *am_render_problems(const struct am_member *member);

#endif
