/*
 * tomlscalar - what a bare word of TOML is: true or false, a number, a date or
 * a time. A room of lib/toml.
 */
#ifndef AM_TOMLSCALAR_H
#define AM_TOMLSCALAR_H

#include "toml.h"

/* -1 when it is none of them. */
int am_toml_scalar(const char *text, enum am_toml_kind *kind);

#endif
