#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../file.h"
#include "cgroup.h"

#define TABLE_MAX (4u << 20)
#define REMOVE_TRIES 100	/* of 10 ms: a process that was killed may take that long to go */

/* ---- where ---- */

/* Where version 2 is mounted, whole; NULL when it is not. From malloc. */
static char *
mount_point(void)
{
	size_t len;
	char *table = am_read_path("/proc/self/mountinfo", 0, TABLE_MAX, &len), *rest = table, *line, *found = NULL;
	char root[2], target[AMS_CGROUP_PATH / 2];

	while (found == NULL && (line = strsep(&rest, "\n")) != NULL)
		if (strstr(line, " - cgroup2 ") != NULL && sscanf(line, "%*d %*d %*s %1s %255s", root, target) == 2 &&
		    target[0] == '/' && strchr(target, '\\') == NULL)	/* the root is "/" and no more */
			found = strdup(target);
	free(table);
	return found;
}

/* The caller's own cgroup below it, "/..." from malloc. */
static char *
own(void)
{
	size_t len;
	char *list = am_read_path("/proc/self/cgroup", 0, TABLE_MAX, &len), *rest = list, *line, *found = NULL;

	while (found == NULL && (line = strsep(&rest, "\n")) != NULL)
		if (strncmp(line, "0::/", 4) == 0 && strstr(line, "/..") == NULL)
			found = strdup(line + 3);
	free(list);
	return found;
}

static int
has(const char *dir, const char *name)
{
	char path[AMS_CGROUP_PATH + 32], *list;
	int pids = 0, memory = 0;
	size_t len;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if ((list = am_read_path(path, 0, TABLE_MAX, &len)) == NULL)
		return 0;
	for (char *rest = list, *word; (word = strsep(&rest, " \n")) != NULL; ) {
		pids |= strcmp(word, "pids") == 0;
		memory |= strcmp(word, "memory") == 0;
	}
	free(list);
	return pids && memory;
}

static int
put(const char *dir, const char *name, const char *text)
{
	char path[AMS_CGROUP_PATH + 32];
	int fd, rc;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
		return -1;
	rc = am_write_all(fd, text, strlen(text));
	close(fd);
	return rc;
}

/* Ours to divide: a directory may be made, a process of ours moved, and the controllers reach there. */
static int
fits(const char *dir)
{
	char procs[AMS_CGROUP_PATH + 32];

	snprintf(procs, sizeof procs, "%s/cgroup.procs", dir);
	if (faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) != 0 || faccessat(AT_FDCWD, procs, W_OK, AT_EACCESS) != 0)
		return 0;
	/* refused by the kernel where processes are: those would compete with their own children */
	return has(dir, "cgroup.subtree_control") ||
	    (has(dir, "cgroup.controllers") && put(dir, "cgroup.subtree_control", "+memory +pids") == 0);
}

char *
ams_cgroup_home(const char **why)
{
	char *top = mount_point(), *below = own(), *dir = NULL, *slash;

	*why = "cgroup version 2 is not mounted";
	if (top != NULL && below != NULL && strlen(top) + strlen(below) < AMS_CGROUP_PATH - 64 &&
	    asprintf(&dir, "%s%s", top, strcmp(below, "/") == 0 ? "" : below) >= 0) {
		*why = "no cgroup that passes on memory and pids may be divided";
		while (!fits(dir)) {
			if (strlen(dir) <= strlen(top) || (slash = strrchr(dir, '/')) == NULL) {
				free(dir);
				dir = NULL;
				break;
			}
			*slash = '\0';
		}
	}
	free(top);
	free(below);
	return dir;
}

/* ---- one ---- */

int
ams_cgroup_make(const char *home, int unit, const struct ams_limits *l, char path[AMS_CGROUP_PATH])
{
	static const struct { int limit; const char *file; } files[] = {
		{ AMS_MEMORY, "memory.max" }, { AMS_PROCESSES, "pids.max" },
		{ AMS_MEMORY, "memory.swap.max" },	/* absent in a kernel that does not count it */
	};
	char number[32];
	struct stat st;

	if (fstat(unit, &st) != 0)
		return -1;
	snprintf(path, AMS_CGROUP_PATH, "%s/amap-sandbox-%llx-%llx", home, (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return -1;
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		snprintf(number, sizeof number, "%llu", l->max[files[i].limit]);
		if (put(path, files[i].file, l->max[files[i].limit] == 0 ? "max" : number) != 0 && (errno != ENOENT || i < 2))
			return -1;
	}
	return 0;
}

int
ams_cgroup_enter(const char *path)
{
	return put(path, "cgroup.procs", "0");
}

void
ams_cgroup_remove(const char *path)
{
	struct timespec nap = { 0, 10000000 };

	for (int i = 0; i < REMOVE_TRIES && rmdir(path) != 0 && errno == EBUSY; i++)
		nanosleep(&nap, NULL);
}
