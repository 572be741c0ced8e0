#include <stdlib.h>
#include <string.h>

#include "buf.h"

char *
am_buf_room(struct am_buf *b, size_t more)
{
	if (b->cap - b->n < more) {
		b->cap = b->cap * 2 + more + 64;
		if ((b->s = realloc(b->s, b->cap)) == NULL)
			abort();
	}
	return b->s + b->n;
}

void
am_buf_add(struct am_buf *b, const void *bytes, size_t n)
{
	memcpy(am_buf_room(b, n), bytes, n);
	b->n += n;
}

void
am_buf_byte(struct am_buf *b, char c)
{
	*am_buf_room(b, 1) = c;
	b->n++;
}

void
am_buf_list(struct am_buf *b, const char *const *strings)
{
	for (; *strings != NULL; strings++)
		am_buf_add(b, *strings, strlen(*strings));
}

char *
am_buf_end(struct am_buf *b)
{
	*am_buf_room(b, 1) = '\0';
	return b->s;
}
