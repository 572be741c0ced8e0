/*
 * render - what a member's sandbox is made from (spec deployment, sections 6
 * and 7): the sandbox policy and the create vector.
 */
#ifndef AM_RENDER_H
#define AM_RENDER_H

#include <stddef.h>

#include "buf.h"
#include "lane.h"

/* UID:GID as the option takes it: digits, neither 0, at most 4294967294. -1 when it is not that. */
struct am_run_as {
	unsigned uid, gid;
};

int am_run_as_parse(const char *s, struct am_run_as *out);

/* What every policy lists besides the rows, and the command that every sandbox runs, from its "--" on. */
extern const char *const am_policy_read_only[], *const am_policy_read_write[], *const am_main_command[];

/* Adds the text of the policy file. */
void am_render_policy(struct am_buf *out, const struct am_member *member, const struct am_run_as *run_as);

/* The words of a command, each ended by a NUL, the first one "openshell". free(text.s). */
struct am_words {
	struct am_buf text;
	size_t n;
};

void am_render_words(struct am_words *words, const struct am_member *member, const char *image, int restart_policy);

/* Adds the words as one line for sh; -1 when one of them holds a newline. */
int am_render_script(struct am_buf *out, const struct am_words *words);

/* Adds a record of the files stream, with its newline: a file of mode 0644. */
void am_file_record(struct am_buf *out, const char *path, const char *content, size_t len);

/* What was made for a member; NULL for what was not. */
struct am_rendering {
	const struct am_member *member;
	const struct am_buf *policy;		/* with run_as */
	const struct am_run_as *run_as;
	const struct am_words *words;
};

/*
 * What must never leave a renderer: rows that the table would not make; else a
 * policy, else a command, that does not say what the rows say. Both are read
 * back from their text. All faults of the first kind that is found, as clauses
 * joined by "; " in memory from malloc; NULL when there is none.
 */
char *am_render_problems(const struct am_rendering *rendering);

/* 1 when every row is as the table makes it. */
int am_rows_are_own(const struct am_member *member);

#endif
