#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "redact.h"

#define TAIL 20
#define SECRETS_MAX 65536

static void
add(struct am_secrets *s, const char *value)
{
	size_t i = 0;

	if ((s->v = realloc(s->v, (s->n + 1) * sizeof *s->v)) == NULL)
		abort();
	while (i < s->n && strlen(s->v[i]) >= strlen(value))
		i++;
	memmove(s->v + i + 1, s->v + i, (s->n - i) * sizeof *s->v);
	if ((s->v[i] = strdup(value)) == NULL)
		abort();
	s->n++;
}

void
am_secrets_add(struct am_secrets *s, const char *value)
{
	size_t len = value == NULL ? 0 : strlen(value);

	if (len == 0)
		return;
	add(s, value);
	if (len > TAIL)
		add(s, value + len - TAIL);
}

int
am_secrets_read(struct am_secrets *s, int fd)
{
	size_t len;
	char *text = am_read_fd(fd, SECRETS_MAX, &len), *line, *next;

	if (text == NULL)
		return -1;
	for (line = text; line != NULL; line = next) {
		if ((next = strchr(line, '\n')) != NULL)
			*next++ = '\0';
		am_secrets_add(s, line);
	}
	explicit_bzero(text, len);
	free(text);
	return 0;
}

void
am_secrets_free(struct am_secrets *s)
{
	for (size_t i = 0; i < s->n; i++) {
		explicit_bzero(s->v[i], strlen(s->v[i]));
		free(s->v[i]);
	}
	free(s->v);
}

struct out {
	char *text;
	size_t len, cap;
};

static void
put(struct out *o, const char *bytes, size_t len)
{
	if (o->len + len + 1 > o->cap) {
		o->cap = (o->len + len + 1) * 2;
		if ((o->text = realloc(o->text, o->cap)) == NULL)
			abort();
	}
	memcpy(o->text + o->len, bytes, len);
	o->len += len;
	o->text[o->len] = '\0';
}

static const char *
skip(const char *p, const char *end, const char *chars)
{
	while (p < end && *p != '\0' && strchr(chars, *p) != NULL)
		p++;
	return p;
}

static int
starts(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(end - p) >= n && memcmp(p, word, n) == 0;
}

/*
 * When p is a name that names a secret, and a sign that gives it a value
 * follows: where the value begins, and in *stop where it ends. Else NULL.
 */
static const char *
value_after(const char *p, const char *end, const char **stop)
{
	static const char *const names[] = { "CLAUDE_CODE_MESSAGING_TOKEN", "ANTHROPIC_API_KEY", "peerToken" };
	const char *q;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!starts(p, end, names[i]))
			continue;
		q = skip(p + strlen(names[i]), end, "\"'\\");
		q = skip(q, end, " \t");
		if (q == end || (*q != '=' && *q != ':'))
			return NULL;
		q = skip(q + 1, end, " \t");
		q = skip(q, end, "\"'\\");
		for (*stop = q; *stop < end && strchr(" \t\r\n\"'\\,;}", **stop) == NULL; )
			++*stop;
		return *stop > q ? q : NULL;
	}
	return NULL;
}

static char *
pass(const char *text, size_t len, size_t *out_len, const struct am_secrets *known)
{
	const char *p = text, *end = text + len, *from, *stop;
	struct out o = { 0 };
	size_t i;

	put(&o, "", 0);
	while (p < end) {
		if (known != NULL) {
			for (i = 0; i < known->n && !starts(p, end, known->v[i]); i++)
				;
			if (i < known->n) {
				put(&o, AM_REDACTED, strlen(AM_REDACTED));
				p += strlen(known->v[i]);
				continue;
			}
		} else if ((from = value_after(p, end, &stop)) != NULL) {
			put(&o, p, (size_t)(from - p));
			put(&o, AM_REDACTED, strlen(AM_REDACTED));
			p = stop;
			continue;
		}
		put(&o, p++, 1);
	}
	*out_len = o.len;
	return o.text;
}

char *
am_redact(const struct am_secrets *s, const char *text, size_t len, size_t *out_len)
{
	char *once = pass(text, len, &len, s), *twice = pass(once, len, out_len, NULL);

	free(once);
	return twice;
}
