#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mountinfo.h"
#include "path.h"

static int
octal(char c)
{
	return c >= '0' && c <= '7';
}

/* In place: exactly three octal digits after a backslash are one byte. */
static void
decode(char *s)
{
	char *to = s;

	while (*s != '\0') {
		if (s[0] == '\\' && octal(s[1]) && octal(s[2]) && octal(s[3]) && s[1] <= '3') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

static int
has_option(const char *options, const char *option)
{
	size_t n = strlen(option);

	for (const char *p = options; p != NULL; p = strchr(p, ',') == NULL ? NULL : strchr(p, ',') + 1)
		if (strncmp(p, option, n) == 0 && (p[n] == ',' || p[n] == '\0'))
			return 1;
	return 0;
}

static int
integer(const char *s, int *out)
{
	char *end;
	long v = strtol(s, &end, 10);

	*out = (int)v;
	return isdigit((unsigned char)*s) && *end == '\0' && v >= 0 && v <= 0x7fffffff ? 0 : -1;
}

/* ID PARENT MAJ:MIN ROOT TARGET OPTIONS [TAG ...] - TYPE SOURCE SUPER-OPTIONS */
static int
line(struct am_mount *m, char *text)
{
	char *field[6], *p = text, *super;

	for (int i = 0; i < 6; i++) {
		field[i] = p;
		if ((p = strchr(p, ' ')) == NULL)
			return -1;
		*p++ = '\0';
	}
	if (strncmp(p, "- ", 2) == 0)
		p += 2;
	else if ((p = strstr(p, " - ")) == NULL)
		return -1;
	else
		p += 3;
	if ((super = strrchr(p, ' ')) == NULL || strchr(p, ' ') == super)
		return -1;
	if (integer(field[0], &m->id) != 0 || integer(field[1], &m->parent) != 0 || field[4][0] != '/')
		return -1;
	m->device = field[2];
	decode(m->root = field[3]);
	decode(m->target = field[4]);
	m->read_only = has_option(field[5], "ro") || has_option(super + 1, "ro");
	return 0;
}

int
am_mountinfo_parse(struct am_mountinfo *mi, const char *text)
{
	char *p, *end;
	size_t number = 0;

	memset(mi, 0, sizeof *mi);
	if ((mi->text = strdup(text)) == NULL)
		abort();
	for (p = mi->text; *p != '\0'; p = end + 1) {
		number++;
		if ((end = strchr(p, '\n')) == NULL) {
			snprintf(mi->why, sizeof mi->why, "line %zu of the mount table is cut", number);
			return -1;
		}
		*end = '\0';
		if ((mi->n & (mi->n - 1)) == 0 &&
		    (mi->v = realloc(mi->v, (mi->n == 0 ? 1 : 2 * mi->n) * sizeof *mi->v)) == NULL)
			abort();
		if (line(&mi->v[mi->n], p) != 0) {
			snprintf(mi->why, sizeof mi->why, "line %zu of the mount table cannot be read", number);
			return -1;
		}
		mi->n++;
	}
	if (mi->n == 0) {
		snprintf(mi->why, sizeof mi->why, "the mount table is empty");
		return -1;
	}
	return 0;
}

void
am_mountinfo_free(struct am_mountinfo *mi)
{
	free(mi->v);
	free(mi->text);
}

/* The mount whose own parent is not in the table: the root of what is shown. */
static const struct am_mount *
root_of(struct am_mountinfo *mi)
{
	const struct am_mount *root = NULL;

	for (size_t i = 0; i < mi->n; i++) {
		const struct am_mount *m = &mi->v[i];
		int inside = 0;

		if (strcmp(m->target, "/") != 0)
			continue;
		for (size_t k = 0; k < mi->n && !inside; k++)
			inside = mi->v[k].id == m->parent && k != i;
		if (inside)
			continue;
		if (root != NULL) {
			snprintf(mi->why, sizeof mi->why, "the mount table has two roots");
			return NULL;
		}
		root = m;
	}
	if (root == NULL)
		snprintf(mi->why, sizeof mi->why, "the mount table has no root");
	return root;
}

const struct am_mount *
am_mountinfo_at(struct am_mountinfo *mi, const char *path)
{
	const struct am_mount *m = root_of(mi);

	for (size_t steps = 0; m != NULL; steps++) {
		const struct am_mount *next = NULL;
		size_t best = 0;

		if (steps > mi->n) {
			snprintf(mi->why, sizeof mi->why, "the mount table goes round in a circle");
			return NULL;
		}

		/* of the mounts on m that the path crosses, the first on the way */
		for (size_t i = 0; i < mi->n; i++) {
			const struct am_mount *k = &mi->v[i];
			size_t len = strcmp(k->target, "/") == 0 ? 0 : strlen(k->target);

			if (k == m || k->parent != m->id || (len > 0 && !am_path_under(path, k->target)))
				continue;
			if (next != NULL && len == best) {
				snprintf(mi->why, sizeof mi->why, "the mount table has two mounts at one place");
				return NULL;
			}
			if (next == NULL || len < best) {
				next = k;
				best = len;
			}
		}
		if (next == NULL)
			return m;
		m = next;
	}
	return NULL;
}
