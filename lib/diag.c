#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"

#define QUOTE_MAX 200
#define QUOTE_BUFFERS 8

const char *am_prog = "amap";

/*
 * Before main: a standard descriptor that the caller closed would be given to
 * the next file that is opened, and what is meant for people would be written
 * into it. Open the wrong way round, so that reading and writing fail as before.
 */
__attribute__((constructor)) static void
hold_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
			return;
}

/* In one write: another process that has the same standard error cannot come into the middle of a line. */
static void
say(int errnum, const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	fprintf(stderr, errnum != 0 ? "%s: %s: %s\n" : "%s: %s\n", am_prog, text != NULL ? text : fmt, strerror(errnum));
	free(text);
}

void
am_warn(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	say(saved, fmt, ap);
	va_end(ap);
	errno = saved;
}

void
am_warnx(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(0, fmt, ap);
	va_end(ap);
}

void
am_die(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	say(saved, fmt, ap);
	va_end(ap);
	exit(AM_TROUBLE);
}

void
am_diex(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(0, fmt, ap);
	va_end(ap);
	exit(AM_TROUBLE);
}

void
am_usage(const char *usage)
{
	fprintf(stderr, "%.*s (--help says more)\n", (int)strcspn(usage, "\n"), usage);
	exit(AM_TROUBLE);
}

void
am_std_option(int c, const char *usage)
{
	switch (c) {
	case 'h':
		fputs(usage, stdout);
		exit(am_finish(AM_OK));
	case 'V':
		printf("%s %s\n", am_prog, AM_VERSION);
		exit(am_finish(AM_OK));
	default:
		am_usage(usage);
	}
}

const char *
am_quote(const char *bytes, size_t len)
{
	static char ring[QUOTE_BUFFERS][QUOTE_MAX * 4 + sizeof "..."];
	static unsigned next;
	char *out = ring[next++ % QUOTE_BUFFERS], *p = out;
	size_t i, n = len > QUOTE_MAX ? QUOTE_MAX : len;

	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c >= 0x20 && c < 0x7f && c != '\\')
			*p++ = (char)c;
		else
			p += sprintf(p, "\\x%02x", c);
	}
	strcpy(p, n < len ? "..." : "");
	return out;
}

const char *
am_quotes(const char *string)
{
	return am_quote(string, strlen(string));
}

int
am_finish(int rc)
{
	int failed = ferror(stdout);

	if (fflush(stdout) != 0 || failed) {
		am_warn("standard output");
		rc = AM_TROUBLE;
	}
	if (fclose(stdout) != 0 && rc != AM_TROUBLE) {
		am_warn("standard output");
		rc = AM_TROUBLE;
	}
	return rc;
}
