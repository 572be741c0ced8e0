#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "diag.h"
#include "id.h"
#include "router/drain.h"
#include "router/held.h"
#include "router/log.h"
#include "router/loop.h"
#include "router/outcome.h"
#include "router/roster.h"
#include "router/status.h"
#include "router/sweep.h"
#include "router/watch.h"

#define TURN_MS 40		/* one instance, before the next has its turn */
#define POLL_MS 500		/* requests within a poll; what is left waits in the line */

static volatile int stop, reload;

static void
on_signal(int signal)
{
	if (signal == SIGHUP)
		reload = 1;
	else
		stop = 1;
}

/* Signals are held back from the last look at what they set until the loop waits, so none falls between. */
static void
catch_signals(sigset_t *waiting)
{
	struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGHUP);
	sigaction(SIGTERM, &a, NULL);
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGHUP, &a, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_UNBLOCK, &ours, waiting);
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&ours, i) == 1)
			sigdelset(waiting, i);
}

static void
tell_service_manager(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	socklen_t len;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof to.sun_path ||
	    (fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
		return;
	memcpy(to.sun_path, path, strlen(path));
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + (path[0] == '/'));
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, len) < 0)
		amr_log(AM_WARNING, "", "NOTIFY_SOCKET: %s", strerror(errno));
	close(fd);
}

/* ---- the configuration ---- */

static jv
admitted_names(const struct amr_conf *c)
{
	jv names = jv_array();

	for (size_t i = 0; i < c->n; i++)
		names = jv_array_append(names, jv_string(c->members[i].name));
	return names;
}

static void
tell_changes(const struct amr_conf *old, const struct amr_conf *new)
{
	int n = jv_array_length(jv_copy(new->report));

	for (size_t i = 0; i < new->n; i++)
		if (amr_conf_find(old, new->members[i].name) < 0)
			amr_log(AM_INFO, "", "instance added: %s", new->members[i].name);
	for (size_t i = 0; i < old->n; i++)
		if (amr_conf_find(new, old->members[i].name) < 0)
			amr_log(AM_INFO, "", "instance removed: %s", old->members[i].name);
	if (jv_equal(jv_copy(old->report), jv_copy(new->report)))
		return;
	amr_log(AM_WARNING, "", n > 0 ? "discovery:" : "discovery: clean");
	for (int i = 0; i < n; i++) {
		jv line = jv_array_get(jv_copy(new->report), i);

		amr_log(AM_WARNING, "", "%s", jv_string_value(line));
		jv_free(line);
	}
}

static void
reload_config(struct amr_router *r)
{
	static char told[512];
	char why[512] = "";
	struct amr_conf *new = amr_conf_load(r->config_path, r->conf, why, sizeof why);

	if (new != NULL && new != r->conf && strcmp(new->state_dir, r->conf->state_dir) != 0) {
		snprintf(why, sizeof why, "state_dir: changed; that takes a restart");
		amr_conf_free(new);
		new = NULL;
	}
	if (new == NULL) {
		if (strcmp(told, why) != 0)
			amr_log(AM_ERROR, "", "config error: %s; the last good configuration stays", why);
		strlcpy(told, why, sizeof told);
		return;
	}
	told[0] = '\0';
	if (new == r->conf)
		return;
	tell_changes(r->conf, new);
	for (size_t i = 0; i < r->n; i++)
		if (r->inst[i]->at >= 0)
			r->inst[i]->peer_was = amr_conf_has_peer(r->conf, (size_t)r->inst[i]->at);
	amr_conf_free(r->conf);
	r->conf = new;
	amr_let_go();		/* a member may have another root now */
	amr_adopt(r);
	malloc_trim(0);
}

/* ---- one instance ---- */

static void
serve(struct amr_router *r, struct amr_inst *in, long budget_ms)
{
	static long long let_go;

	if (in->at >= 0) {
		if (in->watch_due)
			amr_watch(r, in);
		amr_take_turn(r, in, budget_ms, &stop);
		if (in->outcomes_due && amr_conf_has_peer(r->conf, (size_t)in->at))
			amr_take_outcomes(r, in);
		if (in->head < in->queue.n || in->rescan)
			amr_line_up(r, in);
	}
	/* Others move directories about: what was opened counts for a moment, however long the line is. */
	if (r->line == NULL || am_now() - let_go > TURN_MS) {
		amr_let_go();
		let_go = am_now();
	}
}

/* Counters that what is left alone makes at every poll. */
static int
standing(int c)
{
	return c == AM_SEEN || c == AM_BAD_NAME || c == AM_BY_SCAN || c == AM_ERRORED || c == AM_PEER_SEEN ||
	    c == AM_PEER_ERRORED || c == AM_INSTANCE_ERRORED;
}

