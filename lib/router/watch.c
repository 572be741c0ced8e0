#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "file.h"
#include "router/drain.h"
#include "router/held.h"
#include "router/log.h"
#include "router/watch.h"

#define WANTED (IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

/* Sorted by descriptor; the kernel gives them out ascending. */
static struct watch {
	int wd;
	struct amr_inst *in;
	int outcomes;
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
remember(int wd, struct amr_inst *in, int outcomes)
{
	size_t i = place_of(wd);

	if (i == n_watches || watches[i].wd != wd) {
		if (n_watches == room &&
		    (watches = realloc(watches, (room = room ? room * 2 : 64) * sizeof *watches)) == NULL)
			abort();
		memmove(watches + i + 1, watches + i, (n_watches - i) * sizeof *watches);
		n_watches++;
	}
	watches[i] = (struct watch){ wd, in, outcomes };
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
watch_directory(struct amr_router *r, int dir, struct amr_inst *in, int outcomes)
{
	int wd;

	if (fchdir(dir) != 0)
		return;
	wd = inotify_add_watch(r->notify, ".", WANTED);
	if (wd >= 0)
		remember(wd, in, outcomes);
	else if (!in->told_watch)
		amr_log(AM_WARNING, "", "%s is not watched, its requests are found by the timer: %s", in->name, strerror(errno));
	in->told_watch = wd < 0;
}

static void
watch_outcomes(struct amr_router *r, struct amr_inst *in, int outbox)
{
	int n = jv_array_length(jv_copy(r->conf->outcome_ids)), dir;
	char path[128];

	for (int i = 0; i < n; i++) {
		jv id = jv_array_get(jv_copy(r->conf->outcome_ids), i);

		snprintf(path, sizeof path, "ext/%s/outcomes", jv_string_value(id));
		jv_free(id);
		if ((dir = am_open_beneath(outbox, path, O_RDONLY | O_DIRECTORY, 0)) >= 0) {
			watch_directory(r, dir, in, 1);
			close(dir);
		}
	}
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

static void
watch_instance(struct amr_router *r, struct amr_inst *in)
{
	const struct amr_member *m;
	int root, outbox;

	if (in->at < 0) {
		unwatch(r, in);
		return;
	}
	m = &r->conf->members[in->at];
	if ((root = amr_root(m)) < 0)
		return;
	if ((outbox = am_open_beneath(root, amr_lane(m, 'o'), O_RDONLY | O_DIRECTORY, 0)) >= 0) {
		watch_directory(r, outbox, in, 0);
		if (amr_conf_has_peer(r->conf, (size_t)in->at))
			watch_outcomes(r, in, outbox);
		close(outbox);
		if (fchdir(r->cwd) != 0)
			amr_log(AM_WARNING, "", "working directory: %s", strerror(errno));
	}
	close(root);
}

void
amr_watch_all(struct amr_router *r)
{
	if (r->notify < 0)
		return;
	watch_decisions(r);
	for (size_t i = 0; i < r->n; i++)
		watch_instance(r, r->inst[i]);
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
	if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))
		in->rescan = in->outcomes_due = 1;
	else if (watches[i].outcomes)
		in->outcomes_due = 1;
	else if (e->len > 0)
		amr_queue_event(in, e->name);
	if (e->mask & IN_IGNORED)
		forget(e->wd);
	else if (e->mask & IN_MOVE_SELF)
		inotify_rm_watch(r->notify, e->wd);
	if (in->rescan || in->outcomes_due || in->head < in->queue.n)
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
