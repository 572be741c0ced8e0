#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connector/index.h"

#define WATCHED (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB | IN_ONLYDIR)

struct entry {
	struct timespec at;
	char *name;
};

/* In the order of time, the oldest first; then of name. */
static struct entry *entries;
static size_t count, room;
static int inotify = -1, current;	/* current: nothing happened but what inotify told */
static dev_t device;
static ino_t inode;

static int
compare(const void *a, const void *b)
{
	const struct entry *p = a, *q = b;

	if (p->at.tv_sec != q->at.tv_sec)
		return p->at.tv_sec < q->at.tv_sec ? -1 : 1;
	if (p->at.tv_nsec != q->at.tv_nsec)
		return p->at.tv_nsec < q->at.tv_nsec ? -1 : 1;
	return strcmp(p->name, q->name);
}

/* A document: .json, not hidden, a file and no link. */
static int
look(int dir, const char *name, struct entry *e)
{
	size_t len = strlen(name);
	struct stat st;

	if (name[0] == '.' || len < 6 || strcmp(name + len - 5, ".json") != 0 ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return 0;
	e->at = st.st_mtim;
	return 1;
}

static void
make_room(void)
{
	if (count == room && (entries = reallocarray(entries, room = room * 2 + 64, sizeof entries[0])) == NULL)
		abort();
}

/* Puts one document, or its absence, in its place. */
static void
update(int dir, const char *name)
{
	struct entry e = { .name = (char *)name };
	size_t i, low = 0, high;

	for (i = 0; i < count; i++)
		if (strcmp(entries[i].name, name) == 0) {
			free(entries[i].name);
			memmove(entries + i, entries + i + 1, (--count - i) * sizeof entries[0]);
			break;
		}
	if (!look(dir, name, &e))
		return;
	for (high = count; low < high; ) {
		i = (low + high) / 2;
		if (compare(&entries[i], &e) < 0)
			low = i + 1;
		else
			high = i;
	}
	make_room();
	if ((e.name = strdup(name)) == NULL)
		abort();
	memmove(entries + low + 1, entries + low, (count++ - low) * sizeof entries[0]);
	entries[low] = e;
}

static int
list(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (dir == NULL) {
		if (copy >= 0)
			close(copy);
		return -1;
	}
	while (count > 0)
		free(entries[--count].name);
	while ((e = readdir(dir)) != NULL) {
		make_room();
		if (look(fd, e->d_name, &entries[count]) && (entries[count++].name = strdup(e->d_name)) == NULL)
			abort();
	}
	closedir(dir);
	if (count > 1)
		qsort(entries, count, sizeof entries[0], compare);
	return 0;
}

/* Takes what inotify has told; 0 when it lost something, or the directory itself went. */
static int
take_events(int dir)
{
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n;

	while ((n = read(inotify, buf, sizeof buf)) > 0)
		for (char *p = buf; p < buf + n; ) {
			const struct inotify_event *e = (const struct inotify_event *)p;

			if (e->mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT))
				return 0;
			if (e->len > 0)
				update(dir, e->name);
			p += sizeof *e + e->len;
		}
	return n < 0 && errno == EAGAIN;
}

int
am_index_refresh(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0, saved;
	struct stat st;

	if (dir < 0 || fstat(dir, &st) != 0) {
		saved = errno;
		current = 0;
		if (dir >= 0)
			close(dir);
		errno = saved;
		return -1;
	}
	if (st.st_dev != device || st.st_ino != inode)
		current = 0;
	if (current)
		current = take_events(dir);
	if (!current) {
		/* Watched before it is listed, so that nothing falls between. */
		if (inotify >= 0)
			close(inotify);
		inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		current = inotify >= 0 && inotify_add_watch(inotify, path, WATCHED) >= 0;
		device = st.st_dev;
		inode = st.st_ino;
		if ((rc = list(dir)) != 0)
			current = 0;
	}
	saved = errno;
	close(dir);
	errno = saved;
	return rc;
}

size_t
am_index_count(void)
{
	return count;
}

const char *
am_index_name(size_t n)
{
	return entries[count - 1 - n].name;
}
