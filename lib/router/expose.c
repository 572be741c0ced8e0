#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "router/expose.h"
#include "router/log.h"

#define ENTRIES_MAX 50000
#define RECORD_MAX 65536

static int
open_inbox(const struct amr_router *r, const struct amr_inst *in)
{
	const struct amr_member *m = &r->conf->members[in->at];
	int root = amr_root(m), dir;
	char path[64];

	if (root < 0)
		return -1;
	snprintf(path, sizeof path, "%s/notices", amr_lane(m, 'i'));
	dir = am_open_beneath(root, path, O_RDONLY | O_DIRECTORY, 0);
	close(root);
	return dir;
}

/* 0 for the version of what is not there. */
static struct amr_version
inbox_version(const struct amr_router *r, const struct amr_inst *in)
{
	struct amr_version v = { 0 };
	struct stat st;
	int dir = open_inbox(r, in);

	if (dir < 0)
		return v;
	if (fstat(dir, &st) == 0)
		v = amr_version_of(&st);
	close(dir);
	return v;
}

struct amr_inbox_mark
amr_inbox_before(const struct amr_router *r, const struct amr_inst *in)
{
	struct amr_inbox_mark m = { .known = in->exposure_known };

	if (m.known) {
		m.before = inbox_version(r, in);
		m.known = amr_same_version(&m.before, &in->inbox_version);
	}
	return m;
}

void
amr_inbox_after(const struct amr_router *r, struct amr_inst *in, const struct amr_inbox_mark *mark)
{
	if (mark->known)
		in->inbox_version = inbox_version(r, in);
}

/* ---- looking ---- */

/* Calls one for each name; -1 when it cannot be listed, 1 when it holds too much. */
static int
each_name(int dir, void (*one)(int dir, const char *name, void *more), void *more)
{
	int copy = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0, rc = 0;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (d == NULL) {
		if (copy >= 0)
			close(copy);
		return -1;
	}
	while ((errno = 0, e = readdir(d)) != NULL && rc == 0) {
		if (++n > ENTRIES_MAX)
			rc = 1;
		else if (strncmp(e->d_name, "notice-", 7) == 0)
			one(dir, e->d_name, more);
	}
	if (rc == 0 && errno != 0)
		rc = -1;
	closedir(d);
	return rc;
}

/* Ledger records that came from outside; nothing here writes such, another router may have. */
static void
ledger_entry(int dir, const char *name, void *more)
{
	time_t *last = more, when;
	const char *ts, *origin;
	size_t len;
	char *text = am_read_regular(dir, name, RECORD_MAX, &len);
	jv doc;

	if (text != NULL && memmem(text, len, "external", 8) != NULL) {
		doc = am_json_parse(text, len);
		origin = am_str(doc, "origin");
		ts = am_str(doc, "ts");
		when = ts == NULL ? -1 : am_parse_timestamp(ts);
		if (origin != NULL && strcmp(origin, "external") == 0 && when > *last)
			*last = when;
		jv_free(doc);
	}
	free(text);
}

struct foreign {
	int ledger;
	time_t last;
};

static void
inbox_entry(int dir, const char *name, void *more)
{
	struct foreign *f = more;
	size_t len = strlen(name);
	struct stat st, ours;

	if (len < 5 || strcmp(name + len - 5, ".json") != 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISREG(st.st_mode))
		return;
	if (st.st_mtim.tv_sec > f->last && fstatat(f->ledger, name, &ours, AT_SYMLINK_NOFOLLOW) != 0)
		f->last = st.st_mtim.tv_sec;
}

/* Too much to look through is remembered as -1: it cannot be told. */
static int
look(const struct amr_router *r, struct amr_inst *in)
{
	struct amr_version now;
	struct foreign f = { .ledger = -1 };
	int dir, rc;

	/* What came since this turn began is for the next one to see. */
	if (in->exposure_known && in->exposure_turn == r->turns)
		return in->last_external < 0 || in->last_foreign < 0 ? -1 : 0;
	now = inbox_version(r, in);
	in->exposure_turn = r->turns;
	f.ledger = amr_state_dir(r, in->name, "delivered");
	rc = f.ledger < 0 ? -1 : 0;

	if (rc == 0 && !in->exposure_known) {
		in->last_external = 0;
		if ((rc = each_name(f.ledger, ledger_entry, &in->last_external)) > 0)
			in->last_external = -1;
	}
	if (rc >= 0 && (!in->exposure_known || !amr_same_version(&now, &in->inbox_version))) {
		dir = open_inbox(r, in);
		if (dir >= 0) {
			rc = each_name(dir, inbox_entry, &f);
			close(dir);
		} else {
			rc = errno == ENOENT ? 0 : -1;
		}
		in->last_foreign = rc > 0 ? -1 : f.last;
		in->inbox_version = now;
	}
	in->exposure_known = rc >= 0;
	if (f.ledger >= 0)
		close(f.ledger);
	return rc < 0 || in->last_external < 0 || in->last_foreign < 0 ? -1 : 0;
}

jv
amr_exposure(const struct amr_router *r, struct amr_inst *sender)
{
	char address[AM_ADDRESS_MAX], ts[21];
	time_t now = time(NULL), from = now - r->conf->exposure_window, last = 0;
	jv d;

	if (look(r, sender) != 0) {
		amr_log(AM_DEBUG, ".exposure", "exposure of %s cannot be told", sender->name);
		return jv_invalid();
	}
	if (sender->first_seen > from)
		from = sender->first_seen > now ? now : sender->first_seen;
	if (sender->last_external >= from && sender->last_external <= now)
		last = sender->last_external;
	if (sender->last_foreign >= from && sender->last_foreign <= now && sender->last_foreign > last)
		last = sender->last_foreign;
	d = am_set_str(jv_object(), "asserted_by", amr_conf_address_of(r->conf, NULL, address));
	d = am_set(d, "external_mail_delivered", last > 0 ? jv_true() : jv_false());
	am_timestamp(from, ts);
	d = am_set_str(d, "window_start", ts);
	am_timestamp(now, ts);
	d = am_set_str(d, "window_end", ts);
	if (last > 0) {
		am_timestamp(last, ts);
		d = am_set_str(d, "last_external_delivery_ts", ts);
	}
	return d;
}
