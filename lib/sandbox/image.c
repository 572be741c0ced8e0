#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "../path.h"
#include "launch.h"
#include "policy.h"
#include "preflight.h"
#include "state.h"

/* What the host gives: programs and libraries, and the links to them. */
static const char *const host_roots[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", NULL };
/* What an image never gives: the sandbox has its own. */
static const char *const own_roots[] = { "proc", "dev", "sys", "run", "tmp", "sandbox", ".amap", NULL };

static int
in_list(const char *const *list, const char *name)
{
	for (; *list != NULL; list++)
		if (strcmp(*list, name) == 0)
			return 1;
	return 0;
}

static int
problem(struct ams_launch *l, const char *object, const char *reason)
{
	snprintf(l->why, sizeof l->why, "%s: %s", am_quotes(object), reason);
	return -1;
}

/* A path that must exist inside, whether or not the image has it. */
struct wanted {
	const char **paths;
	size_t n;
};

/* 1: one of them is path itself; 2: one lies beneath it; 0: neither. */
static int
touches(const struct wanted *w, const char *path)
{
	int found = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (strcmp(w->paths[i], path) == 0)
			return 1;
		if (am_path_under(w->paths[i], path))
			found = 2;
	}
	return found;
}

/*
 * Lays out one entry of the image. A directory with a wanted path beneath it
 * becomes a directory of the sandbox's own with the entries of the image bound
 * one by one, because nothing can be made inside a read-only bind.
 */
static int
place(struct ams_launch *l, int at, const char *name, const char *path, const struct wanted *w)
{
	char link[PATH_MAX], *child;
	int fd, which = touches(w, path), rc = 0;
	struct dirent *e;
	struct stat st;
	ssize_t n;
	DIR *d;

	if (which == 1)
		return 0;
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return problem(l, path, strerror(errno));
	if (S_ISLNK(st.st_mode)) {
		if (which == 2)
			return problem(l, path, "a mount target leads through this link of the image");
		if ((n = readlinkat(at, name, link, sizeof link - 1)) < 0)
			return problem(l, path, strerror(errno));
		link[n] = '\0';
		ams_launch_words(l, "--symlink", link, path, NULL);
		return 0;
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	if (which == 0)
		return ams_launch_bind(l, openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), path, 0);
	if (!S_ISDIR(st.st_mode))
		return problem(l, path, "a mount target leads through this file of the image");
	ams_launch_words(l, "--dir", path, NULL);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (d = fdopendir(fd)) == NULL)
		return problem(l, path, strerror(errno));
	while (rc == 0 && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		child = am_path_join(path, e->d_name);
		rc = place(l, fd, e->d_name, child, w);
		free(child);
	}
	closedir(d);
	return rc;
}

static int
place_root(struct ams_launch *l, const char *image, const struct wanted *w)
{
	int host = strcmp(image, "host") == 0, at, rc = 0, fd;
	struct dirent *e;
	char *path;
	DIR *d;

	fd = host ? open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : open(image, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || (d = fdopendir(fd)) == NULL)
		return problem(l, image, strerror(errno));
	at = dirfd(d);
	while (rc == 0 && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (host ? !in_list(host_roots, e->d_name) : in_list(own_roots, e->d_name))
			continue;
		path = am_path_join("", e->d_name);
		rc = place(l, at, e->d_name, path, w);
		free(path);
	}
	closedir(d);
	return rc;
}

static int
put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644), rc;

	if (fd < 0)
		return -1;
	rc = am_write_all(fd, text, strlen(text)) != 0 || fchmod(fd, 0644) != 0 ? -1 : 0;
	close(fd);
	return rc;
}

