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

#define ROUNDS_MAX 1000			/* in which nothing but new entries was found */
#define HOISTED_MAX 10000000

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

/* What another party left may give its owner no right to it. Moving a directory writes its "..". */
static void
open_up(int dirfd, const char *name)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0700) != 0700)
		(void)!fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW);
}

/*
 * Empties sub, a directory of top. Its own directories go up to top, to be
 * emptied there: so neither the stack nor the number of descriptors grows with
 * the depth.
 */
static int
hoist(int top, int sub, unsigned long *hoisted)
{
	DIR *d = open_entries(sub);
	struct dirent *e;
	char up[32];
	int rc = 0, saved;

	if (d == NULL)
		return -1;
	while (rc == 0 && (e = next_entry(d)) != NULL) {
		if (unlinkat(sub, e->d_name, 0) == 0 || errno == ENOENT)
			continue;
		open_up(sub, e->d_name);
		strcpy(up, ".amap-");
		am_random_hex(up + 6, 8);
		if ((rc = renameat(sub, e->d_name, top, up)) != 0 && errno == ENOENT)
			rc = 0;
		++*hoisted;
	}
	if (rc == 0 && errno != 0)
		rc = -1;
	saved = errno;
	closedir(d);
	errno = saved;
	return rc;
}

static int
take_away(int top, const char *name, unsigned long *hoisted)
{
	int sub, rc, saved;

	if (unlinkat(top, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -1;
	if (unlinkat(top, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -1;
	open_up(top, name);
	if ((sub = am_open_beneath(top, name, O_RDONLY | O_DIRECTORY, 0)) < 0)
		return errno == ENOENT ? 0 : -1;
	rc = hoist(top, sub, hoisted);
	saved = errno;
	close(sub);
	errno = saved;
	if (rc != 0)
		return -1;
	return unlinkat(top, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY ? 0 : -1;
}

/* Once over a directory: whether anything was there, or -1. */
static int
go_over(int top, unsigned long *hoisted)
{
	DIR *d = open_entries(top);
	struct dirent *e;
	int seen = 0, rc = 0, saved;

	if (d == NULL)
		return -1;
	while (rc == 0 && (e = next_entry(d)) != NULL) {
		seen = 1;
		rc = take_away(top, e->d_name, hoisted);
	}
	if (rc == 0 && errno != 0)
		rc = -1;
	saved = errno;
	closedir(d);
	errno = saved;
	return rc == 0 ? seen : -1;
}

int
am_empty(int fd)
{
	unsigned long hoisted = 0;

	/* What is hoisted takes a round at most. Whoever fills the directory meanwhile is not waited for. */
	for (unsigned long round = 0; round < hoisted + ROUNDS_MAX && hoisted < HOISTED_MAX; round++) {
		int seen = go_over(fd, &hoisted);

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