/* A drain that did nothing is no news. */
static void
tell_drained(const struct amr_router *r, struct amr_inst *in)
{
	char *text = NULL;
	size_t len;
	FILE *fp;
	int any = !in->told_first;

	for (int c = 0; c < AM_COUNTERS; c++)
		any |= !standing(c) && in->last[c] > 0;
	if (!any || (fp = open_memstream(&text, &len)) == NULL)
		return;
	amr_summary_print(fp, r, in, 1);
	fclose(fp);
	amr_log(AM_INFO, "", "drained %s: %s", in->name, text);
	free(text);
	in->told_first = 1;
}

static void
begin_period(struct amr_inst *in)
{
	memset(in->last, 0, sizeof in->last);
	jv_free(in->pass_alerts);
	in->pass_alerts = jv_array();
}

/* ---- the poll ---- */

static void
poll_all(struct amr_router *r)
{
	long long began = am_now();

	jv_free(r->admitted);
	r->admitted = admitted_names(r->conf);
	amr_watch_all(r);
	for (size_t i = 0; i < r->n && !stop; i++) {
		struct amr_inst *in = r->inst[i];

		if (in->at < 0)
			continue;
		in->rescan |= in->head == in->queue.n;
		in->outcomes_due = 1;
		serve(r, in, am_now() - began < POLL_MS ? TURN_MS : 1);
	}
	r->decisions_due = 1;
}

static void
report(struct amr_router *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct amr_inst *in = r->inst[i];

		if (in->last[AM_INSTANCE_ERRORED] > 0 || in->last[AM_ERRORED] > 0)
			in->last_error = time(NULL);
		if (in->at >= 0 && amr_conf_has_peer(r->conf, (size_t)in->at))
			amr_refresh_denied(r, in);
		if (in->at >= 0) {
			amr_refresh_held(r, in);
			tell_drained(r, in);
		}
	}
	r->last_poll = time(NULL);
	r->polls++;
	if (amr_status_write(r) != 0)
		amr_log(AM_ERROR, "", "status.json: %s", strerror(errno));
	amr_roster_publish(r);
	for (size_t i = 0; i < r->n; i++)
		begin_period(r->inst[i]);
}

static void
begin(struct amr_router *r)
{
	amr_adopt(r);
	if (r->unclean)
		amr_sweep(r);
}

void
amr_once(struct amr_router *r)
{
	begin(r);
	for (size_t i = 0; i < r->n; i++) {
		struct amr_inst *in = r->inst[i];
		long before;

		in->outcomes_due = 1;
		do {
			before = in->last[AM_DRAINED];
			in->rescan = 1;
			serve(r, in, 0);
		} while (in->truncated && in->last[AM_DRAINED] > before);
	}
	amr_take_decisions(r);
	for (size_t i = 0; i < r->n; i++)
		if (r->inst[i]->at >= 0) {
			if (amr_conf_has_peer(r->conf, (size_t)r->inst[i]->at))
				amr_refresh_denied(r, r->inst[i]);
			tell_drained(r, r->inst[i]);
		}
}

/* Waits until the time comes, something happens, or a signal arrives. */
static void
wait_for(struct amr_router *r, long long until, const sigset_t *waiting)
{
	struct pollfd p = { .fd = r->notify, .events = POLLIN };
	long long left = r->line != NULL ? 0 : until - am_now();
	struct timespec t = { 0 };

	if (left > 0) {
		t.tv_sec = (time_t)(left / 1000);
		t.tv_nsec = (long)(left % 1000) * 1000000;
	}
	if (ppoll(&p, 1, &t, waiting) > 0)
		amr_watch_read(r);
}

void
amr_run(struct amr_router *r, double interval)
{
	long long next = 0;
	sigset_t waiting, ours;
	struct amr_inst *in;
	char number[32];
	jv names = admitted_names(r->conf);
	char *list = am_json_text(names, AM_COMPACT, NULL);

	mallopt(M_MMAP_THRESHOLD, 128 * 1024);	/* fixed: what attachments took goes back */
	catch_signals(&waiting);
	ours = waiting;
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGHUP);
	r->interval = interval;
	r->started = time(NULL);
	amr_log(AM_INFO, "", "router starting: interval=%ss, instances=%s", amr_float(interval, number), list);
	free(list);
	jv_free(names);
	begin(r);
	amr_watch_open(r);
	while (!stop) {
		if (reload || am_now() >= next) {
			reload = 0;
			if (r->polls > 0)
				reload_config(r);
			poll_all(r);
			report(r);
			if (r->polls == 1)
				tell_service_manager("READY=1");
			next = am_now() + (interval < 0.001 ? 1 : (long long)(interval * 1000));
		} else if ((in = amr_line_next(r)) != NULL) {
			serve(r, in, TURN_MS);
		}
		if (r->decisions_due) {
			r->decisions_due = 0;
			amr_take_decisions(r);
			amr_let_go();
		}
		sigprocmask(SIG_SETMASK, &ours, NULL);
		if (!stop && !reload)
			wait_for(r, next, &waiting);
		sigprocmask(SIG_SETMASK, &waiting, NULL);
	}
	tell_service_manager("STOPPING=1");
	amr_status_write(r);
	amr_log(AM_INFO, "", "router stopped");
}
