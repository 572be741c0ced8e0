/*
 * turn - take apart what inbox-delivery injects (spec connector, section 6.9).
 */
#ifndef AM_TURN_H
#define AM_TURN_H

#include <stddef.h>

struct am_turn {
	const char *kind;	/* "peer", "mail"; "text" for what no inbox-delivery made */
	char *from, *id;	/* from malloc; NULL when there is none */
	const char *body;	/* within the text */
	size_t body_len;
};

/*
 * The daemon's own lines are the last ones, so they are read from the end: a
 * sender can write the same words into a body, but not after them.
 */
void am_turn_parse(const char *text, size_t len, struct am_turn *turn);
void am_turn_free(struct am_turn *turn);

#endif
