#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

#define COLUMNS 76		/* 80 less the mark in front */

static const char *const codes[] = {
	[AMS_INVALID_ARGUMENT] = "Client specified an invalid argument",
	[AMS_NOT_FOUND] = "Some requested entity was not found",
	[AMS_PERMISSION_DENIED] = "The caller does not have permission to execute the specified operation",
	[AMS_FAILED_PRECONDITION] = "The system is not in a state required for the operation's execution",
	[AMS_ABORTED] = "The operation was aborted",
};

/*
 * How many bytes of the text go on this line: up to a newline, else as many
 * whole words as fit, a word also ending after a hyphen; never in the middle of
 * a UTF-8 sequence.
 */
static size_t
line_length(const char *s)
{
	size_t i, columns = 0, fit = 0;

	for (i = 0; s[i] != '\0' && s[i] != '\n'; i++) {
		if ((s[i] & 0xc0) == 0x80)
			continue;
		if (columns++ == COLUMNS)
			return fit > 0 ? fit : i;
		if (s[i] == ' ')
			fit = i;
		else if (s[i] == '-' && columns < COLUMNS)
			fit = i + 1;
	}
	return i;
}

static void
report(const char *text)
{
	const char *mark = "Error:   \xc3\x97 ";

	while (*text != '\0') {
		size_t n = line_length(text);

		fprintf(stderr, "%s%.*s\n", mark, (int)n, text);
		text += n;
		if (*text == ' ' || *text == '\n')
			text++;
		mark = "  \xe2\x94\x82 ";
	}
}

int
ams_fail(const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	report(text);
	free(text);
	return 1;
}

int
ams_refuse(enum ams_code code, const char *fmt, ...)
{
	char *text, *quoted, *p;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	if ((quoted = malloc(strlen(text) * 4 + 1)) == NULL)
		abort();
	p = quoted;
	for (const unsigned char *s = (const unsigned char *)text; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			*p++ = '\\';
		if (*s == '\n')
			p = stpcpy(p, "\\n");
		else if (*s < 0x20 || *s == 0x7f)
			p += sprintf(p, "\\x%02x", *s);
		else
			*p++ = (char)*s;
	}
	*p = '\0';
	ams_fail("code: '%s', message: \"%s\"", codes[code], quoted);
	free(quoted);
	free(text);
	return 1;
}
