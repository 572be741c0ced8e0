/*
 * utf8 - decoding and the one notion of "printable" used everywhere.
 *
 * Printable (spec connector, section 3.5): not a control, format, surrogate or
 * private-use character and no space but U+0020. Unassigned code points count
 * as printable: the set of assigned ones changes with every Unicode version.
 */
#ifndef AM_UTF8_H
#define AM_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length in bytes of the sequence at s, its code point in *c; -1 when it is none. */
int am_utf8_next(const char *s, size_t len, uint32_t *c);

int am_printable(uint32_t c);

#endif
