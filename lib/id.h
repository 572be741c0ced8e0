/*
 * id - random identifiers, timestamps, and the clock that nobody sets.
 */
#ifndef AM_ID_H
#define AM_ID_H

#include <stddef.h>
#include <time.h>

/* 2 * bytes lower-case hexadecimal digits and a NUL. */
void am_random_hex(char *out, size_t bytes);

/* A random (version 4) UUID: 36 characters and a NUL. */
void am_random_uuid(char out[37]);

/* YYYY-MM-DDTHH:MM:SSZ and a NUL: the one form of time in every document. */
void am_timestamp(time_t t, char out[21]);

/* Milliseconds since the host started; for what may take so long and no longer. */
long long am_now(void);

/* Seconds since the epoch of exactly that form; -1 when it is not one. */
time_t am_parse_timestamp(const char *s);

#endif
