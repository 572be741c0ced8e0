/*
 * amap-tree - files records for lane directories, and for what is taken away
 *
 * It looks and changes nothing: amap-put does what the records say. Lanes and
 * leaves: spec deployment, section 4. What goes, in which order, and what
 * stays: section 12, deprovision and teardown.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "json.h"
#include "path.h"
#include "utf8.h"

#define DEPTH_MAX 32

static const char usage[] =
    "usage: amap-tree lanes [--owner UID:GID] [--member NAME] [FILE]\n"
    "       amap-tree clear --home DIR NAME\n"
    "       amap-tree teardown --home DIR\n"
    "\n"
    "Prints files records (amap-files(5)):\n"
    "  lanes     the lane directories of every member of a members stream, or of one\n"
    "  clear     what deprovision takes away: router state and the contents of the lanes\n"
    "  teardown  what teardown takes away\n";

static const struct lane {
	const char *name, *leaf[2];
} lanes[] = {
	{ "inbox", { "notices", "messages" } },
	{ "peer", { "notices", "messages" } },
	{ "outbox", { "results", "processed" } },
};

#define LANES (sizeof lanes / sizeof *lanes)

static long records;

static void
record(jv rec)
{
	am_put(stdout, rec);
	records++;
}

/* ---- lanes ---- */

static void
directory(char *path, const char *owner, const char *member)
{
	jv rec = am_set(am_set_str(jv_object(), "path", path), "mode", jv_null());

	rec = am_set(rec, "directory", jv_true());
	if (member != NULL)
		rec = am_set_str(rec, "member", member);
	record(owner == NULL ? rec : am_set_str(rec, "owner", owner));
}

static void
member_lanes(const char *name, const char *owner)
{
	char path[1024];

	snprintf(path, sizeof path, "instances/%s", name);
	directory(path, owner, name);
	for (size_t i = 0; i < LANES; i++) {
		snprintf(path, sizeof path, "instances/%s/%s", name, lanes[i].name);
		directory(path, owner, name);
		for (size_t k = 0; k < 2; k++) {
			snprintf(path, sizeof path, "instances/%s/%s/%s", name, lanes[i].name, lanes[i].leaf[k]);
			directory(path, owner, name);
		}
	}
}

static void
print_lanes(const char *file, const char *only, const char *owner)
{
	struct am_stream in = { .fp = stdin, .name = "<stdin>" };
	char instances[] = "instances";
	int got, found = only == NULL;
	jv rec;

	if (file != NULL && strcmp(file, "-") != 0) {
		in.name = am_quotes(file);
		if ((in.fp = fopen(file, "re")) == NULL)
			am_die("%s", in.name);
	}
	directory(instances, owner, NULL);
	while ((got = am_next(&in, &rec)) > 0) {
		const char *name = am_str(rec, "name");

		if (name == NULL || name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL)
			am_diex("%s:%ld: the record has no name that a directory could have", in.name, in.line);
		if (only == NULL || strcmp(name, only) == 0) {
			member_lanes(name, owner);
			found = 1;
		}
		jv_free(rec);
	}
	if (got < 0)
		am_diex("%s", am_stream_why(&in));
	if (!found)
		am_diex("%s: no such member in the stream", am_quotes(only));
}

