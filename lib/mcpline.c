#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "mcpline.h"

/* ---- lines ---- */

int
am_input_fill(struct am_input *in, int wait)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t n;

	if (in->ended)
		return 0;
	if (in->start == in->len && in->cap > 1u << 20) {	/* a long line is over: give its memory back */
		free(in->buf);
		in->buf = NULL;
		in->start = in->seen = in->len = in->cap = 0;
	}
	if (in->start > 0 && in->len + 65536 > in->cap) {
		memmove(in->buf, in->buf + in->start, in->len - in->start);
		in->len -= in->start;
		in->seen -= in->start;
		in->start = 0;
	}
	if (in->len + 65536 > in->cap) {
		in->cap = in->cap == 0 ? 131072 : in->cap * 2;
		if ((in->buf = realloc(in->buf, in->cap + 1)) == NULL)
			abort();
	}
	for (;;) {
		if (poll(&p, 1, wait ? -1 : 0) == 0)
			return 0;
		n = read(STDIN_FILENO, in->buf + in->len, in->cap - in->len);
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			break;
	}
	if (n <= 0) {
		if (n < 0)
			am_warn("standard input");
		in->ended = 1;
		return 0;
	}
	in->len += (size_t)n;
	return 1;
}

/* The place of the next line feed, -1 when it has not come yet. */
static ssize_t
line_end(struct am_input *in)
{
	char *nl = in->len > in->seen ? memchr(in->buf + in->seen, '\n', in->len - in->seen) : NULL;

	in->seen = nl == NULL ? in->len : (size_t)(nl - in->buf);
	return nl == NULL ? -1 : nl - in->buf;
}

char *
am_input_line(struct am_input *in, size_t *len, int *too_long)
{
	char *line;
	ssize_t end;

	for (;;) {
		if ((end = line_end(in)) < 0) {
			if (in->len - in->start > AM_MCP_LINE_MAX) {
				*too_long |= !in->skipping;
				in->skipping = 1;
				in->start = in->seen = in->len = 0;
				if (*too_long)
					return NULL;
			}
			if (am_input_fill(in, 1))
				continue;
			if (in->start == in->len || in->skipping)
				return NULL;
			end = (ssize_t)in->len;		/* the last line, not ended */
		}
		line = in->buf + in->start;
		*len = (size_t)end - in->start;
		in->start = in->seen = (size_t)end + ((size_t)end < in->len);
		line[*len] = '\0';
		if (in->skipping) {
			in->skipping = 0;
			continue;
		}
		if (*len > AM_MCP_LINE_MAX) {
			*too_long = 1;
			return NULL;
		}
		return line;
	}
}

/* ---- the id as it was sent ---- */

static const char *
skip_string(const char *p)
{
	for (p++; *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p + 1;
}

static const char *
skip_value(const char *p)
{
	int depth = 0;

	do {
		if (*p == '"') {
			p = skip_string(p);
			continue;
		}
		depth += *p == '{' || *p == '[';
		depth -= *p == '}' || *p == ']';
		p++;
	} while (depth > 0 || (*p != ',' && *p != '}' && *p != ']' && *p != '\0'));
	return p;
}

const char *
am_skip_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

const char *
am_raw_member(const char *object, const char *key, size_t *len)
{
	size_t n = strlen(key);
	const char *p = am_skip_space(object), *name, *value;

	if (*p != '{')
		return NULL;
	for (p = am_skip_space(p + 1); *p == '"'; p = am_skip_space(p + 1)) {
		name = p + 1;
		p = am_skip_space(skip_string(p));
		value = am_skip_space(p + 1);
		p = skip_value(value);
		if (strncmp(name, key, n) == 0 && name[n] == '"') {
			while (p > value && strchr(" \t\r\n", p[-1]) != NULL)
				p--;
			*len = (size_t)(p - value);
			return value;
		}
		if (*p != ',')
			break;
	}
	return NULL;
}
