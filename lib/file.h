/*
 * file - safe reading and durable publishing, by descriptor.
 *
 * All functions return -1 (or NULL) with errno set. A path given with a
 * directory descriptor is relative and is resolved beneath it without
 * following any symbolic link (openat2 with RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS), so another party who can write below that directory
 * cannot lead us out of it.
 */
#ifndef AM_FILE_H
#define AM_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Opens beneath dirfd; O_CLOEXEC and O_NOFOLLOW are added. */
int am_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/*
 * Opens a file that another party wrote: not blocking on a FIFO, a regular
 * file by fstat, one link (EMLINK otherwise), at most max bytes (EFBIG).
 */
int am_open_regular(int dirfd, const char *path, size_t max);

/*
 * Reads such a file whole into memory from malloc, ended with a NUL that
 * *len does not count.
 */
char *am_read_regular(int dirfd, const char *path, size_t max, size_t *len);

/* Reads the file at a path of the operator's whole, likewise; flags: O_NOFOLLOW, or 0 to follow a link there. */
char *am_read_path(const char *path, int flags, size_t max, size_t *len);

/* Reads an open descriptor to its end; EFBIG beyond max. */
char *am_read_fd(int fd, size_t max, size_t *len);

/* Writes all of it, over short writes and EINTR. */
int am_write_all(int fd, const void *bytes, size_t len);

/*
 * A file that does not bear its name yet: a temporary sibling
 * ".NAME.XXXXXX.tmp" (exclusive, not followed), written, of the exact mode,
 * not flushed. name has no slash; dirfd is the directory itself, and stays open.
 */
struct am_draft {
	int dir, fd;
	char temp[256], name[256];
};
int am_draft(struct am_draft *d, int dirfd, const char *name, const void *bytes, size_t len, mode_t mode);
int am_draft_place(struct am_draft *d);		/* renames; on failure nothing is left */
void am_draft_drop(struct am_draft *d);		/* errno stays */

/*
 * Publishes a file whole: a draft, fsync, rename, fsync of the directory. On a failure
 * before the rename nothing is left and what stood at the name still stands; when the
 * directory cannot be flushed the new file stands there, and may be lost with the power.
 */
int am_publish(int dirfd, const char *name, const void *bytes, size_t len, mode_t mode);

/* The same in the directory of a path of the operator's; EEXIST when something else than a file is there. */
int am_publish_path(const char *path, const void *bytes, size_t len, mode_t mode);

/* Makes one directory with the default mode unless a real directory is there; ENOTDIR for anything else. */
int am_mkdir_beneath(int dirfd, const char *path);

#endif
