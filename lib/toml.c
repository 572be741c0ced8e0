#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toml.h"
#include "tomlscalar.h"
#include "utf8.h"

struct reader {
	const char *p, *end;
	long line;
	int depth, keys;
	char *why;
	size_t size;
	char *buf;		/* the string being read */
	size_t len, cap;
};

static int value(struct reader *r, struct am_toml *into);

static int
refuse(struct reader *r, const char *why)
{
	snprintf(r->why, r->size, "line %ld: %s", r->line, why);
	return -1;
}

/* The byte n further on; -1 past the end. */
static int
peek(const struct reader *r, size_t n)
{
	return (size_t)(r->end - r->p) > n ? (unsigned char)r->p[n] : -1;
}

static int
starts(const struct reader *r, const char *s)
{
	size_t n = strlen(s);

	return (size_t)(r->end - r->p) >= n && memcmp(r->p, s, n) == 0;
}

/* ---- the tree ---- */

static struct am_toml *
node(struct reader *r, struct am_toml *parent, enum am_toml_kind kind, const char *key)
{
	struct am_toml *t = calloc(1, sizeof *t);

	if (t == NULL || (key != NULL && (t->key = strdup(key)) == NULL))
		abort();
	t->kind = kind;
	t->line = r->line;
	if (parent != NULL && parent->last != NULL)
		parent->last->next = t;
	else if (parent != NULL)
		parent->first = t;
	if (parent != NULL)
		parent->last = t;
	return t;
}

void
am_toml_free(struct am_toml *t)
{
	while (t != NULL) {
		struct am_toml *next = t->next;

		am_toml_free(t->first);
		free(t->key);
		free(t->text);
		free(t);
		t = next;
	}
}

static struct am_toml *
member(const struct am_toml *t, const char *key)
{
	struct am_toml *m;

	for (m = t->first; m != NULL && strcmp(m->key, key) != 0; )
		m = m->next;
	return m;
}

const struct am_toml *
am_toml_get(const struct am_toml *t, const char *key)
{
	return t == NULL || t->kind != AM_TOML_TABLE ? NULL : member(t, key);
}

/* ---- white space and comments ---- */

static void
blanks(struct reader *r)
{
	while (peek(r, 0) == ' ' || peek(r, 0) == '\t')
		r->p++;
}

/* 1 over a line's end, 0 when none stands here. */
static int
newline(struct reader *r)
{
	int n = starts(r, "\n") ? 1 : starts(r, "\r\n") ? 2 : 0;

	r->p += n;
	r->line += n > 0;
	return n > 0;
}

static int
comment(struct reader *r)
{
	if (peek(r, 0) != '#')
		return 0;
	while (r->p < r->end && *r->p != '\n' && !starts(r, "\r\n")) {
		if (((unsigned char)*r->p < 0x20 && *r->p != '\t') || *r->p == 0x7f)
			return refuse(r, "a control character in a comment");
		r->p++;
	}
	return 0;
}

/* Blanks, comments and line ends: what may stand between the parts of an array. */
static int
space(struct reader *r)
{
	do {
		blanks(r);
		if (comment(r) != 0)
			return -1;
	} while (newline(r));
	return 0;
}

static int
end_of_line(struct reader *r)
{
	blanks(r);
	if (comment(r) != 0)
		return -1;
	if (r->p < r->end && !newline(r))
		return refuse(r, "more text where the line should end");
	return 0;
}

/* ---- strings ---- */

static void
add(struct reader *r, char c)
{
	if (r->len + 1 >= r->cap) {
		r->cap = r->cap == 0 ? 256 : r->cap * 2;
		if ((r->buf = realloc(r->buf, r->cap)) == NULL)
			abort();
	}
	r->buf[r->len++] = c;
	r->buf[r->len] = '\0';
}

