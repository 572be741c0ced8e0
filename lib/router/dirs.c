#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "router/router.h"

/* Whoever wrote below a name chooses how much lies there: what exceeds this stays. */
#define REMOVE_DEPTH 16
#define REMOVE_ENTRIES 4096

int
amr_dir(int at, const char *path)
{
	int fd = am_open_beneath(at, path, O_RDONLY | O_DIRECTORY, 0);
	char part[512];

	if (fd >= 0 || errno != ENOENT)
		return fd;
	for (const char *p = path; p != NULL; ) {
		const char *slash = strchr(p, '/');
		size_t n = slash == NULL ? strlen(path) : (size_t)(slash - path);

		if (n >= sizeof part) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, n);
		part[n] = '\0';
		if (am_mkdir_beneath(at, part) != 0)
			return -1;
		p = slash == NULL ? NULL : slash + 1;
	}
	return am_open_beneath(at, path, O_RDONLY | O_DIRECTORY, 0);
}

int
amr_state_dir(const struct amr_router *r, const char *instance, const char *sub)
{
	char path[256];

	snprintf(path, sizeof path, sub[0] != '\0' ? "%s/%s" : "%s", instance, sub);
	return amr_dir(r->state, path);
}

/* ---- what a turn uses again and again ---- */

static struct used {
	char whose[65], lane, leaf[24];		/* lane 0: the state's */
	int fd;
	unsigned long when;
} used[16];
static size_t n_used;

/*
 * Borrowed. The one that was not used for longest goes, so what was just asked
 * for stays: a placement needs four at the same time.
 */
static struct used *
use(const char *whose, char lane, const char *leaf)
{
	static unsigned long clock;
	struct used *u = used;
	size_t i;

	for (i = 0; i < n_used; i++) {
		if (used[i].lane == lane && strcmp(used[i].leaf, leaf) == 0 && strcmp(used[i].whose, whose) == 0) {
			used[i].when = ++clock;
			return &used[i];
		}
		if (used[i].when < u->when)
			u = &used[i];
	}
	if (n_used < sizeof used / sizeof used[0])
		u = &used[n_used++];
	else if (u->fd >= 0)
		close(u->fd);
	u->fd = -1;
	u->when = ++clock;
	u->lane = lane;
	strlcpy(u->whose, whose, sizeof u->whose);
	strlcpy(u->leaf, leaf, sizeof u->leaf);
	return u;
}

int
amr_use_state(const struct amr_router *r, const char *instance, const char *sub)
{
	struct used *u = use(instance, 0, sub);

	return u->fd >= 0 ? u->fd : (u->fd = amr_state_dir(r, instance, sub));
}

int
amr_use_lane(const struct amr_member *m, char lane, const char *leaf)
{
	struct used *u = use(m->name, lane, leaf);
	char path[128];
	int root;

	if (u->fd < 0 && (root = amr_root(m)) >= 0) {
		int saved;

		snprintf(path, sizeof path, "%s/%s", amr_lane(m, lane), leaf);
		u->fd = amr_dir(root, path);
		saved = errno;
		close(root);
		errno = saved;
	}
	return u->fd;
}

void
amr_let_go(void)
{
	int saved = errno;

	while (n_used > 0)
		if (used[--n_used].fd >= 0)
			close(used[n_used].fd);
	errno = saved;
}

int
amr_root(const struct amr_member *m)
{
	return open(m->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

const char *
amr_lane(const struct amr_member *m, char which)
{
	if (which == 'p')
		return "peer";
	if (which == 'i')
		return m->namespaced ? "inbound" : "inbox";
	return m->namespaced ? "outbound" : "outbox";
}

char *
amr_state_read(const struct amr_router *r, const char *instance, const char *path, size_t max, size_t *len)
{
	char full[512];

	snprintf(full, sizeof full, "%s/%s", instance, path);
	return am_read_regular(r->state, full, max, len);
}

int
amr_draft_json(struct am_draft *d, int dirfd, const char *name, jv doc, mode_t mode)
{
	size_t len;
	char *text = am_json_text(doc, AM_SORTED, &len);
	int rc = dirfd < 0 ? -1 : am_draft(d, dirfd, name, text, len, mode), saved = errno;

	free(text);
	jv_free(doc);
	errno = saved;
	return rc;
}

int
amr_publish_json(int dirfd, const char *name, jv doc, mode_t mode)
{
	size_t len;
	char *text = am_json_text(doc, AM_SORTED, &len);
	int rc = am_publish(dirfd, name, text, len, mode), saved = errno;

	free(text);
	jv_free(doc);
	errno = saved;
	return rc;
}

int
amr_state_publish(const struct amr_router *r, const char *instance, const char *sub, const char *name, jv doc)
{
	int dir = amr_use_state(r, instance, sub);

	if (dir < 0) {
		jv_free(doc);
		return -1;
	}
	return amr_publish_json(dir, name, doc, 0600);
}

int
amr_is_shortage(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == EIO || errnum == EINTR ||
	    errnum == ENOSPC || errnum == EDQUOT;
}

void
amr_digest(const char *bytes, size_t len, char hex[65])
{
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)bytes, len);
	SHA256End(&ctx, hex);
}

static void
remove_below(int at, const char *name, int depth, int *left)
{
	int fd = am_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (*left > 0 && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		--*left;
		if (unlinkat(fd, e->d_name, 0) != 0 && depth > 0) {
			remove_below(fd, e->d_name, depth - 1, left);
			unlinkat(fd, e->d_name, AT_REMOVEDIR);
		}
	}
	closedir(d);
}

void
amr_remove_tree(int at, const char *name)
{
	int left = REMOVE_ENTRIES;

	if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return;
	if (unlinkat(at, name, 0) == 0)		/* a link or a file of that name */
		return;
	remove_below(at, name, REMOVE_DEPTH, &left);
	unlinkat(at, name, AT_REMOVEDIR);
}
