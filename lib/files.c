#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "files.h"

#define SOURCE_MAX (256u << 20)

/* ---- the records ---- */

/* Relative, and every component a plain name; "." is the home itself. */
static int
path_is_sound(const char *path)
{
	if (strcmp(path, ".") == 0)
		return 1;
	if (strlen(path) >= PATH_MAX)
		return 0;
	for (;;) {
		size_t n = strcspn(path, "/");

		if (n == 0 || n > NAME_MAX || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return 0;
		if (path[n] == '\0')
			return 1;
		path += n + 1;
	}
}

int
am_files_mode(const char *text, mode_t *mode)
{
	unsigned long v;
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '7')
		return -1;
	v = strtoul(text, &end, 8);
	if (*end != '\0' || v > 07777)
		return -1;
	*mode = (mode_t)v;
	return 0;
}

static int
read_owner(const char *text, struct am_item *it)
{
	unsigned long uid, gid;
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return -1;
	uid = strtoul(text, &end, 10);
	if (*end != ':' || end[1] < '0' || end[1] > '9')
		return -1;
	gid = strtoul(end + 1, &end, 10);
	if (*end != '\0' || uid >= UINT32_MAX || gid >= UINT32_MAX)
		return -1;
	it->uid = (uid_t)uid;
	it->gid = (gid_t)gid;
	it->has_owner = 1;
	return 0;
}

static const char *
read_removal(struct am_item *it)
{
	static const char *const known[] = { "file", "directory", "any", "contents" };

	it->kind = AM_REMOVE;
	if ((it->remove = am_str(it->rec, "remove")) == NULL || strcmp(it->path, ".") == 0)
		return "nobody knows how to remove that";
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(it->remove, known[i]) == 0)
			return NULL;
	return "nobody knows how to remove that";
}

static const char *
read_file(struct am_item *it)
{
	jv v;

	it->kind = AM_FILE;
	if (strcmp(it->path, ".") == 0)
		return "the home is a directory";
	if (it->has_owner)
		return "only a directory is given to an owner";
	if (am_has(it->rec, "source")) {
		it->source = am_str(it->rec, "source");
		return it->source != NULL && it->source[0] == '/' ? NULL : "the source is not an absolute path";
	}
	v = am_get(it->rec, "content", JV_KIND_STRING);
	if (!jv_is_valid(v))
		return "the content is not a string";
	it->text = jv_string_value(v);
	it->len = (size_t)jv_string_length_bytes(v);	/* consumes v; the record keeps the string */
	return NULL;
}

/* What one record asks for: NULL, or why it asks for nothing we know. */
static const char *
read_item(struct am_item *it)
{
	jv v;
	int bad;

	if ((it->text = am_str(it->rec, "before")) != NULL || (it->text = am_str(it->rec, "note")) != NULL) {
		it->kind = am_has(it->rec, "before") ? AM_BEFORE : AM_NOTE;
		return NULL;
	}
	it->path = am_str(it->rec, "path");
	if (it->path == NULL || !path_is_sound(it->path))
		return "the path is not a plain path below the home";
	it->member = am_str(it->rec, "member");
	v = am_get(it->rec, "mode", JV_KIND_NULL);
	it->has_mode = am_has(it->rec, "mode") && !jv_is_valid(v);
	jv_free(v);
	if (it->has_mode && am_files_mode(am_str(it->rec, "mode"), &it->mode) != 0)
		return "the mode is not an octal number";
	if (am_has(it->rec, "owner") && read_owner(am_str(it->rec, "owner"), it) != 0)
		return "the owner is not UID:GID";
	if (am_has(it->rec, "content") + am_has(it->rec, "source") + am_has(it->rec, "directory") +
	    am_has(it->rec, "remove") != 1)
		return "it is not exactly one of content, source, directory and remove";
	if (am_has(it->rec, "remove"))
		return read_removal(it);
	if (!am_has(it->rec, "directory"))
		return read_file(it);
	it->kind = AM_DIRECTORY;
	v = am_get(it->rec, "directory", JV_KIND_TRUE);
	bad = !jv_is_valid(v);
	jv_free(v);
	return bad ? "directory is not true" : NULL;
}

void
am_files_init(struct am_files *f, int home_fd, void (*refuse)(const char *, const char *))
{
	memset(f, 0, sizeof *f);
	f->planned = jv_object();
	f->home_fd = home_fd;
	f->refuse = refuse;
}

void
am_files_free(struct am_files *f)
{
	for (size_t i = 0; i < f->count; i++) {
		if (f->items[i].source != NULL)
			free((char *)f->items[i].text);		/* else it is the record's */
		jv_free(f->items[i].rec);
	}
	free(f->items);
	jv_free(f->planned);
	if (f->home_fd >= 0)
		close(f->home_fd);
}

static struct am_item *
add_item(struct am_files *f, jv rec)
{
	if (f->count == f->cap) {
		f->cap = f->cap == 0 ? 64 : f->cap * 2;
		if ((f->items = realloc(f->items, f->cap * sizeof *f->items)) == NULL)
			abort();
	}
	memset(&f->items[f->count], 0, sizeof *f->items);
	f->items[f->count].rec = rec;
	return &f->items[f->count++];
}

