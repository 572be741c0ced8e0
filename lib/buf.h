/*
 * buf - text that grows.
 *
 * Memory that runs out ends the program. free(b.s) when done.
 */
#ifndef AM_BUF_H
#define AM_BUF_H

#include <stddef.h>

struct am_buf {
	char *s;		/* not ended by a NUL; NULL as long as nothing was added */
	size_t n, cap;
};

/* Room for so many more bytes behind the text; they count once n is raised. */
char *am_buf_room(struct am_buf *b, size_t more);

void am_buf_add(struct am_buf *b, const void *bytes, size_t n);
void am_buf_byte(struct am_buf *b, char c);

/* Adds strings, up to a NULL. */
#define am_buf_strings(b, ...) am_buf_list(b, (const char *const []){ __VA_ARGS__, NULL })
void am_buf_list(struct am_buf *b, const char *const *strings);

/* Ends the text with a NUL that n does not count; the text. */
char *am_buf_end(struct am_buf *b);

#endif