static int
fill_etc(int etc, uid_t uid, gid_t gid)
{
	char *passwd, *group;
	int rc;

	if (asprintf(&passwd, "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
	    "sandbox:x:%u:%u:sandbox:" AMS_WORKDIR ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	    (unsigned)uid, (unsigned)gid) < 0 || asprintf(&group, "root:x:0:\nsandbox:x:%u:\nnogroup:x:65534:\n", (unsigned)gid) < 0)
		abort();
	rc = put(etc, "passwd", passwd) != 0 || put(etc, "group", group) != 0 ||
	    put(etc, "hosts", "127.0.0.1 localhost\n::1 localhost\n") != 0 ||
	    put(etc, "nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n") != 0 ||
	    put(etc, "resolv.conf", "") != 0 || put(etc, "ld.so.cache", "") != 0 ||	/* a place for the host's */
	    mkdirat(etc, "alternatives", 0755) != 0 || fchmod(etc, 0755) != 0 ? -1 : 0;
	free(passwd);
	free(group);
	return rc;
}

/* The /etc of an identity: made once, whole before it has its name. */
static int
open_etc(struct ams_launch *l)
{
	char path[64], temp[32];
	int fd;

	snprintf(path, sizeof path, "etc/%u-%u", (unsigned)l->uid, (unsigned)l->gid);
	if ((fd = am_open_beneath(l->state, path, O_PATH | O_DIRECTORY, 0)) >= 0 || errno != ENOENT)
		return fd;
	if ((fd = ams_unit_new(l->state, temp)) < 0)
		return -1;
	if (fill_etc(fd, l->uid, l->gid) != 0 || renameat2(l->state, temp, l->state, path, RENAME_NOREPLACE) != 0)
		ams_unit_discard(l->state, temp);
	close(fd);
	return am_open_beneath(l->state, path, O_PATH | O_DIRECTORY, 0);
}

/* Ours over the host's: links and the loader's cache come from the host, names from us. */
static int
place_etc(struct ams_launch *l)
{
	int fd = open_etc(l);

	if (ams_launch_bind(l, fd, "/etc", 0) != 0)
		return -1;
	if ((fd = open("/etc/alternatives", O_PATH | O_CLOEXEC)) >= 0 && ams_launch_bind(l, fd, "/etc/alternatives", 0) != 0)
		return -1;
	return ams_launch_bind_host(l, "/etc/ld.so.cache", "/etc/ld.so.cache") != 0 && errno != ENOENT ? -1 : 0;
}

/*
 * A target beneath the agent's home: its directories are made here, one by
 * one and through no link, because bubblewrap would follow what the agent left.
 */
static int
make_in_home(struct ams_launch *l, int home, const char *target)
{
	const char *rel = target + strlen(AMS_WORKDIR) + 1;
	char part[PATH_MAX];

	for (const char *p = rel; p != NULL; ) {
		p = strchr(p, '/');
		snprintf(part, sizeof part, "%.*s", p != NULL ? (int)(p - rel) : (int)strlen(rel), rel);
		if (am_mkdir_beneath(home, part) != 0)
			return problem(l, target, "not a directory that can be reached without a link");
		if (geteuid() == 0 && fchownat(home, part, l->uid, l->gid, AT_SYMLINK_NOFOLLOW) != 0)
			return problem(l, target, strerror(errno));
		if (p != NULL)
			p++;
	}
	return 0;
}

static int
by_depth(const void *a, const void *b)
{
	const struct ams_mount *x = a, *y = b;
	size_t nx = 0, ny = 0;

	for (const char *s = x->target; *s != '\0'; s++)
		nx += *s == '/';
	for (const char *s = y->target; *s != '\0'; s++)
		ny += *s == '/';
	return nx < ny ? -1 : nx > ny ? 1 : strcmp(x->target, y->target);
}

