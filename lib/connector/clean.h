/*
 * clean - text of strangers made fit to be shown (spec connector, section 3.5).
 *
 * What is printable is decided by am_printable; limits count code points.
 */
#ifndef AM_CLEAN_H
#define AM_CLEAN_H

#include <stddef.h>

#define AM_CLEAN_BODY_MAX 1000000

enum am_clean {
	AM_CLEAN_LINE,		/* the unprintable becomes a space; trimmed */
	AM_CLEAN_BODY,		/* the unprintable is removed, but for line feeds and tabs */
	AM_CLEAN_ATTR,		/* the unprintable, quotation marks and backslashes are removed */
	AM_CLEAN_NAME		/* a file name: one word of a path, white space in single spaces */
};

/* The first max code points of the cleaned bytes, from malloc. A file name is never empty. */
char *am_clean(enum am_clean how, const char *bytes, size_t len, size_t max);

#endif
