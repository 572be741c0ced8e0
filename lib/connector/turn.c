#include <stdlib.h>
#include <string.h>

#include "connector/turn.h"
#include "doc.h"

#define OPEN "<cross-session-message from-name=\""
#define CLOSE "\n</cross-session-message>"
#define MARKER "-- added by inbox-delivery --"
#define MESSAGE_ID "message id: "
#define DOORBELL "you have mail"

/* Cuts the last line off what ends at *end; NULL when that is one line only. */
static const char *
cut_line(const char *from, const char **end, size_t *len)
{
	const char *nl = memrchr(from, '\n', (size_t)(*end - from)), *line = nl + 1;

	if (nl == NULL)
		return NULL;
	*len = (size_t)(*end - line);
	*end = nl;
	return line;
}

static int
begins(const char *s, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(s, with, strlen(with)) == 0;
}

void
am_turn_parse(const char *text, size_t len, struct am_turn *t)
{
	const char *end = text + len - (sizeof CLOSE - 1), *name = text + sizeof OPEN - 1, *mark, *body, *line;
	size_t n, name_len;

	*t = (struct am_turn){ .kind = "text", .body = text, .body_len = len };
	if (!begins(text, len, OPEN) || name > end || !begins(end, sizeof CLOSE - 1, CLOSE) ||
	    (mark = memchr(name, '"', (size_t)(end - name))) == NULL || !begins(mark, (size_t)(end - mark), "\">\n"))
		return;
	name_len = (size_t)(mark - name);
	body = mark + 3;
	if (begins(body, (size_t)(end - body), DOORBELL) && memchr(body, '\n', (size_t)(end - body)) == NULL) {
		t->kind = "mail";
		t->body = body;
		t->body_len = (size_t)(end - body);
		return;
	}
	if (!am_is_addr(name, name_len) || cut_line(body, &end, &n) == NULL)	/* how to answer */
		return;
	if ((line = cut_line(body, &end, &n)) == NULL || !begins(line, n, MESSAGE_ID))
		return;
	line += strlen(MESSAGE_ID);
	n -= strlen(MESSAGE_ID);
	mark = cut_line(body, &end, &len);
	if (mark == NULL || len != strlen(MARKER) || !begins(mark, len, MARKER) || end == body || end[-1] != '\n')
		return;
	t->kind = "peer";
	t->from = strndup(name, name_len);
	if (am_is_id(line, n))
		t->id = strndup(line, n);
	t->body = body;
	t->body_len = (size_t)(end - 1 - body);
}

void
am_turn_free(struct am_turn *t)
{
	free(t->from);
	free(t->id);
}
