/*
 * index - the documents of a directory, the newest first, without listing it each time.
 *
 * Listed once, then kept up to date from inotify; listed anew whenever that
 * cannot be relied on.
 */
#ifndef AM_INDEX_H
#define AM_INDEX_H

#include <stddef.h>

/* Brings the index of this directory up to date; -1 with errno when it cannot be listed. */
int am_index_refresh(const char *path);

size_t am_index_count(void);

/* The name of the nth newest document, n from 0; valid until the next refresh. */
const char *am_index_name(size_t n);

#endif
