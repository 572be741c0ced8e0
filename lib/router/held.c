#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "router/held.h"
#include "router/log.h"

#define KEPT_FACTOR 4		/* sidecar bytes kept for one instance: this often the limit of one request */

/* ---- how much is kept ---- */

static long long
size_below(int dir, const char *name)
{
	int fd = am_open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	long long sum = 0;
	struct stat st;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(d)) != NULL)
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			sum += st.st_size;
	closedir(d);
	return sum;
}

static int
is_sidecar(const char *name)
{
	size_t len = strlen(name), n = strlen(".attachments");

	return len > n && strcmp(name + len - n, ".attachments") == 0;
}

static long long
kept(int held)
{
	int fd = openat(held, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	long long sum = 0;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(d)) != NULL)
		if (is_sidecar(e->d_name))
			sum += size_below(held, e->d_name);
	closedir(d);
	return sum;
}

/* ---- keeping ---- */

static int
keep_blobs(const struct amr_turn *t, const struct amr_request *q, int held)
{
	char name[AM_REQ_ID_MAX + 32], number[24];
	long long size = 0;
	int dir, rc = 0, saved;

	for (size_t i = 0; i < q->n_blobs; i++)
		size += (long long)q->blobs[i].len;
	if (q->n_blobs == 0)
		return 0;
	if (size + kept(held) > KEPT_FACTOR * (long long)t->r->conf->total_max) {
		amr_log(AM_WARNING, ".outbound", "held request %s of %s: its attachments are not kept, enough are kept already", q->id,
		    t->in->name);
		return 0;
	}
	snprintf(name, sizeof name, "req-%s.attachments", q->id);
	if ((dir = amr_dir(held, name)) < 0)
		return -1;
	for (size_t i = 0; i < q->n_blobs && rc == 0; i++) {
		snprintf(number, sizeof number, "%zu", i);
		rc = am_publish(dir, number, q->blobs[i].bytes, q->blobs[i].len, 0600);
	}
	saved = errno;
	close(dir);
	if (rc != 0)
		amr_remove_tree(held, name);
	errno = saved;
	return rc;
}

int
amr_hold(const struct amr_turn *t, const struct amr_request *q)
{
	int held = amr_state_dir(t->r, t->in->name, "held"), rc = -1, saved;
	char name[AM_REQ_ID_MAX + 16];

	snprintf(name, sizeof name, "req-%s.json", q->id);
	if (held >= 0 && (rc = keep_blobs(t, q, held)) == 0)
		rc = am_publish(held, name, q->bytes, q->len, 0600);
	saved = errno;
	if (rc != 0)
		amr_log(AM_WARNING, ".outbound", "no copy of held request %s of %s: %s", q->id, t->in->name, strerror(saved));
	if (held >= 0)
		close(held);
	errno = saved;
	return rc;
}

/* ---- counting ---- */

void
amr_refresh_held(const struct amr_router *r, struct amr_inst *in)
{
	char path[128], id[AM_REQ_ID_MAX + 1];
	struct amr_version now = { 0 };
	struct dirent *e;
	struct stat st;
	int fd;
	DIR *d;

	snprintf(path, sizeof path, "%s/held", in->name);
	fd = am_open_beneath(r->state, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0 && fstat(fd, &st) == 0)
		now = amr_version_of(&st);
	if (amr_same_version(&now, &in->held_version) || (d = fd < 0 ? NULL : fdopendir(fd)) == NULL) {
		if (fd >= 0)
			close(fd);
		else
			in->held = in->held_oldest = 0;
		return;
	}
	in->held = in->held_oldest = 0;
	while ((e = readdir(d)) != NULL) {
		if (!amr_is_request_name(e->d_name, id) || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (in->held++ == 0 || st.st_mtim.tv_sec < in->held_oldest)
			in->held_oldest = st.st_mtim.tv_sec;
	}
	closedir(d);
	in->held_version = now;
}
