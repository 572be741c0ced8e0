/*
 * amap-probe-running - how many processes run a program of this name?
 *
 * Runs inside a sandbox, where /proc shows the sandbox's processes. "Runs X"
 * is the session lister's rule (spec deployment, section 8): the comm, or the
 * base name of argument 0 or 1, is X. A zombie runs nothing, and this process
 * does not count. Page: amap-probe-running(1).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"

static const char usage[] =
"usage: amap-probe-running NAME\n"
"\n"
"Prints the number of running processes whose program is NAME.\n";

/* Reads the beginning of /proc/PID/FILE; its length, or -1. */
static ssize_t
slurp(int proc, const char *pid, const char *file, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%.20s/%.20s", pid, file);
	if ((fd = openat(proc, path, O_RDONLY | O_CLOEXEC)) < 0)
		return -1;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

static const char *
base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

static int
runs(int proc, const char *pid, const char *name)
{
	char stat[1024], args[8192], *open, *close_;
	size_t first;
	ssize_t n;

	/* PID (COMM) STATE ...; the comm may hold any byte, parentheses too */
	if (slurp(proc, pid, "stat", stat, sizeof stat) <= 0 || (open = strchr(stat, '(')) == NULL ||
	    (close_ = strrchr(stat, ')')) == NULL || close_[1] != ' ')
		return 0;
	if (close_[2] == 'Z' || close_[2] == 'X')
		return 0;
	*close_ = '\0';
	if (strcmp(open + 1, name) == 0)
		return 1;
	if ((n = slurp(proc, pid, "cmdline", args, sizeof args)) <= 0)
		return 0;
	first = strlen(args);
	return strcmp(base(args), name) == 0 ||
	    (first + 1 < (size_t)n && strcmp(base(args + first + 1), name) == 0);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	struct dirent *e;
	char self[24];
	long count = 0;
	DIR *dir;
	int c;

	am_prog = "amap-probe-running";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		am_std_option(c, usage);
	if (argc - optind != 1 || argv[optind][0] == '\0')
		am_usage(usage);
	if ((dir = opendir("/proc")) == NULL)
		am_die("/proc");
	snprintf(self, sizeof self, "%ld", (long)getpid());
	while (errno = 0, (e = readdir(dir)) != NULL)
		if (isdigit((unsigned char)e->d_name[0]) && strcmp(e->d_name, self) != 0)
			count += runs(dirfd(dir), e->d_name, argv[optind]);
	if (errno != 0)
		am_die("/proc");
	closedir(dir);
	printf("%ld\n", count);
	return am_finish(AM_OK);
}
