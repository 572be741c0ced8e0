#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "router/deliver.h"
#include "router/flush.h"
#include "router/letter.h"
#include "router/log.h"

#define GROUP 16		/* attachments written at the same time */

static const char *
tree_path(const struct amr_router *r, const struct amr_inst *to, int peer, const char *leaf, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", amr_lane(&r->conf->members[to->at], peer ? 'p' : 'i'), leaf);
	return out;
}

/* Some at a time, each an open file; -1 with errno, and then the directory is for the caller to remove. */
static int
write_blobs(const struct amr_letter *l, int notices, const char *nid)
{
	struct am_draft draft[GROUP];
	int fds[GROUP], dir, rc = 0, saved;
	char name[64];

	if (l->n_blobs == 0)
		return 0;
	snprintf(name, sizeof name, "%s.attachments", nid);
	amr_remove_tree(notices, name);		/* of an attempt that was cut short */
	if ((dir = amr_dir(notices, name)) < 0)
		return -1;
	for (size_t i = 0, n; i < l->n_blobs && rc == 0; i += n) {
		for (n = 0; n < GROUP && i + n < l->n_blobs && rc == 0; n += rc == 0) {
			snprintf(name, sizeof name, "%zu", i + n);
			rc = am_draft(&draft[n], dir, name, l->blobs[i + n].bytes, l->blobs[i + n].len, 0600);
			fds[n] = draft[n].fd;
		}
		if (rc == 0)
			rc = amr_flush(fds, n);
		for (size_t k = 0; k < n; k++)
			if (rc == 0)
				rc = am_draft_place(&draft[k]);
			else
				am_draft_drop(&draft[k]);
	}
	if (rc == 0)
		rc = fsync(dir);
	saved = errno;
	close(dir);
	errno = saved;
	return rc;
}

/* One placement under way: drafts in the order in which they get their names, and what is flushed after that. */
struct placement {
	struct am_draft draft[3];
	size_t n, placed;
	int log;			/* the audit log */
	int flushed[4];
	size_t n_flushed;
	const char *step;		/* what is being done, for the message */
};

static int
draft(struct placement *p, int dir, const char *name, jv doc)
{
	if (amr_draft_json(&p->draft[p->n], dir, name, doc, 0600) != 0)
		return -1;
	p->n++;
	p->flushed[p->n_flushed++] = dir;
	return 0;
}

/* Everything is written, and durable but for the names. */
static int
prepare(struct placement *p, const struct amr_router *r, const struct amr_letter *l, const struct amr_inst *to, int peer,
    const char *nid, const char *ts)
{
	const struct amr_member *m = &r->conf->members[to->at];
	char from[AM_ADDRESS_MAX], address[AM_ADDRESS_MAX], name[64];
	int notices, messages, fds[4];
	size_t n = 0;

	amr_conf_address_of(r->conf, l->from, from);
	amr_conf_address_of(r->conf, to->name, address);
	snprintf(name, sizeof name, "notice-%s.json", nid);
	p->step = "its notices";
	if ((notices = amr_use_lane(m, peer ? 'p' : 'i', "notices")) < 0)
		return -1;
	p->step = "its messages";
	if ((messages = amr_use_lane(m, peer ? 'p' : 'i', "messages")) < 0)
		return -1;
	p->step = "an attachment";
	if (write_blobs(l, notices, nid) != 0)
		return -1;
	p->step = "the message";
	if (draft(p, messages, name, amr_letter_message(l, nid, ts, from, address)) != 0)
		return -1;
	p->step = "the ledger";
	if (draft(p, amr_use_state(r, to->name, "delivered"), name, amr_letter_ledger(l, to->name, peer, nid, ts, from)) != 0)
		return -1;
	p->step = "the notice";
	if (draft(p, notices, name, amr_letter_notice(l, peer, nid, ts, from)) != 0)
		return -1;
	while (n < p->n) {
		fds[n] = p->draft[n].fd;
		n++;
	}
	if (r->intent_fd >= 0)
		fds[n++] = r->intent_fd;
	return amr_flush(fds, n);
}

static int
begin_audit(const struct amr_router *r, const struct amr_letter *l, const struct amr_inst *to, int peer, const char *nid,
    const char *ts)
{
	char from[AM_ADDRESS_MAX], address[AM_ADDRESS_MAX];

	amr_conf_address_of(r->conf, l->from, from);
	amr_conf_address_of(r->conf, to->name, address);
	return amr_audit_begin(r, to->name, ts, amr_letter_audit(l, to->name, peer, nid, from, address));
}

int
amr_place_audit(const struct amr_router *r, const struct amr_letter *l, const struct amr_inst *to, int peer, const char *nid,
    const char *ts)
{
	int fd = begin_audit(r, l, to, peer, nid, ts), rc = fd < 0 ? -1 : fdatasync(fd), saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return rc;
}

