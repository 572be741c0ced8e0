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
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "connector/proc.h"
#include "diag.h"

static const char usage[] =
"usage: amap-probe-running NAME\n"
"\n"
"Prints the number of running processes whose program is NAME.\n";

static int
runs(pid_t pid, const char *name)
{
	const char *const names[] = { name, NULL };
	struct am_proc p;

	return am_proc_read(pid, &p) == 0 && p.state != 'Z' && p.state != 'X' && am_proc_runs(&p, names);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	struct dirent *e;
	long count = 0;
	pid_t pid;
	DIR *dir;
	int c;

	am_prog = "amap-probe-running";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		am_std_option(c, usage);
	if (argc - optind != 1 || argv[optind][0] == '\0')
		am_usage(usage);
	if ((dir = opendir("/proc")) == NULL)
		am_die("/proc");
	while (errno = 0, (e = readdir(dir)) != NULL)
		if (isdigit((unsigned char)e->d_name[0]) && (pid = (pid_t)atol(e->d_name)) != getpid())
			count += runs(pid, argv[optind]);
	if (errno != 0)
		am_die("/proc");
	closedir(dir);
	printf("%ld\n", count);
	return am_finish(AM_OK);
}