int
am_files_read(struct am_files *f, struct am_stream *in)
{
	jv rec, paths = jv_object();
	const char *why;
	int got;

	while ((got = am_next(in, &rec)) > 0) {
		struct am_item *it = add_item(f, rec);

		why = read_item(it);
		if (why == NULL && it->path != NULL && am_has(paths, it->path)) {
			if (it->kind == AM_DIRECTORY && am_has(f->planned, it->path)) {
				jv_free(rec);		/* several parts may ask for one directory */
				f->count--;
				continue;
			}
			why = "the path stands twice in the stream";
		}
		if (why != NULL) {
			snprintf(in->why, sizeof in->why, "%s:%ld: %s", in->name, in->line, why);
			got = -1;
			break;
		}
		if (it->path != NULL)
			paths = am_set(paths, it->path, jv_true());
		if (it->kind == AM_DIRECTORY)
			f->planned = am_set(f->planned, it->path, jv_true());
	}
	jv_free(paths);
	return got;
}

/* ---- how the home stands to them ---- */

char *
am_files_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *parent = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path));

	if (parent == NULL)
		abort();
	return parent;
}

/* 1 with what stands there, 0 when nothing does, -1 when it was refused. */
static int
look(struct am_files *f, const char *path, struct stat *st)
{
	int fd, rc;

	if (f->home_fd < 0)
		return 0;
	if ((fd = am_open_beneath(f->home_fd, path, O_PATH, 0)) < 0) {
		if (errno == ENOENT)
			return 0;
		f->refuse(path, errno == ELOOP ? "its parent is a symbolic link; remove it first" :
		    errno == ENOTDIR ? "its parent is not a directory; remove it first" : strerror(errno));
		return -1;
	}
	rc = fstat(fd, st);
	close(fd);
	if (rc == 0)
		return 1;
	f->refuse(path, strerror(errno));
	return -1;
}

static void
look_at_parent(struct am_files *f, const char *path)
{
	char *parent = am_files_parent(path);
	struct stat st;

	if (!am_has(f->planned, parent) && look(f, parent, &st) == 0)
		f->refuse(path, "the directory it belongs in is not there");
	free(parent);
}

static int
load_source(struct am_files *f, struct am_item *it)
{
	int fd = open(it->source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	char why[512];

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		snprintf(why, sizeof why, "its source %s: %s", it->source,
		    fd < 0 ? strerror(errno) : "not a regular file");
		f->refuse(it->path, why);
	} else if ((it->text = am_read_fd(fd, SOURCE_MAX, &it->len)) == NULL) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		close(fd);
	return 0;
}

static int
same_bytes(struct am_files *f, const struct am_item *it, const struct stat *st)
{
	size_t len;
	char *have;
	int fd, same;

	if ((uint64_t)st->st_size != it->len)
		return 0;
	if ((fd = am_open_beneath(f->home_fd, it->path, O_RDONLY | O_NONBLOCK, 0)) < 0)
		return -1;
	have = am_read_fd(fd, it->len + 1, &len);
	close(fd);
	if (have == NULL)
		return -1;
	same = len == it->len && memcmp(have, it->text, len) == 0;
	free(have);
	return same;
}

static int
look_at_file(struct am_files *f, struct am_item *it)
{
	struct stat st;
	int there = look(f, it->path, &st), same;

	if (there == 0)
		look_at_parent(f, it->path);
	if (it->source != NULL && load_source(f, it) != 0)
		return -1;
	if (there <= 0 || it->text == NULL)
		return 0;
	it->state = AM_DIFFERS;
	if (S_ISLNK(st.st_mode))
		f->refuse(it->path, "it is a symbolic link; remove it first");
	else if (!S_ISREG(st.st_mode))
		f->refuse(it->path, "it is not a regular file; remove it first");
	else if (!it->has_mode || (st.st_mode & 07777) == it->mode) {
		if ((same = same_bytes(f, it, &st)) < 0)
			return -1;
		if (same)
			it->state = AM_PRESENT;
	}
	return 0;
}

static void
look_at_directory(struct am_files *f, struct am_item *it)
{
	struct stat st;
	int there = look(f, it->path, &st);

	if (there == 0 && strcmp(it->path, ".") != 0)
		look_at_parent(f, it->path);
	if (it->has_owner && geteuid() != 0 && (it->uid != geteuid() || it->gid != getegid()))
		f->refuse(it->path, "only root can give it to another owner");
	if (there <= 0)
		return;
	it->state = it->has_owner && (st.st_uid != it->uid || st.st_gid != it->gid) ? AM_DIFFERS : AM_PRESENT;
	if (S_ISLNK(st.st_mode))
		f->refuse(it->path, "it is a symbolic link; remove it first");
	else if (!S_ISDIR(st.st_mode))
		f->refuse(it->path, "it is not a directory; remove it first");
}

static void
look_at_removal(struct am_files *f, struct am_item *it)
{
	struct stat st;

	if (look(f, it->path, &st) <= 0)
		return;
	it->state = AM_PRESENT;
	if (strcmp(it->remove, "any") == 0)
		return;
	if (strcmp(it->remove, "file") == 0 ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode))
		f->refuse(it->path, S_ISLNK(st.st_mode) ? "it is a symbolic link; remove it by hand" :
		    S_ISDIR(st.st_mode) ? "it is a directory; remove it by hand" :
		    "it is of another kind than it should be; remove it by hand");
}

int
am_files_look(struct am_files *f, const char **where)
{
	for (size_t i = 0; i < f->count; i++) {
		struct am_item *it = &f->items[i];

		*where = it->path;
		switch (it->kind) {
		case AM_REMOVE:
			look_at_removal(f, it);
			break;
		case AM_DIRECTORY:
			look_at_directory(f, it);
			break;
		case AM_FILE:
			if (look_at_file(f, it) != 0)
				return -1;
			break;
		case AM_BEFORE: case AM_NOTE:
			break;
		}
	}
	return 0;
}
