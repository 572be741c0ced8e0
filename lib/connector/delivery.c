#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connector/delegation.h"
#include "connector/delivery.h"
#include "connector/inject.h"
#include "connector/journal.h"
#include "connector/outcome.h"
#include "connector/proc.h"
#include "connector/source.h"
#include "diag.h"
#include "id.h"
#include "json.h"

#define AGAIN_MS 500		/* while a notice waits for a session */
#define BODY_MS 1000		/* for a message that comes after its notice */
#define MUTE_MS 30000		/* for a session that began to show its socket */
#define HOUR_MS 3600000LL
#define MAIL_WAIT_MS 5000
#define FLYING_MAX 8
#define HELD_MAX 64		/* of these none keeps others waiting */

const char *const am_lane_name[] = { "mail", "peer" };

/*
 *	NEW -> ADMITTED -> FLYING -> DONE
 *	 |        ^           |
 *	 +-> DONE +- again ---+
 */
enum state { NEW, ADMITTED, FLYING, DONE };

struct notice {
	enum am_lane lane;
	char id[33];
	enum state state;
	unsigned seen, fails;
	long long next;			/* am_now before which it is not tried */
	const char *told;		/* the outcome last written */
	struct am_injection *in;	/* while it flies */
	pid_t session;			/* that it was handed to, or 0 */
	char session_start[24];
};

/* In the order of lane and id, but for those that were added since the last scan. */
static struct notice **all;
static size_t count, sorted, room;

static struct am_delivery_conf conf;
static struct am_journal journal;
static struct am_source source;
static pid_t ancestors[128];
static unsigned generation;
static int flying, held, warned_ancestor, warned_unknown;
static long long ask_next;	/* am_now before which the source is not run again */

int
am_delivery_open(const struct am_delivery_conf *given)
{
	struct am_proc p;
	size_t n = 0;

	conf = *given;
	for (pid_t pid = 0; n + 1 < sizeof ancestors / sizeof ancestors[0] && am_proc_read(pid, &p) == 0 && p.ppid > 0; pid = p.ppid)
		ancestors[n++] = p.ppid;
	return am_journal_open(&journal, conf.state);
}

/* ---- what is told ---- */

static void
tell(struct notice *n, const char *outcome, const char *detail)
{
	if (n->lane != AM_PEER || (n->told != NULL && strcmp(n->told, outcome) == 0))
		return;
	n->told = outcome;
	if (am_outcome_write(conf.outcomes, n->id, outcome, detail) != 0)
		am_warn("cannot write outcome %s for peer/%s", outcome, n->id);
}

static const char *
key_of(const struct notice *n)
{
	static char key[48];

	snprintf(key, sizeof key, "%s-%s", am_lane_name[n->lane], n->id);
	return key;
}

/* It is over: never again. Where the ledger cannot be written, this life remembers and the attempt is left. */
static void
settle(struct notice *n, const char *outcome, const char *detail)
{
	n->state = DONE;
	if (am_journal_end(&journal, key_of(n), 1) != 0)
		am_warn("%s/ledger/%s", conf.state, key_of(n));
	tell(n, outcome, detail);
}

static void
again(struct notice *n, long long after)
{
	n->state = ADMITTED;
	n->session = 0;
	n->next = am_now() + after;
	if (am_journal_end(&journal, key_of(n), 0) != 0)
		am_warn("%s/attempts/%s", conf.state, key_of(n));
}

static long long
backoff(struct notice *n)
{
	long long ms = n->fails < 8 ? 2000LL << n->fails : 300000;

	n->fails++;
	return ms;
}

/* It did not arrive, and is tried again. */
static void
failed(struct notice *n, const char *detail)
{
	if (n->lane == AM_MAIL)
		am_warnx("mail doorbell %s: inject failed (%s); will retry", n->id, am_quotes(detail));
	tell(n, "inject_failed", detail);
	again(n, backoff(n));
}

/* ---- the directories ---- */

static int
compare(const void *a, const void *b)
{
	const struct notice *p = *(struct notice *const *)a, *q = *(struct notice *const *)b;

	return p->lane != q->lane ? (p->lane > q->lane) - (p->lane < q->lane) : strcmp(p->id, q->id);
}

static void
sort(void)
{
	if (count > 0)
		qsort(all, count, sizeof all[0], compare);
	sorted = count;
}

static struct notice *
note(enum am_lane lane, const char *id)
{
	struct notice key = { .lane = lane }, *n = &key, **found;

	memcpy(key.id, id, 33);
	if (sorted > 0 && (found = bsearch(&n, all, sorted, sizeof all[0], compare)) != NULL)
		return *found;
	if (count == room && (all = reallocarray(all, room = room * 2 + 64, sizeof all[0])) == NULL)
		abort();
	if ((n = malloc(sizeof *n)) == NULL)
		abort();
	*n = key;
	n->state = am_journal_done(&journal, key_of(n)) ? DONE : NEW;
	return all[count++] = n;
}

