/*
 * mcpline - the lines that a client of a tool server sends.
 *
 * Read from standard input as they come, whole up to AM_MCP_LINE_MAX bytes.
 */
#ifndef AM_MCPLINE_H
#define AM_MCPLINE_H

#include <stddef.h>

#define AM_MCP_LINE_MAX (4u << 20)	/* bytes of one line of input */

struct am_input {
	char *buf;
	size_t start, len, cap;		/* what was read and not yet taken: buf[start..len) */
	size_t seen;			/* no line feed stands before this place */
	int ended, skipping;
};

/* Reads what is there, waiting for it when asked to; 0 when nothing came. */
int am_input_fill(struct am_input *in, int wait);

/*
 * The next line, ended with a NUL in place of its line feed; NULL at the end.
 * One that is too long is left out and makes *too_long 1, once.
 */
char *am_input_line(struct am_input *in, size_t *len, int *too_long);

/*
 * The text of a member of an object that am_json_parse took. libjq has
 * doubles only, and an id must come back digit for digit.
 */
const char *am_raw_member(const char *object, const char *key, size_t *len);

/* Past the white space of JSON. */
const char *am_skip_space(const char *p);

#endif
