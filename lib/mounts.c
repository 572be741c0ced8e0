#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "mountinfo.h"
#include "mounts.h"
#include "path.h"

static jv
real_path(const char *path)
{
	char *real = realpath(path, NULL);
	jv v = jv_string(real == NULL ? path : real);

	free(real);
	return v;
}

jv
am_mount_row(const char *source, int writable)
{
	jv row = am_set(jv_object(), "source", real_path(source));

	return am_set(row, "writable", writable ? jv_true() : jv_false());
}

static int
refuse(struct am_mounts *m, const char *fmt, const char *a, const char *b)
{
	snprintf(m->why, sizeof m->why, fmt, a, b);
	return -1;
}

/* ---- docker's list ---- */

static int
from_list(struct am_mounts *m, jv list, int binds_only)
{
	jv_array_foreach(list, i, e) {
		const char *type = am_str(e, "Type"), *target = am_str(e, "Destination"), *source = am_str(e, "Source");
		jv rw = jv_get_kind(e) == JV_KIND_OBJECT ? jv_object_get(jv_copy(e), jv_string("RW")) : jv_invalid();
		jv_kind kind = jv_get_kind(rw);
		int rc = 0;

		jv_free(rw);
		if (type == NULL || target == NULL)
			rc = refuse(m, "a mount in the list has no %s", type == NULL ? "Type" : "Destination", "");
		else if (binds_only && strcmp(type, "bind") != 0)
			;
		else if (kind != JV_KIND_TRUE && kind != JV_KIND_FALSE)
			rc = refuse(m, "the mount at %s does not say whether it is writable (RW)", am_quotes(target), "");
		else if (strcmp(type, "bind") == 0 && source == NULL)
			rc = refuse(m, "the bind at %s has no Source", am_quotes(target), "");
		else if (am_has(m->rows, target))
			rc = refuse(m, "two mounts at %s", am_quotes(target), "");
		else {
			m->rows = am_set(m->rows, target, am_mount_row(source == NULL ? type : source, kind == JV_KIND_TRUE));
			if (strcmp(type, "bind") == 0)
				m->shared = am_set(m->shared, target, real_path(source));
		}
		jv_free(e);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* ---- a process's mount table ---- */

/* Is what the process sees at target the directory source? 1, 0, or -1 with why set. */
static int
same_directory(struct am_mounts *m, long pid, const char *target, const char *source)
{
	struct stat in, out;
	char *path;
	int rc;

	if (stat(source, &out) != 0)
		return errno == ENOENT || errno == ENOTDIR ? 0
		    : refuse(m, "%s: %s", am_quotes(source), strerror(errno));
	if (asprintf(&path, "/proc/%ld/root%s", pid, target) < 0)
		abort();
	rc = stat(path, &in);
	free(path);
	if (rc != 0)
		return refuse(m, "the directory at %s cannot be looked at through its process: %s",
		    am_quotes(target), strerror(errno));
	return in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

/* What every embedded sandbox has of its own, and how it must be. */
enum { READ_ONLY = 1, BELOW = 2, OWN = 4 };	/* BELOW: so may be what lies there; OWN: not the host's of that name */

static const struct {
	const char *target;
	int how;
} image[] = {
	{ "/", READ_ONLY | OWN }, { "/.amap", READ_ONLY | BELOW },
	{ "/bin", READ_ONLY }, { "/lib", READ_ONLY }, { "/lib32", READ_ONLY }, { "/lib64", READ_ONLY },
	{ "/libx32", READ_ONLY }, { "/sbin", READ_ONLY }, { "/usr", READ_ONLY | BELOW },
	{ "/etc", READ_ONLY | OWN }, { "/etc/alternatives", READ_ONLY }, { "/etc/ld.so.cache", READ_ONLY },
	{ "/var/log", READ_ONLY },
	{ "/dev", OWN }, { "/dev/pts", OWN }, { "/dev/shm", OWN }, { "/proc", OWN }, { "/tmp", OWN }, { "/sandbox", 0 },
};

/* A device that everybody has, bound from the host's /dev. */
static int
is_device(const struct am_mount *k)
{
	static const char *const names[] = { "null", "zero", "full", "random", "urandom", "tty", "console" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strncmp(k->target, "/dev/", 5) == 0 && strcmp(k->target + 5, names[i]) == 0)
			return strcmp(k->root + (k->root[0] == '/'), names[i]) == 0 || strcmp(names[i], "console") == 0;
	return 0;
}

/* 1 when a mount belongs to the sandbox's image, 0 when it does not, -1 with why set. */
static int
is_image(struct am_mounts *m, struct am_mountinfo *mi, const struct am_mount *k, long pid)
{
	const struct am_mount *proc;
	int same;

	if (is_device(k))
		return 1;
	if (am_path_under(k->target, "/proc") && strcmp(k->target, "/proc") != 0) {
		proc = am_mountinfo_at(mi, "/proc");	/* parts of the same, made read-only */
		return proc != NULL && strcmp(proc->device, k->device) == 0;
	}
	for (size_t i = 0; i < sizeof image / sizeof image[0]; i++) {
		if (strcmp(k->target, image[i].target) != 0 &&
		    ((image[i].how & BELOW) == 0 || !am_path_under(k->target, image[i].target)))
			continue;
		if ((image[i].how & READ_ONLY) != 0 && !k->read_only)
			return 0;
		if ((image[i].how & OWN) == 0)
			return 1;
		same = same_directory(m, pid, k->target, k->target);
		return same < 0 ? -1 : !same;
	}
	return 0;
}

/* A mount that shows: a row, unless it is the image's, and what it is for whoever may write there. */
static void
keep(struct am_mounts *m, const struct am_mount *k, const char *source, int known)
{
	jv id = jv_string_fmt("%s %s", k->device, k->root), row = jv_object();

	if (source != NULL || !known || (!k->read_only && !is_device(k) && !am_path_under(k->target, "/proc")))
		m->shared = am_set(m->shared, k->target, jv_copy(id));
	if (source != NULL || !known) {
		row = am_set(row, "source", source != NULL && known ? real_path(source)
		    : jv_string_fmt("another directory (device and path there: %s)", jv_string_value(id)));
		row = am_set(row, "writable", k->read_only ? jv_false() : jv_true());
		m->rows = am_set(m->rows, k->target, jv_copy(row));
	}
	jv_free(row);
	jv_free(id);
}

static int
from_table(struct am_mounts *m, const char *text, long pid, jv wanted)
{
	struct am_mountinfo mi;
	int rc = am_mountinfo_parse(&mi, text);

	for (size_t i = 0; i < mi.n && rc == 0; i++) {
		const struct am_mount *k = &mi.v[i], *top = am_mountinfo_at(&mi, k->target);
		const char *source = am_str(wanted, k->target);
		int known = 0;		/* the wanted source, or part of the image */

		if (top == NULL)
			rc = -1;
		if (top != k)
			continue;	/* covered by a later one */
		known = source != NULL ? same_directory(m, pid, k->target, source) : is_image(m, &mi, k, pid);
		if (known < 0)
			rc = -1;
		else
			keep(m, k, source, known);
	}
	if (rc != 0 && m->why[0] == '\0')
		refuse(m, "%s", mi.why, "");
	am_mountinfo_free(&mi);
	return rc;
}

/* A user namespace that gives ids another meaning inside makes every owner a lie: shown as a row. */
static void
look_at_ids(struct am_mounts *m, long pid)
{
	char path[64], *text;
	size_t len;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/uid_map", pid);
	if (pid <= 0 || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return;			/* no evidence either way */
	if ((text = am_read_fd(fd, 65536, &len)) != NULL) {
		unsigned inside, outside, count;
		int n, identity = 1;

		for (const char *p = text; sscanf(p, "%u %u %u%n", &inside, &outside, &count, &n) == 3; p += n)
			identity &= inside == outside;
		if (!identity)
			m->rows = am_set(m->rows, "uid_map", jv_string(text));
		free(text);
	}
	close(fd);
}

static long
process_of(jv entry)
{
	jv state = am_get(entry, "State", JV_KIND_OBJECT), pid = am_get(state, "Pid", JV_KIND_NUMBER);
	long process = jv_is_valid(pid) ? (long)jv_number_value(pid) : 0;

	jv_free(pid);
	jv_free(state);
	return process;
}

int
am_is_embedded(jv entry)
{
	return am_has(entry, "Mountinfo");
}

const char *
am_networks(jv entry, char *seen, size_t size)
{
	char path[64], line[512], name[32];
	long process = process_of(entry);
	FILE *fp;

	snprintf(path, sizeof path, "/proc/%ld/net/dev", process);
	if (process <= 0 || (fp = fopen(path, "re")) == NULL)
		return NULL;
	seen[0] = '\0';
	while (fgets(line, sizeof line, fp) != NULL)
		if (strchr(line, ':') != NULL && sscanf(line, " %31[^: \n]", name) == 1 && strcmp(name, "lo") != 0) {
			strlcat(seen, seen[0] == '\0' ? "" : " ", size);
			strlcat(seen, name, size);
		}
	fclose(fp);
	return seen[0] == '\0' ? "none" : seen;
}

int
am_mounts_read(struct am_mounts *m, jv entry, jv wanted, int binds_only)
{
	const char *table = am_str(entry, "Mountinfo");
	long process = process_of(entry);
	jv list = jv_invalid();
	int rc;

	memset(m, 0, sizeof *m);
	m->rows = jv_object();
	m->shared = jv_object();
	if (am_is_embedded(entry)) {
		if (table == NULL)
			rc = refuse(m, "its mount table is no text", "", "");
		else if (process <= 0)
			rc = refuse(m, "it has no process", "", "");
		else
			rc = from_table(m, table, process, wanted);
	} else if (!am_has(entry, "Mounts")) {
		rc = refuse(m, "docker inspect shows no list of mounts", "", "");
	} else {
		list = jv_object_get(jv_copy(entry), jv_string("Mounts"));
		rc = jv_get_kind(list) == JV_KIND_NULL ? 0
		    : jv_get_kind(list) == JV_KIND_ARRAY ? from_list(m, list, binds_only)
		    : refuse(m, "docker inspect shows no list of mounts", "", "");
	}
	if (rc == 0)
		look_at_ids(m, process);
	jv_free(list);
	return rc;
}

void
am_mounts_free(struct am_mounts *m)
{
	jv_free(m->rows);
	jv_free(m->shared);
}