/* notice-<32 hexadecimal digits>.json: the id, else NULL. */
static const char *
id_of(const char *name)
{
	static char id[33];

	if (strlen(name) != 44 || strncmp(name, "notice-", 7) != 0 || strcmp(name + 39, ".json") != 0 ||
	    strspn(name + 7, "0123456789abcdef") != 32)
		return NULL;
	memcpy(id, name + 7, 32);
	return id;
}

static int
list(enum am_lane lane)
{
	DIR *dir = opendir(conf.notices[lane]);
	struct dirent *e;
	const char *id;

	if (dir == NULL) {
		am_warn("cannot list %s", conf.notices[lane]);
		return -1;
	}
	while (errno = 0, (e = readdir(dir)) != NULL)
		if ((id = id_of(e->d_name)) != NULL)
			note(lane, id)->seen = generation;
	if (errno != 0) {
		am_warn("cannot list %s", conf.notices[lane]);
		closedir(dir);
		return -1;
	}
	closedir(dir);
	return 0;
}

void
am_delivery_scan(void)
{
	size_t kept = 0;
	int whole[2];

	generation++;
	whole[AM_MAIL] = list(AM_MAIL) == 0;
	whole[AM_PEER] = list(AM_PEER) == 0;
	for (size_t i = 0; i < count; i++) {
		struct notice *n = all[i];

		if (n->seen == generation || !whole[n->lane] || n->state == FLYING) {
			all[kept++] = n;
			continue;
		}
		/* What the router took away needs no memory: its ledger entry stays. */
		if (n->session != 0)
			am_journal_end(&journal, key_of(n), 0);
		free(n);
	}
	count = kept;
	sort();
}

/* ---- admission ---- */

