#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "router/held.h"
#include "router/intent.h"
#include "router/log.h"
#include "router/reset.h"

#define DEPTH 32		/* descriptors open at once; what lies deeper is moved up first */
#define ROUNDS 10000		/* a running agent could go on for ever */

static const struct lane { char which; const char *leaves[3]; } lanes[] = {
	{ 'i', { "notices", "messages", NULL } },
	{ 'o', { "results", "processed", NULL } },
	{ 'p', { "notices", "messages", NULL } }
};

/* ---- removing ---- */

struct removal {
	int dry, top;
	long done, left;
	int moved;		/* something was moved up: look again */
};

static int
is_kept(const char *name, const char *const *keep)
{
	for (; keep != NULL && *keep != NULL; keep++)
		if (strcmp(name, *keep) == 0)
			return 1;
	return 0;
}

static void clear(struct removal *m, int fd, const char *const *keep, int depth);

static void
remove_directory(struct removal *m, int at, const char *name, int depth)
{
	char up[64], random[13];
	int fd;

	if (depth == 0 && !m->dry) {
		amr_log(AM_DEBUG, ".reset", "moving a deep directory up");
		am_random_hex(random, 6);
		snprintf(up, sizeof up, ".reset-%s", random);
		if (renameat(at, name, m->top, up) == 0) {
			m->moved = 1;
			return;
		}
	}
	fd = am_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0 && depth > 0)
		clear(m, fd, NULL, depth - 1);
	else if (fd >= 0)
		close(fd);
	if (m->dry || unlinkat(at, name, AT_REMOVEDIR) == 0)
		m->done++;
	else if (errno != ENOENT && !m->moved)
		m->left++;
}

/* Closes fd. */
static void
clear(struct removal *m, int fd, const char *const *keep, int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	struct stat st;

	if (d == NULL) {
		m->left++;
		close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || is_kept(e->d_name, keep))
			continue;
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (S_ISDIR(st.st_mode))
			remove_directory(m, fd, e->d_name, depth);
		else if (m->dry || unlinkat(fd, e->d_name, 0) == 0)
			m->done++;
		else if (errno != ENOENT)
			m->left++;
	}
	closedir(d);
}