static int
place_mounts(struct ams_launch *l, struct ams_mount *m, size_t n, int home)
{
	qsort(m, n, sizeof *m, by_depth);
	for (size_t i = 0; i < n; i++) {
		int fd = ams_open_unlinked(m[i].source);

		if (fd < 0)
			return errno == ENOENT ? problem(l, "bind source path does not exist", m[i].source)
			    : problem(l, m[i].source, errno == ELOOP ? "a symbolic link stands in this bind source path" : strerror(errno));
		if (home >= 0 && am_path_under(m[i].target, AMS_WORKDIR) && make_in_home(l, home, m[i].target) != 0) {
			close(fd);
			return -1;
		}
		if (ams_launch_bind(l, fd, m[i].target, m[i].writable) != 0)
			return -1;
	}
	return 0;
}

/* What its owner may not use, an agent has shut on itself: it would never start again. */
static int
open_home(int unit)
{
	struct stat st;

	if (fstatat(unit, "home", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0700) != 0700)
		(void)!fchmodat(unit, "home", 0700, 0);
	return am_open_beneath(unit, "home", O_RDONLY | O_DIRECTORY, 0);
}

/* The words that every sandbox begins with. */
static void
begin(struct ams_launch *l, const char *hostname)
{
	ams_launch_words(l, ams_launch_bwrap(), "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
	    "--hostname", hostname, NULL);
}

/* Files in memory: no more of them than there may be memory. */
static void
place_tmpfs(struct ams_launch *l, const char *target)
{
	char size[24];

	snprintf(size, sizeof size, "%llu", l->limits.max[AMS_MEMORY]);
	if (l->limits.max[AMS_MEMORY] != 0)
		ams_launch_words(l, "--size", size, NULL);
	ams_launch_words(l, "--perms", "1777", "--tmpfs", target, NULL);
}

static void
system_mounts(struct ams_launch *l)
{
	ams_launch_words(l, "--proc", "/proc", "--dev", "/dev", NULL);
	place_tmpfs(l, "/dev/shm");
	ams_launch_words(l, "--remount-ro", "/dev", NULL);
	place_tmpfs(l, "/tmp");
	ams_launch_words(l, "--dir", "/var/log", NULL);
}

int
ams_launch_image(struct ams_launch *l, const char *image, const char *hostname, const struct ams_mount *mounts, size_t n)
{
	static const char *const always[] = { "/etc", "/var/log" };
	struct ams_mount *sorted = calloc(n + 1, sizeof *sorted);
	struct wanted w = { calloc(n + 2, sizeof(char *)), 0 };
	int home = open_home(l->unit), rc;

	if (sorted == NULL || w.paths == NULL)
		abort();
	if (n > 0)
		memcpy(sorted, mounts, n * sizeof *sorted);
	for (; w.n < 2; w.n++)
		w.paths[w.n] = always[w.n];
	for (size_t i = 0; i < n; i++)
		w.paths[w.n++] = mounts[i].target;
	begin(l, hostname);
	rc = place_root(l, image, &w);
	if (rc == 0)
		rc = place_etc(l);
	if (rc == 0) {
		system_mounts(l);
		rc = ams_launch_bind(l, dup(home), AMS_WORKDIR, 1);
	}
	if (rc == 0)
		rc = place_mounts(l, sorted, n, home);
	close(home);
	free(sorted);
	free(w.paths);
	return rc;
}

int
ams_launch_service(struct ams_launch *l, const struct ams_mount *mounts, size_t n)
{
	struct ams_mount *sorted = calloc(n + 1, sizeof *sorted);
	struct wanted w = { calloc(n + 2, sizeof(char *)), 0 };
	int rc;

	if (sorted == NULL || w.paths == NULL)
		abort();
	if (n > 0)
		memcpy(sorted, mounts, n * sizeof *sorted);
	for (size_t i = 0; i < n; i++)
		w.paths[w.n++] = mounts[i].target;
	begin(l, "localhost");
	rc = place_root(l, "host", &w);
	if (rc == 0)
		rc = place_etc(l);
	if (rc == 0) {
		system_mounts(l);
		rc = place_mounts(l, sorted, n, -1);
	}
	free(sorted);
	free(w.paths);
	return rc;
}