static enum am_admission
admit(struct notice *n, jv *text, char why[500])
{
	int dir = open(conf.notices[n->lane], O_RDONLY | O_DIRECTORY | O_CLOEXEC), messages;
	enum am_admission admission = AM_NOT_YET;

	snprintf(why, 500, "%s", strerror(errno));
	if (dir < 0)
		return admission;
	if (n->lane == AM_MAIL) {
		admission = am_mail_admit(dir, n->id, conf.self, text, why);
	} else if ((messages = open(conf.messages, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
		admission = am_peer_admit(dir, messages, n->id, conf.self, text, why);
		close(messages);
	}
	close(dir);
	return admission;
}

/* Looks at a notice for the first time, or for the last because its message did not come. */
static void
look_at(struct notice *n)
{
	char why[500];

	switch (admit(n, NULL, why)) {
	case AM_ADMITTED:
		n->state = ADMITTED;
		n->next = n->fails = 0;
		return;
	case AM_NOT_YET:
		if (n->fails++ == 0) {
			n->next = am_now() + BODY_MS;
			return;
		}
		/* fall through */
	case AM_REFUSED:
		am_warnx(n->lane == AM_PEER ? "peer notice %s: refused — %s" : "mail notice %s: refused — %s", n->id, why);
		settle(n, "refused", why);
	}
}

/* ---- injection ---- */

/* What the next life must know of an attempt if this one ends. */
static jv
record(const struct notice *n, const char *state)
{
	jv r = am_set_str(am_set_str(jv_object(), "state", state), "reply", n->in->reply.sun_path);

	return am_set_str(am_set(r, "pid", jv_number((double)n->session)), "start", n->session_start);
}

static void
address_to(struct notice *n, pid_t pid)
{
	struct am_proc p;
	int known = pid > 0 && am_proc_read(pid, &p) == 0;

	n->session = known ? pid : 0;
	strlcpy(n->session_start, known ? p.start : "", sizeof n->session_start);
}

static int
session_lives(const struct notice *n)
{
	return n->session != 0 && am_proc_is(n->session, n->session_start);
}

static void
launch(struct notice *n, const struct am_rows *to)
{
	long long window = (long long)(conf.window < 1e6 ? conf.window * 1000 : 1e9);
	int mail = n->lane == AM_MAIL;
	char why[600];
	jv text;

	if (admit(n, &text, why) != AM_ADMITTED) {	/* it was, a moment ago: the router took it away */
		n->state = NEW;
		return;
	}
	if ((n->in = malloc(sizeof *n->in)) == NULL)
		abort();
	address_to(n, to->pid);
	if (am_inject_open(n->in, to->socket, to->key, text) != 0) {
		snprintf(why, sizeof why, "error: %s", n->in->detail);
	} else if (am_journal_begin(&journal, key_of(n), record(n, "sent")) != 0) {	/* nothing is sent that could not be remembered */
		snprintf(why, sizeof why, "error: %s/attempts: %s", conf.state, strerror(errno));
		am_inject_close(n->in);
	} else {
		am_inject_send(n->in, mail && window > MAIL_WAIT_MS ? MAIL_WAIT_MS : window, mail ? 0 : HOUR_MS);
		n->state = FLYING;
		flying++;
		jv_free(text);
		return;
	}
	jv_free(text);
	free(n->in);
	n->in = NULL;
	failed(n, why);
}

static void
uncertain(struct notice *n, const char *detail)
{
	char why[600];

	snprintf(why, sizeof why, "uncertain, so it is not sent again: %s", detail);
	am_warnx("%s notice %s: %s", am_lane_name[n->lane], n->id, am_quotes(why));
	settle(n, "inject_failed", why);
}

/* The injection has come to its end. */
static void
land(struct notice *n, enum am_verdict verdict)
{
	char detail[512];

	snprintf(detail, sizeof detail, "%s", n->in->detail);
	*(n->in->held ? &held : &flying) -= 1;
	am_inject_close(n->in);
	free(n->in);
	n->in = NULL;
	switch (verdict) {
	case AM_V_SILENT:
	case AM_V_DELIVERED:
		settle(n, "delivered", detail);
		break;
	case AM_V_DENIED:
		settle(n, "denied", detail);
		break;
	case AM_V_DUPLICATE:
		settle(n, "inject_failed", detail);
		break;
	case AM_V_UNCERTAIN:
		uncertain(n, detail);
		break;
	case AM_V_REFUSED:
		if (n->lane == AM_MAIL)
			am_warnx("mail doorbell %s: receiver refuses it; next try in an hour", n->id);
		tell(n, "held", detail);
		again(n, HOUR_MS);
		break;
	case AM_V_HOLD_OVER:
		again(n, HOUR_MS);
		break;
	default:
		failed(n, detail);
	}
}

static void
fly(struct notice *n)
{
	enum am_verdict verdict = am_inject_step(n->in);

	if (verdict == AM_V_HELD) {	/* no longer in the way of others */
		flying--;
		held++;
		if (am_journal_note(&journal, key_of(n), record(n, "held")) != 0)
			am_warn("%s/attempts/%s", conf.state, key_of(n));
		tell(n, "held", n->in->detail);
	} else if (verdict == AM_V_HOLD_OVER && session_lives(n)) {
		/* Its copy waits there still: a second one could be acted on as well. */
		n->in->deadline = am_now() + HOUR_MS;
	} else if (verdict != AM_V_WAITING) {
		land(n, verdict);
	}
}

/* ---- rounds ---- */

/* 1 when it only needs a session now. */
static int
ready(struct notice *n, long long now)
{
	if (n->state != ADMITTED || n->next > now || (n->lane == AM_PEER && held >= HELD_MAX))
		return 0;
	if (session_lives(n)) {		/* held there since before this daemon began */
		n->next = now + 10 * AGAIN_MS;
		return 0;
	}
	return 1;
}

static int
is_ancestor(pid_t pid)
{
	for (size_t i = 0; ancestors[i] != 0; i++)
		if (ancestors[i] == pid)
			return 1;
	return 0;
}

static void
tell_all(long long now, const char *outcome, const char *detail)
{
	for (size_t i = 0; i < count; i++)
		if (ready(all[i], now))
			tell(all[i], outcome, detail);
}

static void
dispatch(const struct am_rows *rows)
{
	static long long mute_since;
	long long now = am_now();
	char detail[128];

	ask_next = now + AGAIN_MS;
	if (rows->count == 0)
		return;
	if (rows->count > 1) {
		snprintf(detail, sizeof detail, "%d sessions run here, and it is not clear which one is meant", rows->count);
		tell_all(now, "ambiguous_target", detail);
		return;
	}
	if (rows->socket[0] != '/' || rows->key[0] != '/') {
		/* It has just begun and will have them in a moment, or it never will. */
		mute_since = mute_since == 0 ? now : mute_since;
		if (now - mute_since >= MUTE_MS)
			tell_all(now, "inject_failed", "error: the session has no messaging socket, or no key");
		return;
	}
	mute_since = 0;
	if (rows->pid > 0 && is_ancestor(rows->pid)) {
		snprintf(detail, sizeof detail, "target session pid %ld is an ancestor of this daemon", (long)rows->pid);
		if (!warned_ancestor++)
			am_warnx("%s; a message from its own descendant would count as its own word", detail);
		tell_all(now, "inject_failed", detail);
		return;
	}
	if ((rows->pid == 0 || ancestors[0] == 0) && !warned_unknown++)
		am_warnx("cannot check that the target session is not this daemon's ancestor: %s",
		    rows->pid == 0 ? "the source does not know its pid" : "/proc cannot be read");
	ask_next = 0;
	for (size_t i = 0; i < count; i++)
		if (flying < FLYING_MAX && ready(all[i], now))
			launch(all[i], rows);
}

/* Runs the source when somebody waits for a session, and acts on its answer. */
static void
ask(int wanted, long long now)
{
	static char last[400];
	struct am_rows rows;
	char why[400] = "";
	int got = 0;

	if (source.pid == 0) {
		if (!wanted || now < ask_next)
			return;
		if (am_source_start(&source, conf.source) != 0) {
			snprintf(why, sizeof why, "session source failed: %s", strerror(errno));
			got = -1;
		}
	} else {
		got = am_source_step(&source, &rows, why);
	}
	if (got < 0) {
		ask_next = now + AGAIN_MS;
		if (strcmp(last, why) != 0)	/* once, not in every round */
			am_warnx("%s", why);
	} else if (got > 0) {
		dispatch(&rows);
	}
	if (got != 0)
		strlcpy(last, why, sizeof last);
}

static void
sooner(long long *at, long long other)
{
	if (*at < 0 || other < *at)
		*at = other;
}

int
am_delivery_step(void)
{
	long long now = am_now(), at = -1;
	int wanted = 0;

	for (size_t i = 0; i < count; i++) {
		struct notice *n = all[i];

		if (n->state == FLYING)
			fly(n);
		wanted |= (n->state == NEW && n->next <= now) || (flying < FLYING_MAX && ready(n, now));
	}
	/* The source runs while the notices are looked at. */
	ask(wanted && source.pid == 0, now);
	for (size_t i = 0; i < count; i++)
		if (all[i]->state == NEW && all[i]->next <= now)
			look_at(all[i]);
	if (source.pid != 0)
		ask(0, now);
	for (size_t i = 0; i < count; i++) {
		struct notice *n = all[i];

		if (n->state == FLYING)
			sooner(&at, n->in->deadline);
		else if (n->state == NEW || (n->state == ADMITTED && n->next > now))
			sooner(&at, n->next);
		else if (flying < FLYING_MAX && source.pid == 0 && ready(n, now))
			sooner(&at, ask_next);
	}
	if (source.pid != 0)
		sooner(&at, source.deadline);
	now = am_now();
	return at < 0 ? -1 : at <= now ? 0 : at - now > 1000000 ? 1000000 : (int)(at - now);
}

int
am_delivery_poll(struct pollfd fds[AM_DELIVERY_FDS])
{
	int used = am_source_poll(&source, fds);

	for (size_t i = 0; i < count; i++)
		if (all[i]->state == FLYING && used + AM_INJECT_FDS <= AM_DELIVERY_FDS)
			used += am_inject_poll(all[i]->in, fds + used);
	return used;
}

/* ---- the ends of a life ---- */

void
am_delivery_stop(void)
{
	am_source_stop(&source);
	for (size_t i = 0; i < count; i++) {
		struct notice *n = all[i];

		if (n->state != FLYING)
			continue;
		if (!am_inject_sent(n->in))
			again(n, 0);
		else if (!n->in->held)
			uncertain(n, "the daemon was stopped while it waited for a receipt");
		am_inject_close(n->in);
		free(n->in);
		n->in = NULL;
	}
}

/* Removes a reply socket that a crash left behind; the name is checked, the record is not trusted. */
static void
remove_reply(const char *path)
{
	const char *name = path == NULL ? NULL : strrchr(path, '/');
	struct stat st;

	if (name != NULL && strlen(name) == 22 && strspn(name + 1, "0123456789abcdef") == 16 &&
	    strcmp(name + 17, ".sock") == 0 && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(path);
}

static void
recovered(const char *key, jv r)
{
	enum am_lane lane = strncmp(key, "peer-", 5) == 0 ? AM_PEER : AM_MAIL;
	const char *id = key + 5, *state = am_str(r, "state"), *start = am_str(r, "start");
	jv pid = am_get(r, "pid", JV_KIND_NUMBER);
	struct notice *n;

	if (strlen(key) == 37 && strspn(id, "0123456789abcdef") == 32) {
		remove_reply(am_str(r, "reply"));
		n = note(lane, id);
		if (state != NULL && strcmp(state, "held") == 0) {
			/* Offered again, but not while the session that holds it lives. */
			n->state = ADMITTED;
			n->session = jv_is_valid(pid) ? (pid_t)jv_number_value(pid) : 0;
			strlcpy(n->session_start, start == NULL ? "" : start, sizeof n->session_start);
		} else {
			uncertain(n, "the daemon ended before it knew what became of it");
		}
	}
	jv_free(pid);
}

void
am_delivery_recover(void)
{
	am_journal_recover(&journal, recovered);
	sort();
}
