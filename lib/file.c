#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file.h"
#include "id.h"

int
am_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
		.mode = flags & (O_CREAT | O_TMPFILE) ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	long fd;

	do		/* EAGAIN: a rename raced the walk; the kernel asks for another try */
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
	while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	return (int)fd;
}

int
am_open_regular(int dirfd, const char *path, size_t max)
{
	int fd = am_open_beneath(dirfd, path, O_RDONLY | O_NONBLOCK, 0), saved;
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			errno = EINVAL;
		else if (st.st_nlink != 1)
			errno = EMLINK;
		else if ((unsigned long long)st.st_size > max)
			errno = EFBIG;
		else
			return fd;
	}
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

char *
am_read_fd(int fd, size_t max, size_t *len)
{
	size_t cap = max < 65536 ? max + 1 : 65536, n = 0;
	char *buf = malloc(cap + 1), *grown;
	ssize_t got;

	if (buf == NULL)
		return NULL;
	for (;;) {
		if ((got = read(fd, buf + n, cap - n)) < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		if (got == 0) {
			buf[n] = '\0';
			*len = n;
			return buf;
		}
		n += (size_t)got;
		if (n > max) {
			errno = EFBIG;
			break;
		}
		if (n == cap) {
			cap = cap * 2 > max ? max + 1 : cap * 2;
			if ((grown = realloc(buf, cap + 1)) == NULL)
				break;
			buf = grown;
		}
	}
	free(buf);
	return NULL;
}

/* Reads and closes what was opened. */
static char *
read_and_close(int fd, size_t max, size_t *len)
{
	char *buf;
	int saved;

	if (fd < 0)
		return NULL;
	buf = am_read_fd(fd, max, len);
	saved = errno;
	close(fd);
	errno = saved;
	return buf;
}

char *
am_read_regular(int dirfd, const char *path, size_t max, size_t *len)
{
	return read_and_close(am_open_regular(dirfd, path, max), max, len);
}

char *
am_read_path(const char *path, int flags, size_t max, size_t *len)
{
	return read_and_close(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags), max, len);
}

int
am_write_all(int fd, const void *bytes, size_t len)
{
	const char *p = bytes;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int
am_draft(struct am_draft *d, int dirfd, const char *name, const void *bytes, size_t len, mode_t mode)
{
	char random[13];

	d->dir = dirfd;
	am_random_hex(random, 6);
	/* A long name is cut so that the temporary one still fits a directory entry. */
	if (snprintf(d->name, sizeof d->name, "%s", name) >= (int)sizeof d->name ||
	    snprintf(d->temp, sizeof d->temp, ".%.200s.%s.tmp", name, random) >= (int)sizeof d->temp) {
		errno = ENAMETOOLONG;
		return -1;
	}
	d->fd = openat(dirfd, d->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (d->fd < 0)
		return -1;
	if (am_write_all(d->fd, bytes, len) == 0 && fchmod(d->fd, mode) == 0)
		return 0;
	am_draft_drop(d);
	return -1;
}

void
am_draft_drop(struct am_draft *d)
{
	int saved = errno;

	if (d->fd >= 0)
		close(d->fd);
	unlinkat(d->dir, d->temp, 0);
	errno = saved;
}

int
am_draft_place(struct am_draft *d)
{
	int fd = d->fd;

	d->fd = -1;
	if (close(fd) == 0 && renameat(d->dir, d->temp, d->dir, d->name) == 0)
		return 0;
	am_draft_drop(d);
	return -1;
}

int
am_publish(int dirfd, const char *name, const void *bytes, size_t len, mode_t mode)
{
	struct am_draft d;

	if (am_draft(&d, dirfd, name, bytes, len, mode) != 0)
		return -1;
	if (fsync(d.fd) != 0) {
		am_draft_drop(&d);
		return -1;
	}
	return am_draft_place(&d) != 0 ? -1 : fsync(dirfd);
}

int
am_publish_path(const char *path, const void *bytes, size_t len, mode_t mode)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
	int fd = dir == NULL ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = -1, saved;
	struct stat st;

	if (fd >= 0 && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		errno = EEXIST;		/* root could put a file in the place of a device */
	else if (fd >= 0)
		rc = am_publish(fd, slash == NULL ? path : slash + 1, bytes, len, mode);
	saved = errno;
	free(dir);
	if (fd >= 0)
		close(fd);
	errno = saved;
	return rc;
}

int
am_mkdir_beneath(int dirfd, const char *path)
{
	char parent[4096];
	const char *slash = strrchr(path, '/');
	int at = dirfd, fd, rc, saved;

	if (slash != NULL) {
		if ((size_t)(slash - path) >= sizeof parent) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(parent, path, (size_t)(slash - path));
		parent[slash - path] = '\0';
		if ((at = am_open_beneath(dirfd, parent, O_RDONLY | O_DIRECTORY, 0)) < 0)
			return -1;
	}
	rc = mkdirat(at, slash == NULL ? path : slash + 1, 0777);
	if (rc == 0)
		rc = fsync(at);
	else if (errno == EEXIST) {
		fd = am_open_beneath(at, slash == NULL ? path : slash + 1, O_RDONLY | O_DIRECTORY, 0);
		if (fd >= 0) {
			close(fd);
			rc = 0;
		} else {
			errno = ENOTDIR;
		}
	}
	saved = errno;
	if (at != dirfd)
		close(at);
	errno = saved;
	return rc;
}
