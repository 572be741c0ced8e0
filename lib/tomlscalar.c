#include <ctype.h>
#include <string.h>

#include "tomlscalar.h"

/* Over digits with single "_" between them; the number of digits, 0 when it is none. */
static int
digits(const char **s, const char *set)
{
	int n = 0;

	while (**s != '\0' && strchr(set, **s) != NULL) {
		n++;
		(*s)++;
		if (**s == '_' && (*s)[1] != '\0' && strchr(set, (*s)[1]) != NULL)
			(*s)++;
	}
	return n;
}

#define DECIMAL "0123456789"

static int
is_number(const char *s)
{
	int n, zero;

	if (s[0] == '0' && s[1] != '\0' && strchr("xob", s[1]) != NULL) {
		const char *set = s[1] == 'x' ? DECIMAL "abcdefABCDEF" : s[1] == 'o' ? "01234567" : "01";

		s += 2;
		return digits(&s, set) > 0 && *s == '\0';
	}
	if (*s == '+' || *s == '-')
		s++;
	if (strcmp(s, "inf") == 0 || strcmp(s, "nan") == 0)
		return 1;
	zero = *s == '0';
	n = digits(&s, DECIMAL);
	if (n == 0 || (zero && n > 1))
		return 0;
	if (*s == '.') {
		s++;
		if (digits(&s, DECIMAL) == 0)
			return 0;
	}
	if (*s == 'e' || *s == 'E') {
		s++;
		if (*s == '+' || *s == '-')
			s++;
		if (digits(&s, DECIMAL) == 0)
			return 0;
	}
	return *s == '\0';
}

/* So many digits, between two numbers; to *v. */
static int
field(const char **s, int width, int low, int high, int *v)
{
	*v = 0;
	for (int i = 0; i < width; i++, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return 0;
		*v = *v * 10 + **s - '0';
	}
	return *v >= low && *v <= high;
}

static int
take(const char **s, const char *set)
{
	if (**s == '\0' || strchr(set, **s) == NULL)
		return 0;
	(*s)++;
	return 1;
}

static int
is_clock(const char **s)
{
	size_t n;
	int v;

	if (!field(s, 2, 0, 23, &v) || !take(s, ":") || !field(s, 2, 0, 59, &v) || !take(s, ":") ||
	    !field(s, 2, 0, 60, &v))
		return 0;
	if (!take(s, "."))
		return 1;
	n = strspn(*s, DECIMAL);
	*s += n;
	return n > 0;
}

static int
is_date(const char **s)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year, month, day;

	return field(s, 4, 0, 9999, &year) && take(s, "-") && field(s, 2, 1, 12, &month) && take(s, "-") &&
	    field(s, 2, 1, month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : days[month - 1],
	    &day);
}

/* A date, a time, or both with or without an offset. */
static int
is_time(const char *s)
{
	const char *clock = s;
	int v;

	if (is_clock(&clock))
		return *clock == '\0';
	if (!is_date(&s))
		return 0;
	if (*s == '\0')
		return 1;
	if (!take(&s, "Tt ") || !is_clock(&s))
		return 0;
	if (*s == '\0' || strcmp(s, "Z") == 0 || strcmp(s, "z") == 0)
		return 1;
	return take(&s, "+-") && field(&s, 2, 0, 23, &v) && take(&s, ":") && field(&s, 2, 0, 59, &v) && *s == '\0';
}

int
am_toml_scalar(const char *text, enum am_toml_kind *kind)
{
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		*kind = AM_TOML_BOOL;
	else if (is_number(text))
		*kind = AM_TOML_NUMBER;
	else if (is_time(text))
		*kind = AM_TOML_TIME;
	else
		return -1;
	return 0;
}
