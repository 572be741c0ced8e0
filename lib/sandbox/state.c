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
#include "state.h"

#define JSON_FILE_MAX (4u << 20)

static const char *const phases[] = {
	"Provisioning", "Ready", "Completed", "Error", "Stopping", "Stopped", "Starting", "Unknown", NULL
};

const char *
ams_state_path(void)
{
	static char path[4096];
	const char *base;

	if ((base = getenv("AMAP_SANDBOX_DIR")) != NULL && base[0] != '\0')
		snprintf(path, sizeof path, "%s", base);
	else if ((base = getenv("XDG_STATE_HOME")) != NULL && base[0] == '/')
		snprintf(path, sizeof path, "%s/amap-sandbox", base);
	else if ((base = getenv("HOME")) != NULL && base[0] == '/' && geteuid() != 0)
		snprintf(path, sizeof path, "%s/.local/state/amap-sandbox", base);
	else if (geteuid() == 0)
		snprintf(path, sizeof path, "/var/lib/amap-sandbox");
	else
		return NULL;
	return path;
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

	snprintf(key, sizeof key, "%.19s--%.19s", workspace, name);
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

/* ---- removal ---- */

/*
 * Empties a directory that an agent filled: any depth, any mode, any name.
 * Directories inside are moved up before they are emptied, so neither the
 * stack nor the number of descriptors grows with the depth.
 */
static int
hoist(int top, int sub, unsigned long *serial)
{
	DIR *d = fdopendir(dup(sub));
	struct dirent *e;
	char name[32];
	int rc = 0;

	if (d == NULL)
		return -1;
	rewinddir(d);
	while (rc == 0 && (errno = 0, e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(sub, e->d_name, 0) == 0)
			continue;
		/* moving a directory writes its "..": it must be writable itself */
		fchmodat(sub, e->d_name, 0700, 0);
		snprintf(name, sizeof name, ".hoisted-%lu", (*serial)++);
		rc = renameat2(sub, e->d_name, top, name, RENAME_NOREPLACE);
		if (rc != 0 && errno == EEXIST)
			rc = 0;		/* the next round tries another name */
	}
	if (rc == 0 && errno != 0)
		rc = -1;
	closedir(d);
	return rc;
}

static int
empty(int top)
{
	unsigned long serial = 0;
	int found = 1, rc = 0;

	while (rc == 0 && found) {
		DIR *d = fdopendir(dup(top));
		struct dirent *e;

		if (d == NULL)
			return -1;
		rewinddir(d);
		found = 0;
		while (rc == 0 && (e = readdir(d)) != NULL) {
			int sub;

			if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
				continue;
			found = 1;
			if (unlinkat(top, e->d_name, 0) == 0 || unlinkat(top, e->d_name, AT_REMOVEDIR) == 0)
				continue;
			fchmodat(top, e->d_name, 0700, 0);
			if ((sub = openat(top, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
				rc = -1;
				break;
			}
			rc = hoist(top, sub, &serial);
			close(sub);
			if (rc == 0 && unlinkat(top, e->d_name, AT_REMOVEDIR) != 0 && errno != ENOTEMPTY)
				rc = -1;
		}
		closedir(d);
	}
	return rc;
}

static int
remove_tree(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	rc = empty(fd);
	close(fd);
	return rc == 0 ? unlinkat(at, name, AT_REMOVEDIR) : -1;
}

void
ams_unit_discard(int state, const char *temp)
{
	remove_tree(state, temp);
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
	return remove_tree(state, temp);
}

void
ams_state_sweep(int state)
{
	int fd = am_open_beneath(state, "trash", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		empty(fd);
	close(fd);
}

/* ---- JSON files ---- */

jv
ams_unit_read(int unit, const char *name)
{
	size_t len;
	char *text = am_read_regular(unit, name, JSON_FILE_MAX, &len);
	jv v;

	if (text == NULL)
		return jv_invalid();
	v = am_json_parse(text, len);
	free(text);
	if (jv_get_kind(v) != JV_KIND_OBJECT) {
		jv_free(v);
		return jv_invalid();
	}
	return v;
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

/* ---- locks ---- */

int
ams_unit_claim(int state, const char *kind, const char *key, int unit)
{
	/* a description of its own, so that a supervisor forked later does not hold it */
	int fd = openat(unit, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), named;
	struct stat a, b;

	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX) != 0)
		if (errno != EINTR) {
			close(fd);
			return -1;
		}
	if (key == NULL)
		return fd;
	named = ams_unit_open(state, kind, key);
	if (named >= 0 && fstat(named, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
		close(named);
		return fd;
	}
	if (named >= 0)
		close(named);
	close(fd);
	errno = ENOENT;
	return -1;
}

static int
is_claimed(int unit)
{
	int fd = openat(unit, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (fd < 0)
		return 0;
	rc = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	close(fd);
	return rc;
}

int
ams_unit_lock(int unit)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = openat(unit, "record.json", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && fcntl(fd, F_SETLK, &whole) == 0 ? fd : -1;
}

/* The process that holds the lock; none when there is none. */
static void
lock_holder(int unit, struct ams_proc *p)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = openat(unit, "record.json", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	memset(p, 0, sizeof *p);
	if (fd < 0)
		return;
	if (fcntl(fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK && ams_proc_look(whole.l_pid, p, NULL) != 0)
		memset(p, 0, sizeof *p);
	close(fd);
}

/* ---- what runs ---- */

static double
number(jv object, const char *key, double absent)
{
	jv v = am_get(object, key, JV_KIND_NUMBER);

	if (jv_is_valid(v))
		absent = jv_number_value(v);
	jv_free(v);
	return absent;
}

static void
text(jv object, const char *key, char *out, size_t size)
{
	const char *s = am_str(object, key);

	snprintf(out, size, "%s", s != NULL ? s : "");
}

static void
process(jv run, const char *key, struct ams_proc *p)
{
	jv v = am_get(run, key, JV_KIND_OBJECT);
	const char *start = am_str(v, "start");

	p->pid = (pid_t)number(v, "pid", 0);
	p->start = start != NULL ? strtoull(start, NULL, 10) : 0;
	jv_free(v);
}

static jv
process_json(const struct ams_proc *p)
{
	char start[32];

	snprintf(start, sizeof start, "%llu", p->start);
	return am_set_str(am_set(jv_object(), "pid", jv_number(p->pid)), "start", start);
}

void
ams_unit_run(int unit, struct ams_run *run)
{
	jv v = ams_unit_read(unit, "run.json");
	char boot[37];
	const char *s;

	memset(run, 0, sizeof *run);
	run->exit_code = -1;
	run->phase = "Unknown";
	lock_holder(unit, &run->supervisor);
	if (!jv_is_valid(v)) {
		/* nothing has run yet: its maker is at work, or died over it */
		jv_free(v);
		run->orphaned = run->supervisor.pid == 0;
		run->phase = !run->orphaned || is_claimed(unit) ? "Provisioning" : "Error";
		snprintf(run->reason, sizeof run->reason, "%s", ams_phase_is(run, "Error") ? "ContainerCreateFailed" : "Starting");
		return;
	}
	process(v, "init", &run->init);
	process(v, "main", &run->main);
	if ((s = am_str(v, "phase")) != NULL)
		for (size_t i = 0; phases[i] != NULL; i++)
			if (strcmp(phases[i], s) == 0)
				run->phase = phases[i];
	text(v, "reason", run->reason, sizeof run->reason);
	text(v, "message", run->message, sizeof run->message);
	text(v, "instance", run->instance, sizeof run->instance);
	run->exit_code = (int)number(v, "exit_code", -1);
	run->restarts = (int)number(v, "restarts", 0);
	run->started_ms = (long long)number(v, "started_ms", 0);
	run->next_restart_ms = (long long)number(v, "next_restart_ms", 0);
	ams_boot_id(boot);
	s = am_str(v, "boot_id");
	if (s == NULL || strcmp(s, boot) != 0 || run->supervisor.pid == 0) {
		int same_boot = s != NULL && strcmp(s, boot) == 0;

		memset(&run->init, 0, sizeof run->init);
		memset(&run->main, 0, sizeof run->main);
		run->next_restart_ms = 0;
		if (!ams_phase_is(run, "Stopped") && !ams_phase_is(run, "Completed") && !ams_phase_is(run, "Error")) {
			run->phase = "Error";
			run->orphaned = same_boot;
			snprintf(run->reason, sizeof run->reason, "%s", same_boot ? "ContainerStopped" : "ContainerRuntimeRestart");
			snprintf(run->message, sizeof run->message, "%s",
			    same_boot ? "its supervisor is gone" : "the host was restarted");
		}
	}
	jv_free(v);
}

int
ams_unit_set_run(int unit, const struct ams_run *run)
{
	char boot[37];
	jv v = jv_object();

	ams_boot_id(boot);
	v = am_set_str(v, "boot_id", boot);
	v = am_set(v, "init", process_json(&run->init));
	v = am_set(v, "main", process_json(&run->main));
	v = am_set_str(v, "phase", run->phase);
	v = am_set_str(v, "reason", run->reason);
	v = am_set_str(v, "message", run->message);
	v = am_set_str(v, "instance", run->instance);
	v = am_set(v, "exit_code", run->exit_code < 0 ? jv_null() : jv_number(run->exit_code));
	v = am_set(v, "restarts", jv_number(run->restarts));
	v = am_set(v, "started_ms", jv_number((double)run->started_ms));
	v = am_set(v, "next_restart_ms", jv_number((double)run->next_restart_ms));
	return ams_unit_write(unit, "run.json", v, 0);
}

int
ams_phase_is(const struct ams_run *run, const char *phase)
{
	return strcmp(run->phase, phase) == 0;
}
