#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "utf8.h"

const char *
am_path_problem(const char *path)
{
	const char *p;

	if (path == NULL || path[0] == '\0')
		return "it is empty";
	if (path[0] != '/')
		return "it is not absolute";
	if (path[1] == '\0')
		return "it is the root directory";
	for (p = path; *p != '\0'; ) {
		size_t n;

		p++;				/* over the "/" */
		n = strcspn(p, "/");
		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return "it is not normalised";
		p += n;
	}
	if (strchr(path, ':') != NULL)
		return "it holds a colon";
	for (p = path; *p != '\0'; ) {
		uint32_t c;
		int n = am_utf8_next(p, strlen(p), &c);

		if (n < 0)
			return "it is not UTF-8";
		if (c == ' ' || !am_printable(c))
			return "it holds white space or an unprintable character";
		p += n;
	}
	return NULL;
}

int
am_path_under(const char *a, const char *b)
{
	size_t n = strlen(b);

	return strncmp(a, b, n) == 0 && (a[n] == '\0' || a[n] == '/');
}

char *
am_path_join(const char *dir, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		abort();
	return path;
}