/* Everything below at/path but what is kept. A missing directory is empty. 1 when it is there. */
static int
empty(struct removal *m, int at, const char *path, const char *const *keep)
{
	int top = am_open_beneath(at, path, O_RDONLY | O_DIRECTORY, 0), fd, rounds = 0;

	if (top < 0)
		return 0;
	m->top = top;
	do {
		m->moved = 0;
		m->left = 0;
		if ((fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
			break;
		clear(m, fd, keep, DEPTH);
	} while (m->moved && ++rounds < ROUNDS);
	close(top);
	return 1;
}

/* ---- the two sides ---- */

static void
empty_state(const struct amr_router *r, const char *name, struct amr_reset *out)
{
	static const char *const keep[] = { "audit", NULL };
	struct removal m = { .dry = out->dry };
	int dir = am_open_beneath(r->state, name, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;

	if (dir < 0)
		return;
	if (fstatat(dir, "first-seen.json", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		out->was_seen = 1;
		if (!out->dry && unlinkat(dir, "first-seen.json", 0) == 0) {
			fsync(dir);
			m.done++;
		}
	}
	close(dir);
	empty(&m, r->state, name, keep);
	out->state += m.done;
	out->left += m.left;
}

static void
empty_outcomes(const struct amr_router *r, int root, const char *outbox, struct removal *m)
{
	int n = jv_array_length(jv_copy(r->conf->outcome_ids));
	char path[128];

	for (int i = 0; i < n; i++) {
		jv id = jv_array_get(jv_copy(r->conf->outcome_ids), i);

		snprintf(path, sizeof path, "%s/ext/%s/outcomes", outbox, jv_string_value(id));
		empty(m, root, path, NULL);
		jv_free(id);
	}
}

static void
empty_mailbox(const struct amr_router *r, size_t member, struct amr_reset *out)
{
	static const char *const outbox_keeps[] = { "results", "processed", "ext", NULL };
	const struct amr_member *m = &r->conf->members[member];
	int root = amr_root(m), *there[] = { &out->inbox, &out->outbox, &out->peer };
	struct removal what = { .dry = out->dry };
	char path[128];

	if (root < 0)
		return;
	for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++) {
		const char *lane = amr_lane(m, lanes[i].which);

		if (lanes[i].which == 'p' && m->namespaced)
			continue;
		*there[i] = empty(&what, root, lane, lanes[i].which == 'o' ? outbox_keeps : lanes[i].leaves);
		out->left += what.left;
		for (size_t k = 0; lanes[i].leaves[k] != NULL; k++) {
			snprintf(path, sizeof path, "%s/%s", lane, lanes[i].leaves[k]);
			what.left = 0;
			empty(&what, root, path, NULL);
			out->left += what.left;
		}
		if (lanes[i].which == 'o')
			empty_outcomes(r, root, lane, &what);
	}
	out->mailbox += what.done;
	close(root);
}

static void
forget_decisions(struct amr_router *r, const char *name)
{
	static const char *const dirs[] = { AM_DECISIONS, AM_DECISIONS "/answers" };
	char prefix[AM_REQ_ID_MAX + 2];
	struct dirent *e;

	snprintf(prefix, sizeof prefix, "%s~", name);
	for (size_t i = 0; i < 2; i++) {
		int fd = am_open_beneath(r->state, dirs[i], O_RDONLY | O_DIRECTORY, 0);
		DIR *d = fd < 0 ? NULL : fdopendir(fd);

		if (d == NULL) {
			if (fd >= 0)
				close(fd);
			continue;
		}
		while ((e = readdir(d)) != NULL)
			if (strncmp(e->d_name, prefix, strlen(prefix)) == 0)
				unlinkat(fd, e->d_name, 0);
		closedir(d);
	}
}

int
amr_reset(struct amr_router *r, size_t member, struct amr_reset *out)
{
	const char *name = r->conf->members[member].name;
	char ts[21];
	jv line;

	if (!out->dry) {
		amr_intents_drop(r, name);
		forget_decisions(r, name);
	}
	empty_state(r, name, out);
	empty_mailbox(r, member, out);
	if (out->dry)
		return 0;
	empty_state(r, name, out);
	am_timestamp(time(NULL), ts);
	line = am_set_str(jv_object(), "event", "reset");
	line = am_set(line, "was_seen", out->was_seen ? jv_true() : jv_false());
	line = am_set(line, "state_removed", jv_number((double)out->state));
	line = am_set(line, "mailbox_removed", jv_number((double)out->mailbox));
	line = am_set(line, "inbox_available", out->inbox ? jv_true() : jv_false());
	line = am_set(line, "outbox_available", out->outbox ? jv_true() : jv_false());
	line = am_set(line, "peer_available", out->peer ? jv_true() : jv_false());
	return amr_audit(r, name, ts, line);
}

int
amr_reset_check(const struct amr_router *r, size_t member, char *why, size_t size)
{
	const struct amr_member *m = &r->conf->members[member];
	int root = amr_root(m), rc = 0;
	char path[128];
	struct stat st;

	if (root < 0)
		return 0;	/* nothing to empty */
	for (size_t i = 0; i < sizeof lanes / sizeof lanes[0] && rc == 0; i++)
		for (int k = -1; (k < 0 || lanes[i].leaves[k] != NULL) && rc == 0; k++) {
			snprintf(path, sizeof path, "%s%s%s", amr_lane(m, lanes[i].which), k < 0 ? "" : "/",
			    k < 0 ? "" : lanes[i].leaves[k]);
			if (fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode)) {
				snprintf(why, size, "%s/%s is no plain directory; look at it and remove it first", m->root, path);
				rc = -1;
			}
		}
	close(root);
	return rc;
}
