/* amap-redact - copy lines from standard input without the secrets in them */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "redact.h"

static const char usage[] =
    "usage: amap-redact [--secrets-fd N] [--log FILE]\n"
    "\n"
    "  --secrets-fd N  read the secrets, one a line, from descriptor N\n"
    "  --log FILE      append the lines to FILE as well\n";

static int
open_log(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		am_die("%s", am_quotes(path));
	if (!S_ISREG(st.st_mode))
		am_diex("%s: not a regular file", am_quotes(path));
	return fd;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "log", required_argument, NULL, 'l' },
		{ "secrets-fd", required_argument, NULL, 's' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct am_secrets secrets = { 0 };
	int c, log = -1, secrets_fd = -1;
	char *line = NULL, *clean;
	size_t cap = 0, len;
	ssize_t n;

	am_prog = "amap-redact";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'l': log = open_log(optarg); break;
		case 's':
			if (strspn(optarg, "0123456789") != strlen(optarg) || strlen(optarg) > 4 || *optarg == '\0')
				am_diex("--secrets-fd %s: not a descriptor", am_quotes(optarg));
			secrets_fd = atoi(optarg);
			break;
		default: am_std_option(c, usage);
		}
	}
	if (optind != argc)
		am_usage(usage);
	if (secrets_fd >= 0 && am_secrets_read(&secrets, secrets_fd) != 0)
		am_die("--secrets-fd %d", secrets_fd);
	am_secrets_add(&secrets, getenv("CLAUDE_CODE_MESSAGING_TOKEN"));
	while (errno = 0, (n = getline(&line, &cap, stdin)) >= 0) {
		clean = am_redact(&secrets, line, (size_t)n, &len);
		fwrite(clean, 1, len, stdout);
		if (fflush(stdout) != 0)
			am_die("standard output");
		if (log >= 0 && am_write_all(log, clean, len) != 0)
			am_die("--log");
		free(clean);
	}
	if (ferror(stdin) || errno != 0)
		am_die("<stdin>");
	free(line);
	am_secrets_free(&secrets);
	return am_finish(AM_OK);
}