static void
add_utf8(struct reader *r, uint32_t c)
{
	if (c < 0x80) {
		add(r, (char)c);
	} else if (c < 0x800) {
		add(r, (char)(0xc0 | c >> 6));
		add(r, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		add(r, (char)(0xe0 | c >> 12));
		add(r, (char)(0x80 | (c >> 6 & 0x3f)));
		add(r, (char)(0x80 | (c & 0x3f)));
	} else {
		add(r, (char)(0xf0 | c >> 18));
		add(r, (char)(0x80 | (c >> 12 & 0x3f)));
		add(r, (char)(0x80 | (c >> 6 & 0x3f)));
		add(r, (char)(0x80 | (c & 0x3f)));
	}
}

static int
unicode(struct reader *r, int digits)
{
	uint32_t c = 0;

	for (int i = 0; i < digits; i++, r->p++) {
		int d = peek(r, 0);

		if (d < 0 || !isxdigit(d))
			return refuse(r, "an escape without its hexadecimal digits");
		c = c << 4 | (uint32_t)(isdigit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
	}
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return refuse(r, "an escape that is no character");
	add_utf8(r, c);
	return 0;
}

/* After a backslash. */
static int
escape(struct reader *r, int multi)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	const char *hit, *back = r->p;
	int c = peek(r, 0);

	if (c > 0 && (hit = strchr(from, c)) != NULL) {
		r->p++;
		add(r, to[hit - from]);
		return 0;
	}
	if (c == 'u' || c == 'U') {
		r->p++;
		return unicode(r, c == 'u' ? 4 : 8);
	}
	blanks(r);		/* a backslash ends a line: everything up to the next word goes */
	if (!multi || !newline(r)) {
		r->p = back;
		return refuse(r, "an unknown escape in a string");
	}
	do
		blanks(r);
	while (newline(r));
	return 0;
}

/* The opening quotes are next; the characters go to the buffer. */
static int
string(struct reader *r)
{
	char quote = *r->p;
	int multi = peek(r, 1) == quote && peek(r, 2) == quote, run;

	r->len = 0;
	add(r, '\0');
	r->len = 0;
	r->p += multi ? 3 : 1;
	if (multi)
		newline(r);
	for (;;) {
		int c = peek(r, 0);

		if (c == quote) {
			for (run = 1; run < 5 && peek(r, (size_t)run) == quote; )
				run++;
			if (!multi || run >= 3) {
				for (int i = 0; multi && i < run - 3; i++)
					add(r, quote);		/* up to two before the closing three */
				r->p += multi ? run : 1;
				return 0;
			}
			add(r, quote);
			r->p++;
		} else if (c < 0) {
			return refuse(r, "a string without its end");
		} else if (c == '\\' && quote == '"') {
			r->p++;
			if (escape(r, multi) != 0)
				return -1;
		} else if (multi && newline(r)) {
			add(r, '\n');
		} else if ((c < 0x20 && c != '\t') || c == 0x7f) {
			return refuse(r, c == '\n' ? "a string without its end" : "a control character in a string");
		} else {
			add(r, (char)c);
			r->p++;
		}
	}
}

/* ---- keys ---- */

static int
is_bare(int c)
{
	return c >= 0 && c < 0x80 && (isalnum(c) || c == '_' || c == '-');
}

/* One part of a key, to the buffer. */
static int
simple_key(struct reader *r)
{
	int c = peek(r, 0);

	if (++r->keys > AM_TOML_KEYS)
		return refuse(r, "too many keys");
	if (c == '"' || c == '\'')
		return starts(r, "\"\"\"") || starts(r, "'''") ? refuse(r, "a key of several lines") : string(r);
	if (!is_bare(c))
		return refuse(r, "a key should stand here");
	for (r->len = 0; is_bare(peek(r, 0)); r->p++)
		add(r, *r->p);
	return 0;
}

/*
 * A step on the way of a dotted key or a header: the table under the key in
 * the buffer, made when it is absent. NULL when something else stands there.
 */
static struct am_toml *
step(struct reader *r, struct am_toml *t, enum am_toml_made made)
{
	struct am_toml *m = member(t, r->buf);

	if (m == NULL) {
		m = node(r, t, AM_TOML_TABLE, r->buf);
		m->made = made;
		return m;
	}
	if (made == AM_TOML_IMPLIED && m->kind == AM_TOML_ARRAY && m->made == AM_TOML_HEADER)
		return m->last;			/* a header goes on in the newest table of an array */
	if (m->kind == AM_TOML_TABLE && made == AM_TOML_DOTTED && m->made == AM_TOML_IMPLIED)
		m->made = made;			/* on the way of a header until now; no header can open it any more */
	if (m->kind == AM_TOML_TABLE && (made == AM_TOML_DOTTED ? m->made == made : m->made != AM_TOML_INLINE))
		return m;
	refuse(r, "a key that goes through what is no table, or one that is closed");
	return NULL;
}

/* All parts of a key but the last, which is left in the buffer. */
static struct am_toml *
walk(struct reader *r, struct am_toml *t, enum am_toml_made made)
{
	for (int parts = 0; ; parts++) {
		if (simple_key(r) != 0)
			return NULL;
		blanks(r);
		if (peek(r, 0) != '.')
			return t;
		if (parts == AM_TOML_DEPTH) {
			refuse(r, "nested too deep");
			return NULL;
		}
		r->p++;
		blanks(r);
		if ((t = step(r, t, made)) == NULL)
			return NULL;
	}
}

static int
pair(struct reader *r, struct am_toml *t)
{
	struct am_toml *m;

	if ((t = walk(r, t, AM_TOML_DOTTED)) == NULL)
		return -1;
	if (member(t, r->buf) != NULL)
		return refuse(r, "a key stands twice");
	m = node(r, t, AM_TOML_TABLE, r->buf);
	if (peek(r, 0) != '=')
		return refuse(r, "a key without its \"=\"");
	r->p++;
	blanks(r);
	return value(r, m);
}

/* ---- values ---- */

static int
inline_table(struct reader *r, struct am_toml *t)
{
	r->p++;
	blanks(r);
	if (peek(r, 0) == '}') {
		r->p++;
		return 0;
	}
	for (;;) {
		if (pair(r, t) != 0)
			return -1;
		blanks(r);
		if (peek(r, 0) == '}') {
			r->p++;
			return 0;
		}
		if (peek(r, 0) != ',')
			return refuse(r, "an inline table without its end");
		r->p++;
		blanks(r);
	}
}

static int
array(struct reader *r, struct am_toml *t)
{
	r->p++;
	for (;;) {
		if (space(r) != 0)
			return -1;
		if (peek(r, 0) == ']') {
			r->p++;
			return 0;
		}
		if (value(r, node(r, t, AM_TOML_TABLE, NULL)) != 0 || space(r) != 0)
			return -1;
		if (peek(r, 0) == ',')
			r->p++;
		else if (peek(r, 0) != ']')
			return refuse(r, "an array without its end");
	}
}

static int
scalar(struct reader *r, struct am_toml *t)
{
	const char *from = r->p;

	while (is_bare(peek(r, 0)) || peek(r, 0) == '+' || peek(r, 0) == '.' || peek(r, 0) == ':')
		r->p++;
	/* The one space that may stand in a value: between a date and a time. */
	if (r->p - from == 10 && from[4] == '-' && peek(r, 0) == ' ' && peek(r, 1) >= 0 && isdigit(peek(r, 1)))
		for (r->p++; is_bare(peek(r, 0)) || peek(r, 0) == '+' || peek(r, 0) == '.' || peek(r, 0) == ':'; )
			r->p++;
	if ((t->text = strndup(from, (size_t)(r->p - from))) == NULL)
		abort();
	return am_toml_scalar(t->text, &t->kind) == 0 ? 0 : refuse(r, "no value that TOML knows");
}

static int
value(struct reader *r, struct am_toml *t)
{
	int c = peek(r, 0), rc;

	t->made = AM_TOML_INLINE;
	if (c == '"' || c == '\'') {
		t->kind = AM_TOML_STRING;
		if (string(r) != 0)
			return -1;
		if ((t->text = strdup(r->buf)) == NULL)
			abort();
		return 0;
	}
	if (c != '[' && c != '{')
		return scalar(r, t);
	if (r->depth == AM_TOML_DEPTH)
		return refuse(r, "nested too deep");
	r->depth++;
	t->kind = c == '[' ? AM_TOML_ARRAY : AM_TOML_TABLE;
	rc = c == '[' ? array(r, t) : inline_table(r, t);
	r->depth--;
	return rc;
}

/* ---- the document ---- */

/* [a.b] or [[a.b]]: the table that the following lines belong to; NULL when it is refused. */
static struct am_toml *
header(struct reader *r, struct am_toml *root)
{
	int list = starts(r, "[["), spaced;
	const char *from = r->p += list ? 2 : 1;
	struct am_toml *t, *m;

	blanks(r);
	if ((t = walk(r, root, AM_TOML_IMPLIED)) == NULL)
		return NULL;
	spaced = memchr(from, ' ', (size_t)(r->p - from)) != NULL || memchr(from, '\t', (size_t)(r->p - from)) != NULL;
	if (!starts(r, list ? "]]" : "]")) {
		refuse(r, "a header without its end");
		return NULL;
	}
	r->p += list ? 2 : 1;
	m = member(t, r->buf);
	if (list) {
		if (m == NULL) {
			m = node(r, t, AM_TOML_ARRAY, r->buf);
			m->made = AM_TOML_HEADER;
		} else if (m->kind != AM_TOML_ARRAY || m->made != AM_TOML_HEADER) {
			refuse(r, "a table in an array of tables that is none");
			return NULL;
		}
		m = node(r, m, AM_TOML_TABLE, NULL);
	} else if (m == NULL) {
		m = node(r, t, AM_TOML_TABLE, r->buf);
	} else if (m->kind != AM_TOML_TABLE || m->made != AM_TOML_IMPLIED) {
		refuse(r, "a table stands twice");
		return NULL;
	}
	m->made = AM_TOML_HEADER;
	m->spaced = spaced;
	m->line = r->line;
	return end_of_line(r) == 0 ? m : NULL;
}

static int
document(struct reader *r, struct am_toml *root)
{
	struct am_toml *at = root;

	if (starts(r, "\xef\xbb\xbf"))
		r->p += 3;
	while (r->p < r->end) {
		blanks(r);
		if (peek(r, 0) == '[') {
			if ((at = header(r, root)) == NULL)
				return -1;
			continue;
		}
		if (peek(r, 0) >= 0 && strchr("#\r\n", peek(r, 0)) == NULL && pair(r, at) != 0)
			return -1;
		if (end_of_line(r) != 0)
			return -1;
	}
	return 0;
}

static int
check_utf8(struct reader *r)
{
	const char *p = r->p;
	uint32_t c;
	int n;

	for (; p < r->end; p += n) {
		n = am_utf8_next(p, (size_t)(r->end - p), &c);
		if (n < 0 || c == 0)
			return refuse(r, n < 0 ? "not UTF-8" : "a NUL byte");
		r->line += c == '\n';
	}
	r->line = 1;
	return 0;
}

struct am_toml *
am_toml_parse(const char *text, size_t len, char *why, size_t size)
{
	struct reader r = { .p = text, .end = text + len, .line = 1, .why = why, .size = size };
	struct am_toml *root = node(&r, NULL, AM_TOML_TABLE, NULL);

	if (check_utf8(&r) != 0 || document(&r, root) != 0) {
		am_toml_free(root);
		root = NULL;
	}
	free(r.buf);
	return root;
}
