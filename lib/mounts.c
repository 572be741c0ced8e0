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

/* What every embedded sandbox has of its own; each but those that say so must be read-only. */
static const struct {
	const char *target;
	int writable, below;	/* may be; so may what lies below it */
} own[] = {
	{ "/", 1, 0 }, { "/.amap", 0, 1 },
	{ "/dev", 1, 1 }, { "/proc", 1, 1 }, { "/sandbox", 1, 0 }, { "/tmp", 1, 0 },
	{ "/bin", 0, 0 }, { "/etc", 0, 1 }, { "/lib", 0, 0 }, { "/lib32", 0, 0 }, { "/lib64", 0, 0 },
	{ "/libx32", 0, 0 }, { "/sbin", 0, 0 }, { "/usr", 0, 1 }, { "/var/log", 0, 0 },
};

static int
is_own(const struct am_mount *k)
{
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if ((strcmp(k->target, own[i].target) == 0 || (own[i].below && am_path_under(k->target, own[i].target))) &&
		    (own[i].writable || k->read_only))
			return 1;
	return 0;
}

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

static int
from_table(struct am_mounts *m, const char *text, long pid, jv wanted)
{
	struct am_mountinfo mi;
	int rc = am_mountinfo_parse(&mi, text);

	for (size_t i = 0; i < mi.n && rc == 0; i++) {
		const struct am_mount *k = &mi.v[i], *top = am_mountinfo_at(&mi, k->target);
		const char *source = am_str(wanted, k->target);
		jv row = jv_object(), id = jv_string_fmt("%s %s", k->device, k->root);
		int same = 0;

		if (top == NULL)
			rc = -1;
		else if (top == k && source != NULL && (same = same_directory(m, pid, k->target, source)) < 0)
			rc = -1;
		if (rc == 0 && top == k && !k->read_only && !am_path_under(k->target, "/dev") &&
		    !am_path_under(k->target, "/proc"))
			m->shared = am_set(m->shared, k->target, jv_copy(id));
		if (rc == 0 && top == k && (source != NULL || !is_own(k))) {
			row = am_set(row, "source", same ? real_path(source)
			    : jv_string_fmt("another directory (device and path there: %s)", jv_string_value(id)));
			row = am_set(row, "writable", k->read_only ? jv_false() : jv_true());
			m->rows = am_set(m->rows, k->target, jv_copy(row));
			m->shared = am_set(m->shared, k->target, jv_copy(id));
		}
		jv_free(row);
		jv_free(id);
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
