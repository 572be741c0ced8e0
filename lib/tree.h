/*
 * tree - taking away what another party made, by descriptor.
 *
 * Nothing is followed: a symbolic link is unlinked, whatever it points to.
 * However deep the other party nested its directories, the descriptors and
 * the stack used stay bounded. Functions return -1 with errno.
 */
#ifndef AM_TREE_H
#define AM_TREE_H

/* Removes what is at name, a directory with all it holds; absent is fine. */
int am_remove(int dirfd, const char *name);

/* Removes all that a directory holds, of any depth and mode; EBUSY when somebody keeps filling it. */
int am_empty(int fd);

/*
 * Unlinks the temporaries that am_publish left in a directory when it was
 * killed. The caller knows that nobody publishes there at this moment.
 */
int am_sweep(int dirfd);

#endif
