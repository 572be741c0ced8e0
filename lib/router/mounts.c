#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "diag.h"
#include "path.h"
#include "router/mounts.h"

struct mount {
	const char *path;
	int rw, depth, at;
};

static int
depth_of(const char *path)
{
	int n = 0;

	for (; *path != '\0'; path++)
		n += *path == '/';
	return n;
}

static int
parents_first(const void *a, const void *b)
{
	const struct mount *x = a, *y = b;

	return x->depth != y->depth ? x->depth - y->depth : x->at - y->at;
}

static void
add(struct mount *m, int *n, const char *path, int rw)
{
	for (int i = 0; i < *n; i++)
		if (strcmp(m[i].path, path) == 0)
			return;
	m[*n] = (struct mount){ path, rw, depth_of(path), *n };
	++*n;
}

static int
is_directory(const char *path, int follow)
{
	struct stat st;

	return (follow ? stat(path, &st) : lstat(path, &st)) == 0 && S_ISDIR(st.st_mode);
}

int
amr_mounts_print(FILE *fp, const struct amr_conf *c)
{
	struct mount *m = calloc(c->n + 8, sizeof *m);
	char *verdict = NULL, *roster = NULL;
	int n = 0, rc = 0;

	if (m == NULL)
		abort();
	add(m, &n, c->state_dir, 1);
	if (c->intake_dir != NULL)
		add(m, &n, c->intake_dir, 1);
	if (c->instances_dir != NULL) {
		add(m, &n, c->instances_dir, 1);
		if ((verdict = strdup(c->selected_json)) == NULL)
			abort();
		*strrchr(verdict, '/') = '\0';
		add(m, &n, *verdict != '\0' ? verdict : "/", 0);
		roster = am_path_join(verdict, "roster");
		if (is_directory(roster, 0))
			add(m, &n, roster, 1);
	}
	for (size_t i = 0; i < c->n && c->instances_dir == NULL; i++)
		add(m, &n, c->members[i].root, 1);
	for (int i = 0; i < n; i++)
		if (!is_directory(m[i].path, 1)) {
			am_warnx("%s: not a directory; make it before the router is confined", am_quotes(m[i].path));
			rc = -1;
		}
	qsort(m, (size_t)n, sizeof *m, parents_first);
	for (int i = 0; i < n && rc == 0; i++)
		fprintf(fp, "%s\t%s\n", m[i].path, m[i].rw ? "rw" : "ro");
	free(verdict);
	free(roster);
	free(m);
	return rc;
}
