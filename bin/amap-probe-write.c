/*
 * amap-probe-write - can this file be made? Told by trying.
 *
 * Runs inside a sandbox. The attempt is open(2) with O_CREAT and O_EXCL of a
 * fresh name: the one act whose error tells a read-only mount (EROFS) from
 * Landlock alone (EACCES); access(2) and mkdir(2) of what exists prove
 * nothing. What it makes, it removes. Page: amap-probe-write(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"

static const char usage[] =
"usage: amap-probe-write PATH\n"
"\n"
"Tries to create PATH, which must not exist, and prints OPENED, or the name of\n"
"the error (EROFS, EACCES, ...). Exit 0 when it could be told, whatever it was.\n";

int
main(int argc, char *argv[])
{
	static const struct option options[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	const char *name;
	int c, fd, rc = AM_OK, saved;

	am_prog = "amap-probe-write";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		am_std_option(c, usage);
	if (argc - optind != 1)
		am_usage(usage);
	fd = open(argv[optind], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	saved = errno;
	if (fd >= 0) {
		close(fd);
		if (unlink(argv[optind]) != 0) {
			am_warn("%s: made by this probe, and it cannot be removed", am_quotes(argv[optind]));
			rc = AM_TROUBLE;
		}
		puts("OPENED");
	} else if ((name = strerrorname_np(saved)) != NULL) {
		puts(name);
	} else {
		printf("%d\n", saved);
	}
	return am_finish(rc);
}
