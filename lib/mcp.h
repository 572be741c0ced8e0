/*
 * mcp - a server of tools over standard input and output.
 *
 * JSON-RPC 2.0, one value a line (spec connector, section 3; spec claude-code,
 * section 6). Nothing but responses reaches standard output: while it serves,
 * descriptor 1 is standard error. Words for people go there.
 */
#ifndef AM_MCP_H
#define AM_MCP_H

#include <jv.h>
#include <stddef.h>

/* What a tool answers: one text, or an error's. Begins as { 0 }; the text is freed by who made it. */
struct am_answer {
	char *text;
	size_t len;
	int is_error;
};

/* The text of the answer; what was there before is forgotten. */
void am_answer(struct am_answer *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void am_answer_error(struct am_answer *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct am_tool {
	const char *name, *description;
	const char *schema;		/* JSON text of its inputSchema */
	/* Borrows the arguments, an object. */
	void (*call)(jv arguments, struct am_answer *answer);
};

struct am_mcp {
	const char *server, *instructions;
	const struct am_tool *tools;	/* ended by a NULL name */
	void (*idle)(void);		/* NULL, or run once when initialize is answered and nothing waits */
};

/* Serves to the end of input: 0; or -1 with errno when the client cannot be reached any more. */
int am_mcp_serve(const struct am_mcp *mcp);

#endif
