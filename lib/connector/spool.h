/*
 * spool - ids of spooled documents (spec connector, section 4.2).
 */
#ifndef AM_SPOOL_H
#define AM_SPOOL_H

#include <jv.h>

/* Borrows. 1 for a string that may name a document: 1 to 200 characters of an ID, without "..". */
int am_spool_id(jv v);

#endif
