#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "connector/clean.h"
#include "utf8.h"

enum { DROP = 0 };

/* What stands for a code point: itself, another one, or DROP. */
static uint32_t
cleaned(enum am_clean how, uint32_t c)
{
	switch (how) {
	case AM_CLEAN_LINE:
		return am_printable(c) ? c : ' ';
	case AM_CLEAN_BODY:
		return am_printable(c) || c == '\n' || c == '\t' ? c : DROP;
	case AM_CLEAN_ATTR:
		return am_printable(c) && c != '"' && c != '\\' ? c : DROP;
	case AM_CLEAN_NAME:
		if (c == '\r' || c == '\n')
			return ' ';
		if (c == '/' || c == '\\')
			return '_';
		return am_printable(c) ? c : DROP;
	}
	return DROP;
}

char *
am_clean(enum am_clean how, const char *bytes, size_t len, size_t max)
{
	int spaces_once = how == AM_CLEAN_NAME, trim = how == AM_CLEAN_LINE || how == AM_CLEAN_NAME;
	char *out = malloc(len + sizeof "(unnamed)"), *p = out;
	size_t i = 0, count = 0;

	if (out == NULL)
		abort();
	while (i < len && count < max) {
		uint32_t c, as;
		int n = am_utf8_next(bytes + i, len - i, &c);

		if (n < 0) {		/* libjq's strings are UTF-8; other bytes are dropped */
			i++;
			continue;
		}
		as = cleaned(how, c);
		if (as == DROP || (as == ' ' && ((trim && p == out) || (spaces_once && p[-1] == ' ')))) {
			i += (size_t)n;
			continue;
		}
		if (as == c) {
			memcpy(p, bytes + i, (size_t)n);
			p += n;
		} else {
			*p++ = (char)as;
		}
		i += (size_t)n;
		count++;
	}
	while (trim && p > out && p[-1] == ' ')
		p--;
	*p = '\0';
	if (how == AM_CLEAN_NAME && p == out)
		strcpy(out, "(unnamed)");
	return out;
}
