/*
 * json - strict reading of bytes into values, JSON Lines, and writing.
 *
 * libjq's own parser is not used, because it takes more than JSON: accepted is
 * exactly one RFC 8259 value in UTF-8, without a byte order mark, a NUL, a lone
 * surrogate, a control character in a string, a number beyond the doubles, or a
 * key twice in one object; at most AM_JSON_DEPTH arrays and objects deep and
 * AM_JSON_KEYS keys in one object. libjq finds keys by a hash whose seed never
 * changes: an object with more than AM_JSON_CHAIN keys that were made to stand
 * in each other's way is refused, so that a fleet may have ten thousand members
 * and a hostile object of the same size costs no more than an honest one.
 *
 * Ownership: "owns" means that the caller frees the result; a jv argument is
 * borrowed unless the comment says "consumes".
 */
#ifndef AM_JSON_H
#define AM_JSON_H

#include <jv.h>
#include <stddef.h>
#include <stdio.h>

#include "buf.h"

#define AM_JSON_DEPTH 64
#define AM_JSON_KEYS 65536
#define AM_JSON_CHAIN 128
#define AM_JSON_MAX (16u << 20)		/* bytes of one document or line, where no spec says less */

/*
 * Owns. text[len] must be a NUL byte. On refusal the result is invalid and
 * its message, which am_json_why takes out, is one line that says what and
 * where ("line 3: the key \"name\" stands twice") and never repeats a value.
 */
jv am_json_parse(const char *text, size_t len);

/* The message of an invalid value, for one print. Consumes; static buffer. */
const char *am_json_why(jv invalid);

/*
 * Owns. Reads a whole stream or file (path NULL or "-": standard input) and
 * parses it. On failure invalid, with a message for am_json_why; errno is then
 * 0 when the bytes were refused, and says else why they could not be read.
 */
jv am_json_read(const char *path, size_t max);

/* The same for a named file that must be a regular one; nofollow: and no symbolic link. */
jv am_json_read_regular(const char *path, int nofollow, size_t max);

/* The object in a regular file beneath a directory; no why: invalid when there is none that can be read. */
jv am_json_object_at(int dirfd, const char *path, size_t max);

/* Borrows, owns the result; null when absent. */
jv am_get_or_null(jv object, const char *key);

/* Owns the result: a list of these strings. */
jv am_strings(const char *const *list, size_t n);

/* Borrows, owns the result; invalid when absent or of another kind. */
jv am_get(jv object, const char *key, jv_kind kind);

/*
 * Borrows. The string member, valid as long as the object lives; NULL when
 * absent, not a string, or holding a NUL character.
 */
const char *am_str(jv object, const char *key);

/* Borrows. 1 when the member is present (of any kind, null too). */
int am_has(jv object, const char *key);

/* Borrows. The first key that is in none of the NULL-ended list; NULL when all are. Static buffer. */
const char *am_unknown_key(jv object, const char *const *known);

/* Consumes v. Adds a member; null for a NULL string. */
jv am_set(jv object, const char *key, jv v);
jv am_set_str(jv object, const char *key, const char *string);

/* How am_json_text writes. */
enum am_json_style {
	AM_COMPACT,	/* one line, no spaces, UTF-8 as it is */
	AM_SORTED,	/* the same, keys sorted, non-ASCII escaped */
	AM_DOCUMENT	/* two-space indent, non-ASCII escaped, final newline (spec deployment, introduction) */
};

/* Borrows. The text, from malloc; its length in *len when len is not NULL. */
char *am_json_text(jv v, enum am_json_style style, size_t *len);

/*
 * Adds one string as JSON spells it, for a program that prints thousands of
 * records of a fixed shape. A byte that is not UTF-8 becomes U+FFFD, as in a jv.
 */
void am_json_string(struct am_buf *b, const char *s, size_t len, enum am_json_style style);

/*
 * A stream of JSON Lines that ends with one line {"end":COUNT}; a stream of
 * several parts has one such line for each. Reading:
 *
 *	struct am_stream in = { .fp = stdin, .name = "<stdin>" };
 *	while ((got = am_next(&in, &rec)) > 0) { ...; jv_free(rec); }
 *	if (got < 0) the stream is cut or broken: am_stream_why(&in) says how
 */
struct am_stream {
	FILE *fp;
	const char *name;
	long line;		/* of the record last read */
	long count;		/* records of the current part */
	int ended;		/* an end line closed the current part */
	char *buf;		/* freed at the end and when broken; free it when you stop before */
	size_t cap, start, len;
	char why[256];
};

int am_next(struct am_stream *in, jv *rec);	/* 1 a record (an object, owned), 0 the end, -1 broken */
const char *am_stream_why(const struct am_stream *in);

/* Writing: one record (consumes), and the end line. */
void am_put(FILE *fp, jv rec);
void am_put_end(FILE *fp, long count);

#endif