/* Names in their order, the notice last: it is the commit, and from then on there is no way back. */
static enum amr_placed
commit(struct placement *p, const struct amr_router *r, const struct amr_letter *l, const struct amr_inst *to, int peer,
    const char *nid, const char *ts)
{
	for (; p->placed + 1 < p->n; p->placed++)
		if (am_draft_place(&p->draft[p->placed]) != 0) {
			p->placed++;
			return AM_FAILED;
		}
	p->step = "the audit log";
	if (jv_is_valid(l->audit)) {
		if ((p->log = begin_audit(r, l, to, peer, nid, ts)) < 0)
			return AM_FAILED;
		p->flushed[p->n_flushed++] = p->log;
	}
	p->step = "the notice";
	if (am_draft_place(&p->draft[p->placed++]) != 0)
		return AM_FAILED;
	return amr_flush(p->flushed, p->n_flushed) == 0 ? AM_PLACED : AM_DOUBT;
}

enum amr_placed
amr_place(const struct amr_router *r, const struct amr_letter *l, struct amr_inst *to, int peer, const char *nid, const char *ts)
{
	struct placement p = { .log = -1 };
	enum amr_placed placed = AM_FAILED;

	if (prepare(&p, r, l, to, peer, nid, ts) == 0)
		placed = commit(&p, r, l, to, peer, nid, ts);
	for (size_t i = p.placed; i < p.n; i++)
		am_draft_drop(&p.draft[i]);
	if (placed != AM_PLACED) {
		amr_log(AM_WARNING, ".outbound", "delivery to %s failed at %s: %s%s", to->name, p.step, strerror(errno),
		    placed == AM_DOUBT ? "; the notice is visible, tried again later" : "");
		if (placed == AM_FAILED)
			amr_unplace(r, to, peer, nid);
		amr_let_go();
	}
	if (p.log >= 0)
		close(p.log);
	return placed;
}

/* What is certainly not there, as against what could not be looked at now. */
static enum amr_placed
absent(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? AM_FAILED : AM_DOUBT;
}

/* 0, or -1 with errno: is there a file of this name? */
static int
stands(int at, const char *path)
{
	int fd = am_open_beneath(at, path, O_PATH, 0), ok;
	struct stat st;

	if (fd < 0)
		return -1;
	ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	close(fd);
	errno = ENOENT;
	return ok ? 0 : -1;
}

/* After a loss of power a name may be there without those that were given before it. */
enum amr_placed
amr_placed_already(const struct amr_router *r, const struct amr_inst *to, int peer, const char *nid)
{
	int root = amr_root(&r->conf->members[to->at]), dir = -1;
	enum amr_placed placed;
	char lane[128], path[256];

	if (root >= 0)
		dir = am_open_beneath(root, tree_path(r, to, peer, "notices", lane, sizeof lane), O_RDONLY | O_DIRECTORY, 0);
	snprintf(path, sizeof path, "notice-%s.json", nid);
	if (dir < 0 || stands(dir, path) != 0) {
		placed = absent();
	} else {
		placed = fsync(dir) == 0 ? AM_PLACED : AM_DOUBT;
		snprintf(path, sizeof path, "%s/notice-%s.json", tree_path(r, to, peer, "messages", lane, sizeof lane), nid);
		if (stands(root, path) != 0)
			placed = absent();
		snprintf(path, sizeof path, "%s/delivered/notice-%s.json", to->name, nid);
		if (stands(r->state, path) != 0)
			placed = absent();
	}
	if (dir >= 0)
		close(dir);
	if (root >= 0)
		close(root);
	return placed;
}

void
amr_unplace(const struct amr_router *r, const struct amr_inst *to, int peer, const char *nid)
{
	char path[128], name[64], blobs[64];
	int root = amr_root(&r->conf->members[to->at]), dir, ledger;

	snprintf(name, sizeof name, "notice-%s.json", nid);
	snprintf(blobs, sizeof blobs, "%s.attachments", nid);
	if (root >= 0 && (dir = am_open_beneath(root, tree_path(r, to, peer, "notices", path, sizeof path),
	    O_RDONLY | O_DIRECTORY, 0)) >= 0) {
		unlinkat(dir, name, 0);
		amr_remove_tree(dir, blobs);
		close(dir);
	}
	if (root >= 0 && (dir = am_open_beneath(root, tree_path(r, to, peer, "messages", path, sizeof path),
	    O_RDONLY | O_DIRECTORY, 0)) >= 0) {
		unlinkat(dir, name, 0);
		close(dir);
	}
	if (root >= 0)
		close(root);
	if ((ledger = amr_state_dir(r, to->name, "delivered")) >= 0) {
		unlinkat(ledger, name, 0);
		close(ledger);
	}
}
