#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "tree.h"

#define DEPTH_MAX 32		/* deeper directories are first moved up to the top one */
#define PASSES_MAX 1000

static int remove_below(int top, int dirfd, const char *name, int depth);

static DIR *
open_entries(int fd)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), saved;
	DIR *d;

	if (own < 0)
		return NULL;
	if ((d = fdopendir(own)) == NULL) {
		saved = errno;
		close(own);
		errno = saved;
	}
	return d;
}

static struct dirent *
next_entry(DIR *d)
{
	struct dirent *e;

	do {
		errno = 0;
		e = readdir(d);
	} while (e != NULL && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
	return e;
}

/* One pass over a directory: the number of entries seen, or -1. */
static int
pass(int top, int fd, int depth)
{
	DIR *d = open_entries(fd);
	struct dirent *e;
	int seen = 0, rc = 0, saved;

	if (d == NULL)
		return -1;
	while (rc == 0 && (e = next_entry(d)) != NULL) {
		seen++;
		rc = remove_below(top, fd, e->d_name, depth);
	}
	if (rc == 0 && errno != 0)
		rc = -1;
	saved = errno;
	closedir(d);
	errno = saved;
	return rc == 0 ? seen : -1;
}

/* A directory that is not empty: what it holds goes first. */
static int
remove_full(int top, int dirfd, const char *name, int depth)
{
	int fd = am_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0), rc, saved;

	if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = am_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return -1;
	rc = pass(top, fd, depth + 1);
	if (rc < 0 && errno == EACCES && fchmod(fd, 0700) == 0)
		rc = pass(top, fd, depth + 1);
	saved = errno;
	close(fd);
	errno = saved;
	if (rc < 0)
		return -1;
	return unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY ? 0 : -1;
}

static int
remove_below(int top, int dirfd, const char *name, int depth)
{
	char up[32];

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -1;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -1;
	if (depth < DEPTH_MAX)
		return remove_full(top, dirfd, name, depth);
	strcpy(up, ".amap-");
	am_random_hex(up + 6, 8);
	if (renameat(dirfd, name, top, up) == 0)
		return 0;
	if (errno != EACCES || fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	return renameat(dirfd, name, top, up);
}

int
am_empty(int fd)
{
	for (int n = 0; n < PASSES_MAX; n++) {
		int seen = pass(fd, fd, 0);

		if (seen <= 0)
			return seen;
	}
	errno = EBUSY;
	return -1;
}

int
am_remove(int dirfd, const char *name)
{
	int fd, rc, saved;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -1;
	if ((fd = am_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0)) < 0)
		return -1;
	rc = am_empty(fd);
	saved = errno;
	close(fd);
	errno = saved;
	return rc == 0 ? unlinkat(dirfd, name, AT_REMOVEDIR) : -1;
}

/* ".NAME.xxxxxxxxxxxx.tmp", as am_publish names them. */
static int
is_temporary(const char *name)
{
	size_t n = strlen(name);

	return name[0] == '.' && n > 18 && strcmp(name + n - 4, ".tmp") == 0 && name[n - 17] == '.' &&
	    strspn(name + n - 16, "0123456789abcdef") == 12;
}

int
am_sweep(int dirfd)
{
	DIR *d = open_entries(dirfd);
	struct dirent *e;
	int rc = 0, saved;

	if (d == NULL)
		return -1;
	while (rc == 0 && (e = next_entry(d)) != NULL)
		if (is_temporary(e->d_name) && unlinkat(dirfd, e->d_name, 0) != 0 && errno != ENOENT)
			rc = -1;
	if (rc == 0 && errno != 0)
		rc = -1;
	saved = errno;
	closedir(d);
	errno = saved;
	return rc;
}
