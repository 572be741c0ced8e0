/*
 * flush - several files and directories made durable at the same time.
 *
 * A disk writes what is asked of it together in little more time than one of
 * them takes, so helpers ask for the others; where a flush takes no time, as
 * in memory, there are none. Helpers do nothing else, and sleep in between.
 */
#ifndef AM_ROUTER_FLUSH_H
#define AM_ROUTER_FLUSH_H

#include <stddef.h>

/* All of them, or -1 with the errno of one that failed. */
int amr_flush(const int fds[], size_t n);

#endif
