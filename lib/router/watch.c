#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "file.h"
#include "router/held.h"
#include "router/log.h"
#include "router/queue.h"
#include "router/watch.h"

#define GONE (IN_DELETE_SELF | IN_MOVE_SELF)
#define FILES (IN_MOVED_TO | IN_CLOSE_WRITE | GONE | IN_ONLYDIR)
#define DIRECTORIES (IN_CREATE | IN_MOVED_TO | GONE | IN_ONLYDIR)

enum kind { OUTBOX, OUTCOMES, ON_THE_WAY };	/* the last: a directory in which one of these is awaited */

/* Sorted by descriptor; the kernel gives them out ascending. */
static struct watch {
	int wd;
	struct amr_inst *in;
	enum kind kind;
} *watches;
static size_t n_watches, room;

static size_t
place_of(int wd)
{
	size_t lo = 0, hi = n_watches;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (watches[mid].wd < wd)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void
remember(int wd, struct amr_inst *in, enum kind kind)
{
	size_t i = place_of(wd);

	if (i == n_watches || watches[i].wd != wd) {
		if (n_watches == room &&
		    (watches = realloc(watches, (room = room ? room * 2 : 64) * sizeof *watches)) == NULL)
			abort();
		memmove(watches + i + 1, watches + i, (n_watches - i) * sizeof *watches);
		n_watches++;
	}
	watches[i] = (struct watch){ wd, in, kind };
}

static void
forget(int wd)
{
	size_t i = place_of(wd);

	if (i < n_watches && watches[i].wd == wd) {
		memmove(watches + i, watches + i + 1, (n_watches - i - 1) * sizeof *watches);
		n_watches--;
	}
}

void
amr_watch_open(struct amr_router *r)
{
	/* A watch is set by changing into the directory; a relative --config needs the way back. */
	if ((r->cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		r->cwd = r->state;
	if ((r->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) < 0)
		amr_log(AM_WARNING, "", "no inotify, requests are found by the timer: %s", strerror(errno));
}

/* By the descriptor's own directory: no path that an agent could swap is looked up again. */
static void
watch_directory(struct amr_router *r, int dir, struct amr_inst *in, enum kind kind, uint32_t what)
{
	int wd;

	if (fchdir(dir) != 0)
		return;
	wd = inotify_add_watch(r->notify, ".", what);
	if (wd >= 0)
		remember(wd, in, kind);
	else if (!in->told_watch)
		amr_log(AM_WARNING, "", "%s is not watched, its requests are found by the timer: %s", in->name, strerror(errno));
	in->told_watch = wd < 0;
}

static int
open_directory(int at, const char *name)
{
	return am_open_beneath(at, name, O_RDONLY | O_DIRECTORY, 0);
}

/* Each directory is watched before the next is looked for, so that none comes unseen. */
static void
watch_outcomes(struct amr_router *r, struct amr_inst *in, int outbox)
{
	int n = jv_array_length(jv_copy(r->conf->outcome_ids)), ext = open_directory(outbox, "ext"), by_id, dir;

	/* An outbox is full of new names, so they are told of only as long as this one is awaited. */
	if (ext < 0) {
		watch_directory(r, outbox, in, OUTBOX, FILES | IN_CREATE);
		ext = open_directory(outbox, "ext");
	}
	if (ext < 0)
		return;
	watch_directory(r, ext, in, ON_THE_WAY, DIRECTORIES);
	for (int i = 0; i < n; i++) {
		jv id = jv_array_get(jv_copy(r->conf->outcome_ids), i);

		if ((by_id = open_directory(ext, jv_string_value(id))) >= 0) {
			watch_directory(r, by_id, in, ON_THE_WAY, DIRECTORIES);
			if ((dir = open_directory(by_id, "outcomes")) >= 0) {
				watch_directory(r, dir, in, OUTCOMES, FILES);
				close(dir);
			}
			close(by_id);
		}
		jv_free(id);
	}
	close(ext);
}

/* The operator's decisions, which no instance has to do with. */
static void
watch_decisions(struct amr_router *r)
{
	int dir = amr_dir(r->state, AM_DECISIONS);

	if (dir < 0)
		return;
	if (fchdir(dir) == 0)
		r->decisions_watch = inotify_add_watch(r->notify, ".", IN_MOVED_TO | IN_ONLYDIR);
	close(dir);
	if (fchdir(r->cwd) != 0)
		amr_log(AM_WARNING, "", "working directory: %s", strerror(errno));
}

static void
unwatch(struct amr_router *r, const struct amr_inst *in)
{
	for (size_t i = n_watches; i-- > 0; )
		if (watches[i].in == in) {
			inotify_rm_watch(r->notify, watches[i].wd);
			forget(watches[i].wd);
		}
}

void
amr_watch(struct amr_router *r, struct amr_inst *in)
{
	const struct amr_member *m;
	int root, outbox;

	in->watch_due = 0;
	if (r->notify < 0)
		return;
	if (in->at < 0) {
		unwatch(r, in);
		return;
	}
	m = &r->conf->members[in->at];
	if ((root = amr_root(m)) < 0)
		return;
	if ((outbox = open_directory(root, amr_lane(m, 'o'))) < 0) {
		watch_directory(r, root, in, ON_THE_WAY, DIRECTORIES);
		outbox = open_directory(root, amr_lane(m, 'o'));
	}
	if (outbox >= 0) {
		watch_directory(r, outbox, in, OUTBOX, FILES);
		if (amr_conf_has_peer(r->conf, (size_t)in->at))
			watch_outcomes(r, in, outbox);
		close(outbox);
	}
	close(root);
	if (fchdir(r->cwd) != 0)
		amr_log(AM_WARNING, "", "working directory: %s", strerror(errno));
}

void
amr_watch_all(struct amr_router *r)
{
	if (r->notify < 0)
		return;
	watch_decisions(r);
	for (size_t i = 0; i < r->n; i++)
		amr_watch(r, r->inst[i]);
}

static void
everything(struct amr_router *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->inst[i]->at >= 0) {
			r->inst[i]->rescan = r->inst[i]->outcomes_due = 1;
			amr_line_up(r, r->inst[i]);
		}
}

static void
happened(struct amr_router *r, const struct inotify_event *e)
{
	size_t i = place_of(e->wd);
	struct amr_inst *in;

	if (e->mask & IN_Q_OVERFLOW) {
		amr_log(AM_WARNING, "", "more happened than the kernel could tell; looking everywhere");
		r->decisions_due = 1;
		everything(r);
		return;
	}
	if (e->wd == r->decisions_watch)
		r->decisions_due = 1;
	if (i == n_watches || watches[i].wd != e->wd)
		return;
	in = watches[i].in;
	if (e->mask & (GONE | IN_IGNORED))
		in->rescan = in->outcomes_due = in->watch_due = 1;
	else if (watches[i].kind == ON_THE_WAY || (e->mask & IN_ISDIR && e->len > 0 && strcmp(e->name, "ext") == 0))
		in->outcomes_due = in->watch_due = 1;
	else if (watches[i].kind == OUTCOMES)
		in->outcomes_due = 1;
	else if (e->len > 0 && !(e->mask & IN_CREATE))
		amr_queue_event(in, e->name);
	if (e->mask & IN_IGNORED)
		forget(e->wd);
	else if (e->mask & IN_MOVE_SELF)
		inotify_rm_watch(r->notify, e->wd);
	if (in->rescan || in->outcomes_due || in->watch_due || in->head < in->queue.n)
		amr_line_up(r, in);
}

void
amr_watch_read(struct amr_router *r)
{
	static char buf[32768] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(r->notify, buf, sizeof buf)) > 0)
		for (char *p = buf; p < buf + n; ) {
			const struct inotify_event *e = (const struct inotify_event *)p;

			happened(r, e);
			p += sizeof *e + e->len;
		}
}

void
amr_line_up(struct amr_router *r, struct amr_inst *in)
{
	if (in->waiting)
		return;
	in->waiting = 1;
	in->next = NULL;
	*r->line_end = in;
	r->line_end = &in->next;
}

struct amr_inst *
amr_line_next(struct amr_router *r)
{
	struct amr_inst *in = r->line;

	if (in == NULL)
		return NULL;
	if ((r->line = in->next) == NULL)
		r->line_end = &r->line;
	in->waiting = 0;
	return in;
}