/* ---- what stands below the home ---- */

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The entries of a directory below the home, sorted, ended with NULL; NULL when it is not there. */
static char **
entries(int home, const char *path)
{
	int fd = am_open_beneath(home, path, O_RDONLY | O_DIRECTORY, 0);
	size_t n = 0, cap = 16;
	struct dirent *e;
	char **v;
	DIR *d;

	if (fd < 0 && errno == ENOENT)
		return NULL;
	if (fd < 0 || (d = fdopendir(fd)) == NULL) {
		if (errno != ELOOP && errno != ENOTDIR)
			am_die("%s", am_quotes(path));
		am_warnx("%s: not a real directory; remove it by hand", am_quotes(path));
		exit(AM_PROBLEM);
	}
	if ((v = malloc(cap * sizeof *v)) == NULL)
		abort();
	while (errno = 0, (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (n + 1 == cap && (v = realloc(v, (cap *= 2) * sizeof *v)) == NULL)
			abort();
		if ((v[n++] = strdup(e->d_name)) == NULL)
			abort();
	}
	if (errno != 0)
		am_die("%s", am_quotes(path));
	closedir(d);
	qsort(v, n, sizeof *v, by_name);
	v[n] = NULL;
	return v;
}

static void
free_entries(char **v)
{
	for (size_t i = 0; v != NULL && v[i] != NULL; i++)
		free(v[i]);
	free(v);
}

struct tally {
	long files, audit;
	int say_held;		/* name each held request in the stream */
};

/* Every file at and below path; held and audit: whether a directory of that name is above it. */
static void
walk(int home, const char *path, int held, int audit, int depth, struct tally *t)
{
	char **v;
	struct stat st;

	if (depth > DEPTH_MAX)
		am_diex("%s: directories nested too deep; remove them by hand", am_quotes(path));
	v = entries(home, path);
	for (size_t i = 0; v != NULL && v[i] != NULL; i++) {
		char *below = am_path_join(path, v[i]);
		int fd = am_open_beneath(home, below, O_PATH, 0);

		if (fd < 0 || fstat(fd, &st) != 0)
			am_die("%s", am_quotes(below));
		close(fd);
		if (S_ISDIR(st.st_mode)) {
			walk(home, below, held || strcmp(v[i], "held") == 0, audit || strcmp(v[i], "audit") == 0,
			    depth + 1, t);
		} else {
			t->files++;
			t->audit += audit;
			if (held && t->say_held)
				record(am_set(jv_object(), "before", jv_string_fmt("held request %s will be lost",
				    am_quotes(below))));
		}
		free(below);
	}
	free_entries(v);
}

/* ---- removals ---- */

static void
removal(const char *path, const char *what)
{
	record(am_set_str(am_set_str(jv_object(), "path", path), "remove", what));
}

static int
is_utf8(const char *s)
{
	uint32_t c;
	int n;

	for (; *s != '\0'; s += n)
		if ((n = am_utf8_next(s, strlen(s), &c)) < 0)
			return 0;
	return 1;
}

static void
router_state(int home, const char *state)
{
	char **v = entries(home, state);
	size_t i, k, n;

	for (i = 0; v != NULL && v[i] != NULL; i++) {
		if (!is_utf8(v[i]))
			am_diex("%s/%s: the name is not UTF-8; remove it by hand", state, am_quotes(v[i]));
		if (strcmp(v[i], "first-seen.json") == 0) {		/* it goes first */
			char *first = v[i];

			for (k = i; k > 0; k--)
				v[k] = v[k - 1];
			v[0] = first;
		}
	}
	for (n = 0; n < i; n++) {
		char *path = am_path_join(state, v[n]);

		if (strcmp(v[n], "audit") != 0)
			removal(path, "any");
		free(path);
	}
	free_entries(v);
}

static void
print_clear(int home, const char *name)
{
	struct tally held = { .say_held = 1 };
	char *state = am_path_join("router-state", name), path[1024];

	walk(home, state, 0, 0, 0, &held);
	router_state(home, state);
	free(state);
	for (size_t i = 0; i < LANES; i++) {
		for (size_t k = 0; k < 2; k++) {
			snprintf(path, sizeof path, "instances/%s/%s/%s", name, lanes[i].name, lanes[i].leaf[k]);
			removal(path, "contents");
		}
	}
}

static void
print_teardown(int home)
{
	static const char *const dirs[] = { "payload", "roster", "router-state" };
	struct tally t[3] = { { .files = 0 }, { .files = 0 }, { .say_held = 1 } };
	struct stat st;

	walk(home, dirs[2], 0, 0, 0, &t[2]);
	if (t[2].audit > 0)
		record(am_set(jv_object(), "before", jv_string_fmt(
		    "router-state holds audit files (%ld in all); copy them first if they are to be kept",
		    t[2].audit)));
	for (size_t i = 0; i < 3; i++) {
		if (i < 2)
			walk(home, dirs[i], 0, 0, 0, &t[i]);
		if (fstatat(home, dirs[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			record(am_set(jv_object(), "before", jv_string_fmt("%s/ holds %ld file(s)", dirs[i], t[i].files)));
	}
	removal("payload", "directory");
	removal("roster", "directory");
	removal("router.json", "file");
	removal("selected.json", "file");
	removal("router-state", "directory");
}

static int
open_home(const char *home)
{
	int fd = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		am_die("%s", am_quotes(home));
	return fd;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "home", required_argument, NULL, 'H' },
		{ "member", required_argument, NULL, 'm' },
		{ "owner", required_argument, NULL, 'o' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *home = NULL, *member = NULL, *owner = NULL, *what;
	int c;

	am_prog = "amap-tree";
	what = argc > 1 && argv[1][0] != '-' ? argv[1] : "";
	if (what[0] != '\0') {
		argc--;
		argv++;
	}
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'H': home = optarg; break;
		case 'm': member = optarg; break;
		case 'o': owner = optarg; break;
		default: am_std_option(c, usage);
		}
	}
	argc -= optind;
	argv += optind;
	if (strcmp(what, "lanes") == 0 && argc <= 1 && home == NULL)
		print_lanes(argc == 1 ? argv[0] : NULL, member, owner);
	else if (strcmp(what, "clear") == 0 && argc == 1 && home != NULL && argv[0][0] != '\0' &&
	    argv[0][0] != '.' && strchr(argv[0], '/') == NULL)
		print_clear(open_home(home), argv[0]);
	else if (strcmp(what, "teardown") == 0 && argc == 0 && home != NULL)
		print_teardown(open_home(home));
	else
		am_usage(usage);
	am_put_end(stdout, records);
	return am_finish(AM_OK);
}
