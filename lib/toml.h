/*
 * toml - reading TOML 1.0 (the gateway's configuration).
 *
 * The whole language is read, strictly: quoted and dotted keys, every kind of
 * string and number, dates, inline tables, arrays of tables. Anything else is
 * refused with its line: who judges a setting must be able to say that it
 * could not tell. A NUL character written as an escape is not understood.
 */
#ifndef AM_TOML_H
#define AM_TOML_H

#include <stddef.h>

#define AM_TOML_DEPTH 64	/* parts of a key, and arrays and inline tables in one another */
#define AM_TOML_KEYS 16384	/* in a whole document: they are searched one by one */

enum am_toml_kind {
	AM_TOML_TABLE, AM_TOML_ARRAY, AM_TOML_STRING, AM_TOML_BOOL, AM_TOML_NUMBER, AM_TOML_TIME
};

/* How a table, or an array, came to be: this decides who may add to it. */
enum am_toml_made {
	AM_TOML_HEADER,		/* [a] or [[a]] */
	AM_TOML_IMPLIED,	/* a, in the header [a.b] */
	AM_TOML_DOTTED,		/* a, in the key a.b = 1 */
	AM_TOML_INLINE		/* a = {} or a = []: closed */
};

struct am_toml {
	enum am_toml_kind kind;
	enum am_toml_made made;
	int spaced;			/* a table whose header has white space inside of its brackets */
	long line;
	char *key;			/* NULL in an array */
	char *text;			/* a string's characters; else the value as it is spelled */
	struct am_toml *first, *last;	/* members of a table, elements of an array */
	struct am_toml *next;
};

/* NULL, with why set ("line 3: a key stands twice"), when it is not TOML. */
struct am_toml *am_toml_parse(const char *text, size_t len, char *why, size_t size);
void am_toml_free(struct am_toml *t);

/* The member of a table; NULL when t is none (or NULL), or has none of that name. */
const struct am_toml *am_toml_get(const struct am_toml *t, const char *key);

#endif
