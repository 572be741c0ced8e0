#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "../id.h"
#include "../path.h"
#include "../tree.h"
#include "state.h"

#define JSON_FILE_MAX (4u << 20)
#define RUN_MAX 65536
#define STATE_PATH_MAX 3800	/* the rest of PATH_MAX is for what lies below */

/* The path, or "" for one that is too long: nothing is ever cut to another's name. */
static const char *
joined(const char *base, const char *rest)
{
	static char path[STATE_PATH_MAX + 1];

	if (strlcpy(path, base, sizeof path) >= sizeof path || strlcat(path, rest, sizeof path) >= sizeof path)
		path[0] = '\0';
	return path;
}

const char *
ams_state_path(void)
{
	const char *base;

	if ((base = getenv("AMAP_SANDBOX_DIR")) != NULL && base[0] != '\0')
		return joined(base, "");
	if ((base = getenv("XDG_STATE_HOME")) != NULL && base[0] == '/')
		return joined(base, "/amap-sandbox");
	if ((base = getenv("HOME")) != NULL && base[0] == '/' && geteuid() != 0)
		return joined(base, "/.local/state/amap-sandbox");
	return geteuid() == 0 ? joined("/var/lib/amap-sandbox", "") : NULL;
}

static int
make_path(const char *path)
{
	char part[4096];

	for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		if (mkdir(part, 0700) != 0 && errno != EEXIST)
			return -1;
	}
	return mkdir(path, 0700) != 0 && errno != EEXIST ? -1 : 0;
}

