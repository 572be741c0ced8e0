/*
 * amap-put - publish a files stream below the home, or one file at a path
 *
 * The stream is amap-files(5). Order of work, states and report lines are
 * those of spec deployment, sections 4 and 11. Every target is looked at
 * before the first write, so a refusal leaves the home as it was; every step
 * is whole and durable before the next, so a rerun finishes a killed run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "files.h"
#include "path.h"
#include "tree.h"

#define STDIN_MAX (256u << 20)

static const char usage[] =
    "usage: amap-put --home DIR [--apply] [FILE]\n"
    "       amap-put [--mode MODE] [--apply] PATH\n"
    "\n"
    "Publishes what the files stream FILE (or standard input; see amap-files(5)) asks for\n"
    "below DIR, or the bytes of standard input as the file PATH. Without --apply nothing\n"
    "is changed; the report says what would be.\n"
    "\n"
    "  --home DIR   read a stream; its paths are below DIR\n"
    "  --mode MODE  permission bits of PATH, octal (0644)\n"
    "  --apply      do it\n";

static mode_t mask;
static int refusals;

static void
refuse(const char *path, const char *why)
{
	am_warnx("%s: %s", am_quotes(path), am_quotes(why));
	refusals++;
}

static int
open_home_parent(const char *home)
{
	char *parent = strdup(home), *slash;
	int fd;

	if (parent == NULL)
		abort();
	slash = strrchr(parent, '/');
	slash[slash == parent] = '\0';
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(parent);
	return fd;
}

/* Opens the home; -1 when it is not there. */
static int
open_home(const char *home)
{
	const char *why = am_path_problem(home);
	int fd, parent;

	if (why != NULL) {
		refuse(home, why);
		return -1;
	}
	if ((fd = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0)
		return fd;
	if (errno == ENOENT) {
		if ((parent = open_home_parent(home)) < 0)
			refuse(home, "its parent is not a directory; make that first");
		else
			close(parent);
		return -1;
	}
	if (errno != ELOOP && errno != ENOTDIR)
		am_die("%s", am_quotes(home));
	refuse(home, "it is not a real directory");
	return -1;
}

/* ---- work ---- */

static int
open_parent(int home_fd, const char *path)
{
	char *parent = am_files_parent(path);
	int fd = am_open_beneath(home_fd, parent, O_RDONLY | O_DIRECTORY, 0);

	free(parent);
	return fd;
}

static const char *
base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

/* Made with its exact mode at once: whoever is killed here leaves no directory with another. */
static int
make_directory(int at, const char *name, const struct am_item *it)
{
	mode_t mode = it->has_mode ? it->mode : 0777 & ~mask;
	int fd, rc = 0;

	if (it->state == AM_ABSENT && mkdirat(at, name, mode) != 0)
		return -1;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (it->has_owner)
		rc = fchown(fd, it->uid, it->gid);
	if (rc == 0 && it->state == AM_ABSENT && it->has_mode)
		rc = fchmod(fd, mode);
	close(fd);
	return rc == 0 ? fsync(at) : -1;
}

static int
remove_item(int at, const char *name, const struct am_item *it)
{
	int fd, rc;

	if (strcmp(it->remove, "contents") != 0)
		return am_remove(at, name) == 0 ? fsync(at) : -1;
	if ((fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return -1;
	rc = am_empty(fd) == 0 ? fsync(fd) : -1;
	close(fd);
	return rc;
}

/* A killed run leaves temporary files; the first file of a directory takes them away. */
static void
sweep(int at, const struct am_item *it)
{
	static jv swept = { 0 };
	char *parent = am_files_parent(it->path);

	if (jv_get_kind(swept) != JV_KIND_OBJECT)
		swept = jv_object();
	if (!am_has(swept, parent)) {
		if (am_sweep(at) != 0)
			am_die("%s: temporary files of an earlier run", am_quotes(parent));
		swept = am_set(swept, parent, jv_true());
	}
	free(parent);
}

static void
apply(int *home_fd, const char *home, const struct am_item *it)
{
	int is_home = strcmp(it->path, ".") == 0, at, rc;
	const char *path = is_home ? home : it->path;

	at = is_home ? open_home_parent(home) : open_parent(*home_fd, path);
	if (at < 0)
		am_die("%s", am_quotes(path));
	if (it->kind == AM_FILE)
		sweep(at, it);
	rc = it->kind == AM_REMOVE ? remove_item(at, base_of(path), it) :
	    it->kind == AM_DIRECTORY ? make_directory(at, base_of(path), it) :
	    am_publish(at, base_of(path), it->text, it->len, it->has_mode ? it->mode : 0666 & ~mask);
	if (rc != 0)
		am_die("%s", am_quotes(path));
	close(at);
	if (is_home && *home_fd < 0 && (*home_fd = open_home(home)) < 0)
		exit(AM_TROUBLE);
}

/* ---- the report ---- */

static const char *
says(const struct am_item *it, int applied)
{
	if (it->kind == AM_REMOVE)
		return it->state == AM_ABSENT ? "absent" : applied ? "removed" : "would remove";
	if (it->state == AM_PRESENT)
		return "present";
	if (it->state == AM_DIFFERS)
		return applied ? "updated" : "would update";
	return applied ? "created" : "would create";
}

/* Spec deployment, section 11: once one lane path is missing, a dry run calls the later ones missing too. */
static void
mark_later_lanes(struct am_files *f)
{
	const char *member = NULL;

	for (size_t i = 0; i < f->count; i++) {
		struct am_item *it = &f->items[i];

		if (it->kind != AM_DIRECTORY || it->member == NULL)
			continue;
		if (it->state == AM_ABSENT)
			member = it->member;
		else if (member != NULL && strcmp(it->member, member) == 0)
			it->state = AM_ABSENT;
	}
}

static void
work(struct am_files *f, const char *home, int applying)
{
	for (enum am_item_kind kind = AM_BEFORE; kind <= AM_NOTE; kind++) {
		for (size_t i = 0; i < f->count; i++) {
			struct am_item *it = &f->items[i];

			if (it->kind != kind)
				continue;
			if (it->path == NULL) {
				printf("%s\n", it->text);
				continue;
			}
			if (applying && (it->kind == AM_REMOVE ? it->state == AM_PRESENT : it->state != AM_PRESENT))
				apply(&f->home_fd, home, it);
			printf("%s %s\n", says(it, applying), am_quotes(it->path));
		}
	}
}

static int
put_stream(const char *home, const char *file, int applying)
{
	struct am_stream in = { .fp = stdin, .name = "<stdin>" };
	struct am_files f;
	const char *where = NULL;

	if (file != NULL && strcmp(file, "-") != 0) {
		in.name = am_quotes(file);
		if ((in.fp = fopen(file, "re")) == NULL)
			am_die("%s", in.name);
	}
	am_files_init(&f, -1, refuse);
	if (am_files_read(&f, &in) != 0)
		am_diex("%s; nothing was changed", am_stream_why(&in));
	f.home_fd = open_home(home);
	if (f.home_fd < 0 && refusals == 0 && f.count > 0 && !am_has(f.planned, "."))
		refuse(home, "it is not there; the install verb makes it");
	if (refusals == 0 && am_files_look(&f, &where) != 0)
		am_die("%s", am_quotes(where));
	if (refusals == 0) {
		if (!applying)
			mark_later_lanes(&f);
		work(&f, home, applying);
	}
	am_files_free(&f);
	if (in.fp != stdin)
		fclose(in.fp);
	return refusals == 0 ? AM_OK : AM_PROBLEM;
}

/* ---- one file ---- */

static int
put_file(const char *path, mode_t mode, int applying)
{
	struct am_item it = { .kind = AM_FILE };
	struct stat st;
	char *have, *bytes = am_read_fd(STDIN_FILENO, STDIN_MAX, &it.len), *dir;
	const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
	size_t len;
	int at;

	if (bytes == NULL)
		am_die("<stdin>");
	if ((dir = slash == path ? strdup("/") : slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path))) == NULL)
		abort();
	if ((at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		am_die("%s", am_quotes(dir));
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno != ENOENT)
			am_die("%s", am_quotes(path));
	} else if (!S_ISREG(st.st_mode)) {
		refuse(path, S_ISLNK(st.st_mode) ? "it is a symbolic link; remove it first" :
		    "it is not a regular file; remove it first");
	} else {
		have = am_read_regular(at, name, STDIN_MAX, &len);
		it.state = have != NULL && (st.st_mode & 07777) == mode && len == it.len &&
		    memcmp(have, bytes, len) == 0 ? AM_PRESENT : AM_DIFFERS;
		free(have);
	}
	if (refusals == 0 && applying && it.state != AM_PRESENT && am_publish(at, name, bytes, it.len, mode) != 0)
		am_die("%s", am_quotes(path));
	if (refusals == 0)
		printf("%s %s\n", says(&it, applying), am_quotes(path));
	free(bytes);
	free(dir);
	close(at);
	return refusals == 0 ? AM_OK : AM_PROBLEM;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "apply", no_argument, NULL, 'a' },
		{ "home", required_argument, NULL, 'H' },
		{ "mode", required_argument, NULL, 'm' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *home = NULL, *mode_text = NULL;
	int c, applying = 0;
	mode_t mode = 0644;

	am_prog = "amap-put";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'a': applying = 1; break;
		case 'H': home = optarg; break;
		case 'm': mode_text = optarg; break;
		default: am_std_option(c, usage);
		}
	}
	argc -= optind;
	argv += optind;
	if (argc > 1 || (home == NULL && argc == 0) || (home != NULL && mode_text != NULL))
		am_usage(usage);
	if (mode_text != NULL && am_files_mode(mode_text, &mode) != 0)
		am_diex("--mode %s: not an octal mode", am_quotes(mode_text));
	mask = umask(0);
	return am_finish(home != NULL ? put_stream(home, argv[0], applying) :
	    put_file(argv[0], mode, applying));
}
