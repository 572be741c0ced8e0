#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "utf8.h"

const char *
am_name_problem(const char *name)
{
	size_t n = strlen(name), characters = 0;

	if (n == 0)
		return "it is empty";
	for (size_t i = 0; i < n; i++)
		characters += ((unsigned char)name[i] & 0xc0) != 0x80;	/* not one that goes on with another */
	if (characters > AM_NAME_MAX)
		return "it is longer than 19 characters";
	if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] != '\0')
		return "it holds a character other than a-z, 0-9 and \"-\"";
	if (name[0] == '-' || name[n - 1] == '-')
		return "it begins or ends with \"-\"";
	if (strstr(name, "--") != NULL)
		return "it holds \"--\"";
	return NULL;
}

const char *
am_domain_problem(const char *domain)
{
	const char *p = domain;

	for (;;) {
		size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789-");

		if (n == 0)
			return *p == '\0' || *p == '.' ? "a label is empty" : "it holds a character other than a-z, 0-9, \"-\" and \".\"";
		if (p[0] == '-' || p[n - 1] == '-')
			return "a label begins or ends with \"-\"";
		p += n;
		if (*p == '\0')
			return NULL;
		if (*p++ != '.')
			return "it holds a character other than a-z, 0-9, \"-\" and \".\"";
	}
}

const char *
am_id_problem(const char *id)
{
	const char *p = id;
	uint32_t c;

	if (*id == '\0')
		return "it is empty";
	while (*p != '\0') {
		int n = am_utf8_next(p, strlen(p), &c);

		if (n < 0 || c == ' ' || !am_printable(c))
			return "it holds white space or an unprintable character";
		p += n;
	}
	return NULL;
}

/* ---- lists of names ---- */

void
am_names_add(struct am_names *names, const char *name)
{
	if (names->n == names->cap) {
		names->cap = names->cap == 0 ? 16 : names->cap * 2;
		if ((names->v = reallocarray(names->v, names->cap, sizeof *names->v)) == NULL)
			abort();
	}
	names->v[names->n++] = name;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
am_names_sort(struct am_names *names)
{
	size_t kept = 0;

	if (names->n == 0)
		return;
	qsort(names->v, names->n, sizeof *names->v, by_bytes);
	for (size_t i = 1; i < names->n; i++)
		if (strcmp(names->v[i], names->v[kept]) != 0)
			names->v[++kept] = names->v[i];
	names->n = kept + 1;
}

long
am_names_find(const struct am_names *sorted, const char *name)
{
	const char **hit;

	if (sorted->n == 0)
		return -1;
	hit = bsearch(&name, sorted->v, sorted->n, sizeof *sorted->v, by_bytes);
	return hit == NULL ? -1 : hit - sorted->v;
}

void
am_names_free(struct am_names *names)
{
	free(names->v);
	*names = (struct am_names){ 0 };
}