int
ams_state_open(void)
{
	static const char *const parts[] = { AMS_SANDBOXES, AMS_SERVICES, "etc", "providers", "profiles", "trash" };
	const char *path = ams_state_path();
	struct stat st;
	int fd;

	if (path == NULL) {
		am_warnx("state directory: neither AMAP_SANDBOX_DIR nor XDG_STATE_HOME nor HOME is set: set one");
		return -1;
	}
	if (path[0] == '\0') {
		am_warnx("state directory: a path longer than %d bytes: set AMAP_SANDBOX_DIR to a shorter one", STATE_PATH_MAX);
		return -1;
	}
	if (path[0] != '/') {
		am_warnx("AMAP_SANDBOX_DIR: %s: not an absolute path", am_quotes(path));
		return -1;
	}
	if (make_path(path) != 0 || (fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		am_warn("%s", am_quotes(path));
		return -1;
	}
	if (fstat(fd, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
		am_warnx("%s: must belong to you with mode 0700: another could change what runs", am_quotes(path));
		close(fd);
		return -1;
	}
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (mkdirat(fd, parts[i], 0700) != 0 && errno != EEXIST) {
			am_warn("%s/%s", am_quotes(path), parts[i]);
			close(fd);
			return -1;
		}
	}
	return fd;
}

const char *
ams_sandbox_key(const char *workspace, const char *name)
{
	static char key[64];

	/* too long for any sandbox: never cut to the key of another one */
	if (snprintf(key, sizeof key, "%s--%s", workspace, name) >= (int)sizeof key)
		key[0] = '\0';
	return key;
}

/* KIND/KEY, where KEY can only be one name; NULL with ENOENT. Static. */
static const char *
unit_path(const char *kind, const char *key)
{
	static char path[128];

	if (key[0] != '\0' && key[0] != '.' && strchr(key, '/') == NULL &&
	    snprintf(path, sizeof path, "%s/%s", kind, key) < (int)sizeof path)
		return path;
	errno = ENOENT;
	return NULL;
}

int
ams_unit_open(int state, const char *kind, const char *key)
{
	const char *path = unit_path(kind, key);

	if (path == NULL)
		return -1;
	return am_open_beneath(state, path, O_RDONLY | O_DIRECTORY, 0);
}

/*
 * A directory in trash/ is in use while its maker or remover lives: it holds a
 * lock on trash/ itself, shared, to its end. Whoever gets it alone may take
 * away what is there.
 */
static int
hold_trash(int state)
{
	static int held = -1;

	if (held < 0 && (held = am_open_beneath(state, "trash", O_RDONLY | O_DIRECTORY, 0)) >= 0)
		flock(held, LOCK_SH);
	return held < 0 ? -1 : 0;
}

int
ams_unit_new(int state, char temp[32])
{
	char random[17];

	if (hold_trash(state) != 0)
		return -1;
	am_random_hex(random, 8);
	snprintf(temp, 32, "trash/new-%s", random);
	if (mkdirat(state, temp, 0700) != 0)
		return -1;
	return am_open_beneath(state, temp, O_RDONLY | O_DIRECTORY, 0);
}

int
ams_unit_publish(int state, const char *temp, const char *kind, const char *key)
{
	const char *path = unit_path(kind, key);

	return path == NULL ? -1 : renameat2(state, temp, state, path, RENAME_NOREPLACE);
}

void
ams_unit_discard(int state, const char *temp)
{
	am_remove(state, temp);
}

int
ams_unit_remove(int state, const char *kind, const char *key)
{
	const char *path = unit_path(kind, key);
	char temp[32], random[17];

	if (path == NULL || hold_trash(state) != 0)
		return -1;
	am_random_hex(random, 8);
	snprintf(temp, sizeof temp, "trash/old-%s", random);
	if (renameat(state, path, state, temp) != 0)
		return -1;
	return am_remove(state, temp);
}

void
ams_state_sweep(int state)
{
	int fd = am_open_beneath(state, "trash", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		am_empty(fd);
	close(fd);
}

/* ---- JSON files ---- */

jv
ams_unit_read(int unit, const char *name)
{
	return am_json_object_at(unit, name, JSON_FILE_MAX);
}

/*
 * On a full disk: in place, where no new block is needed. What was longer ends
 * in spaces. A reader that comes in the midst sees what is no JSON, which is
 * nobody's state.
 */
static int
write_over(int unit, const char *name, const char *text, size_t len)
{
	int fd = openat(unit, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC), rc = -1;
	struct stat st;
	char *padded;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= RUN_MAX) {
		size_t size = len > (size_t)st.st_size ? len : (size_t)st.st_size;

		if ((padded = malloc(size)) == NULL)
			abort();
		memset(padded, ' ', size);
		memcpy(padded, text, len);
		rc = am_write_all(fd, padded, size);
		free(padded);
	}
	close(fd);
	return rc;
}

int
ams_unit_write(int unit, const char *name, jv v, int durable)
{
	size_t len;
	char *text = am_json_text(v, AM_COMPACT, &len), temp[64];
	int fd, rc;

	jv_free(v);
	if (durable) {
		rc = am_publish(unit, name, text, len, 0600);
	} else {
		snprintf(temp, sizeof temp, ".%.40s.tmp", name);
		fd = openat(unit, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		rc = fd < 0 ? -1 : am_write_all(fd, text, len);
		if (fd >= 0)
			close(fd);
		if (rc == 0)
			rc = renameat(unit, temp, unit, name);
		if (rc != 0) {
			unlinkat(unit, temp, 0);
			rc = write_over(unit, name, text, len);
		}
	}
	free(text);
	return rc;
}

int
ams_unit_put(int unit, const char *name, const void *bytes, size_t len)
{
	int fd = openat(unit, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return -1;
	rc = am_write_all(fd, bytes, len);
	return close(fd) != 0 ? -1 : rc;
}

void
ams_unit_sync(int unit)
{
	static const char *const paths[] = { "record.json", "policy.yaml", ".", ".." };

	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		int fd = openat(unit, paths[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0) {
			fsync(fd);
			close(fd);
		}
	}
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in KIND/, sorted, from malloc, NULL-ended; NULL with errno. */
static char **
names_in(int state, const char *kind)
{
	char **keys = calloc(1, sizeof *keys);
	size_t n = 0;
	int dir = am_open_beneath(state, kind, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *e;

	if (d == NULL || keys == NULL) {
		free(keys);
		return NULL;
	}
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		if ((keys = realloc(keys, (n + 2) * sizeof *keys)) == NULL || (keys[n++] = strdup(e->d_name)) == NULL)
			abort();
		keys[n] = NULL;
	}
	closedir(d);
	qsort(keys, n, sizeof *keys, compare);
	return keys;
}

void
ams_state_files(int state, const char *kind, jv *list)
{
	char **keys = names_in(state, kind);
	int dir = am_open_beneath(state, kind, O_RDONLY | O_DIRECTORY, 0);

	for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
		jv v = ams_unit_read(dir, keys[i]);

		if (jv_is_valid(v))
			*list = jv_array_append(*list, v);
		free(keys[i]);
	}
	free(keys);
	if (dir >= 0)
		close(dir);
}

int
ams_unit_each(int state, const char *kind, int (*each)(int, const char *, void *), void *arg)
{
	char **keys = names_in(state, kind);
	int rc = 0;

	if (keys == NULL)
		return -1;
	for (size_t i = 0; keys[i] != NULL; i++) {
		int unit = rc == 0 ? ams_unit_open(state, kind, keys[i]) : -1;

		if (unit >= 0) {	/* one that is gone by now is no longer ours to tell of */
			rc = each(unit, keys[i], arg);
			close(unit);
		}
		free(keys[i]);
	}
	free(keys);
	return rc;
}
