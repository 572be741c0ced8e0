/*
 * amap-home - say which directory is the home, if it may be one
 *
 * Order of the places it is looked for: spec bringup, section 1. Where a home
 * may be: spec deployment, section 4.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "path.h"

#define RECORD_MAX 65536
#define OUTSIDE_MAX 16

static const char usage[] =
    "usage: amap-home [--home DIR] [--outside DIR]... [--new] [--real]\n"
    "       amap-home --record\n"
    "\n"
    "Prints the home: DIR, or $AMAP_OPENSHELL_HOME, or what the home record says.\n"
    "\n"
    "  --home DIR     this one; empty counts as not given\n"
    "  --outside DIR  refuse a home at, under or above DIR\n"
    "  --new          the home need not be there yet, but its parent must\n"
    "  --real         refuse a home that is reached over a symbolic link\n"
    "  --record       print the path of the home record instead\n";

static const char *
environment(const char *name)
{
	const char *v = getenv(name);

	return v != NULL && v[0] != '\0' ? v : NULL;
}

/* The path of the home record, from malloc; NULL when there is nowhere to keep one. */
static char *
record_path(void)
{
	const char *dir = environment("XDG_CONFIG_HOME");

	if (dir != NULL)
		return am_path_join(dir, "amap-openshell/home");
	dir = environment("HOME");
	return dir == NULL ? NULL : am_path_join(dir, ".config/amap-openshell/home");
}

/* The home that the record names, from malloc; NULL without a record. An unusable record is fatal. */
static char *
read_record(void)
{
	char *path = record_path(), *text, *from, *to;
	struct stat st;
	size_t len;
	int fd;

	if (path == NULL || lstat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
		free(path);
		return NULL;
	}
	if ((fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) < 0 ||
	    (text = am_read_fd(fd, RECORD_MAX, &len)) == NULL)
		am_die("%s", am_quotes(path));
	close(fd);
	from = text + strspn(text, " \t\r\n\v\f");
	to = text + len;
	while (to > from && strchr(" \t\r\n\v\f", to[-1]) != NULL)
		to--;
	if (memchr(text, '\0', len) != NULL || to == from || from[0] != '/' ||
	    memchr(from, '\n', (size_t)(to - from)) != NULL)
		am_diex("%s: it must hold one absolute path; correct or remove it, or give --home", am_quotes(path));
	from = strndup(from, (size_t)(to - from));
	free(text);
	free(path);
	return from;
}

/* The real path, also of a directory that is still to be made; from malloc, NULL with errno. */
static char *
real_path(const char *path)
{
	char *real = realpath(path, NULL), *copy, *slash, *parent;

	if (real != NULL || errno != ENOENT)
		return real;
	if ((copy = strdup(path)) == NULL)
		abort();
	slash = strrchr(copy, '/');
	*slash = '\0';
	if ((parent = realpath(slash == copy ? "/" : copy, NULL)) != NULL)
		real = am_path_join(strcmp(parent, "/") == 0 ? "" : parent, slash + 1);
	free(parent);
	free(copy);
	return real;
}

static int
overlap(const char *a, const char *b)
{
	return am_path_under(a, b) || am_path_under(b, a);
}

static int
refused(const char *home, const char *why)
{
	am_warnx("%s: %s", am_quotes(home), why);
	return AM_PROBLEM;
}

static int
check_place(const char *home, const char *real, char **outside, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *other = realpath(outside[i], NULL);
		int bad = overlap(home, outside[i]) || overlap(real, outside[i]) ||
		    (other != NULL && (overlap(home, other) || overlap(real, other)));

		free(other);
		if (bad) {
			am_warnx("%s: the home overlaps with %s; choose a place apart from it", am_quotes(home),
			    am_quotes(outside[i]));
			return AM_PROBLEM;
		}
	}
	return AM_OK;
}

static int
check(const char *home, char **outside, size_t n, int may_be_new, int must_be_real)
{
	const char *why = am_path_problem(home);
	struct stat st;
	char *real;
	int rc;

	if (why != NULL)
		return refused(home, why);
	if ((real = real_path(home)) == NULL)
		return refused(home, errno == ENOENT || errno == ENOTDIR ?
		    "the directory above it is not there; make that first" : strerror(errno));
	rc = check_place(home, real, outside, n);
	if (rc == AM_OK && must_be_real && strcmp(home, real) != 0)
		rc = refused(home, "it is reached over a symbolic link; give the real path");
	free(real);
	if (rc != AM_OK)
		return rc;
	if (lstat(home, &st) != 0)
		return errno != ENOENT ? refused(home, strerror(errno)) : may_be_new ? AM_OK :
		    refused(home, "there is no such home; the install verb makes it");
	if (!S_ISDIR(st.st_mode))
		return refused(home, S_ISLNK(st.st_mode) ? "it is a symbolic link; give the real path" :
		    "it is not a directory");
	return AM_OK;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "home", required_argument, NULL, 'H' },
		{ "new", no_argument, NULL, 'n' },
		{ "outside", required_argument, NULL, 'o' },
		{ "real", no_argument, NULL, 'r' },
		{ "record", no_argument, NULL, 'R' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	char *outside[OUTSIDE_MAX], *path;
	const char *home = NULL;
	int c, may_be_new = 0, must_be_real = 0, record = 0, rc;
	size_t n = 0;

	am_prog = "amap-home";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'H': home = optarg; break;
		case 'n': may_be_new = 1; break;
		case 'o':
			if (n == OUTSIDE_MAX)
				am_diex("--outside: at most %d times", OUTSIDE_MAX);
			outside[n++] = optarg;
			break;
		case 'r': must_be_real = 1; break;
		case 'R': record = 1; break;
		default: am_std_option(c, usage);
		}
	}
	if (optind != argc || (record && argc != 2))
		am_usage(usage);
	if (record) {
		if ((path = record_path()) == NULL)
			return refused("home record", "neither XDG_CONFIG_HOME nor HOME is set");
		printf("%s\n", path);
		free(path);
		return am_finish(AM_OK);
	}
	if (home == NULL || home[0] == '\0')
		home = environment("AMAP_OPENSHELL_HOME");
	path = home == NULL ? read_record() : NULL;
	if (home == NULL && (home = path) == NULL)
		am_diex("no home is known; give --home DIR or set AMAP_OPENSHELL_HOME");
	if ((rc = check(home, outside, n, may_be_new, must_be_real)) == AM_OK)
		printf("%s\n", home);
	free(path);
	return am_finish(rc);
}
