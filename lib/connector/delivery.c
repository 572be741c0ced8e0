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
#include "connector/notices.h"
#include "connector/outcome.h"
#include "connector/proc.h"
#include "connector/source.h"
#include "connector/target.h"
#include "diag.h"
#include "id.h"
#include "json.h"

#define AGAIN_MS 500		/* while a notice waits for a session */
#define BODY_MS 1000		/* for a message that comes after its notice */
#define HOUR_MS 3600000LL
#define MAIL_WAIT_MS 5000
#define FLYING_MAX 8
#define HELD_MAX 64		/* of these none keeps others waiting */

static struct am_notices notices;
static struct am_delivery_conf conf;
static struct am_journal journal;
static struct am_source source;
static int flying, held;
static long long ask_next;	/* am_now before which the source is not run again */

int
am_delivery_open(const struct am_delivery_conf *given)
{
	conf = *given;
	am_target_open();
	notices.journal = &journal;
	return am_journal_open(&journal, conf.state);
}

/* ---- what is told ---- */

static void
tell(struct am_notice *n, const char *outcome, const char *detail)
{
	if (n->lane != AM_PEER || (n->told != NULL && strcmp(n->told, outcome) == 0))
		return;
	n->told = outcome;
	if (am_outcome_write(conf.outcomes, n->id, outcome, detail) != 0)
		am_warn("cannot write outcome %s for peer/%s", outcome, n->id);
}

/* It is over: never again. Where the ledger cannot be written, this life remembers and the attempt is left. */
static void
settle(struct am_notice *n, const char *outcome, const char *detail)
{
	n->state = AM_N_DONE;
	if (am_journal_end(&journal, am_notice_key(n), 1) != 0)
		am_warn("%s/ledger/%s", conf.state, am_notice_key(n));
	tell(n, outcome, detail);
}

static void
again(struct am_notice *n, long long after)
{
	n->state = AM_N_ADMITTED;
	n->session = 0;
	n->next = am_now() + after;
	if (am_journal_end(&journal, am_notice_key(n), 0) != 0)
		am_warn("%s/attempts/%s", conf.state, am_notice_key(n));
}

static long long
backoff(struct am_notice *n)
{
	long long ms = n->fails < 8 ? 2000LL << n->fails : 300000;

	n->fails++;
	return ms;
}

/* It did not arrive, and is tried again. */
static void
failed(struct am_notice *n, const char *detail)
{
	if (n->lane == AM_MAIL)
		am_warnx("mail doorbell %s: inject failed (%s); will retry", n->id, am_quotes(detail));
	tell(n, "inject_failed", detail);
	again(n, backoff(n));
}

void
am_delivery_scan(void)
{
	am_notices_scan(&notices, conf.notices);
}

/* ---- admission ---- */

static enum am_admission
admit(struct am_notice *n, jv *text, char why[500])
{
	int dir = open(conf.notices[n->lane], O_RDONLY | O_DIRECTORY | O_CLOEXEC), messages;
	enum am_admission admission = AM_CANNOT_TELL;

	if (dir < 0) {
		snprintf(why, 500, "%s: %s", conf.notices[n->lane], strerror(errno));
		return admission;
	}
	if (n->lane == AM_MAIL) {
		admission = am_mail_admit(dir, n->id, conf.self, text, why);
	} else if ((messages = open(conf.messages, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
		admission = am_peer_admit(dir, messages, n->id, conf.self, text, why);
		close(messages);
	} else {
		snprintf(why, 500, "%s: %s", conf.messages, strerror(errno));
	}
	close(dir);
	return admission;
}

/* Looks at a notice for the first time, or for the last because its message did not come. */
static void
look_at(struct am_notice *n)
{
	char why[500];

	switch (admit(n, NULL, why)) {
	case AM_ADMITTED:
		n->state = AM_N_ADMITTED;
		n->next = n->fails = 0;
		return;
	case AM_CANNOT_TELL:		/* or a directory that another takes the place of */
		if (!n->waits)
			am_warnx("%s notice %s: cannot be looked at now, tried again each second: %s", am_lane_name[n->lane], n->id, why);
		n->waits = 1;
		n->next = am_now() + BODY_MS;
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
record(const struct am_notice *n, const char *state)
{
	jv r = am_set_str(am_set_str(jv_object(), "state", state), "reply", n->in->reply.sun_path);

	return am_set_str(am_set(r, "pid", jv_number((double)n->session)), "start", n->session_start);
}

static void
address_to(struct am_notice *n, pid_t pid)
{
	struct am_proc p;
	int known = pid > 0 && am_proc_read(pid, &p) == 0;

	n->session = known ? pid : 0;
	strlcpy(n->session_start, known ? p.start : "", sizeof n->session_start);
}

static int
session_lives(const struct am_notice *n)
{
	return n->session != 0 && am_proc_is(n->session, n->session_start);
}

static void
launch(struct am_notice *n, const struct am_rows *to)
{
	long long window = (long long)(conf.window < 1e6 ? conf.window * 1000 : 1e9);
	int mail = n->lane == AM_MAIL;
	char why[600];
	jv text;

	if (admit(n, &text, why) != AM_ADMITTED) {	/* it was, a moment ago: looked at again, as if it were new */
		n->state = AM_N_NEW;
		return;
	}
	if ((n->in = malloc(sizeof *n->in)) == NULL)
		abort();
	address_to(n, to->pid);
	if (am_inject_open(n->in, to->socket, to->key, text) != 0) {
		snprintf(why, sizeof why, "error: %s", n->in->detail);
	} else if (am_journal_begin(&journal, am_notice_key(n), record(n, "sent")) != 0) {	/* nothing is sent that could not be remembered */
		snprintf(why, sizeof why, "error: %s/attempts: %s", conf.state, strerror(errno));
		am_inject_close(n->in);
	} else {
		am_inject_send(n->in, mail && window > MAIL_WAIT_MS ? MAIL_WAIT_MS : window, mail ? 0 : HOUR_MS);
		n->state = AM_N_FLYING;
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
uncertain(struct am_notice *n, const char *detail)
{
	char why[600];

	snprintf(why, sizeof why, "uncertain, so it is not sent again: %s", detail);
	am_warnx("%s notice %s: %s", am_lane_name[n->lane], n->id, am_quotes(why));
	settle(n, "inject_failed", why);
}

/* The injection has come to its end. */
static void
land(struct am_notice *n, enum am_verdict verdict)
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
fly(struct am_notice *n)
{
	enum am_verdict verdict = am_inject_step(n->in);

	if (verdict == AM_V_HELD) {	/* no longer in the way of others */
		flying--;
		held++;
		if (am_journal_note(&journal, am_notice_key(n), record(n, "held")) != 0)
			am_warn("%s/attempts/%s", conf.state, am_notice_key(n));
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
ready(struct am_notice *n, long long now)
{
	if (n->state != AM_N_ADMITTED || n->next > now || (n->lane == AM_PEER && held >= HELD_MAX))
		return 0;
	if (session_lives(n)) {		/* held there since before this daemon began */
		n->next = now + 10 * AGAIN_MS;
		return 0;
	}
	return 1;
}

static void
tell_all(long long now, const char *outcome, const char *detail)
{
	for (size_t i = 0; i < notices.count; i++)
		if (ready(notices.all[i], now))
			tell(notices.all[i], outcome, detail);
}

static void
dispatch(const struct am_rows *rows)
{
	long long now = am_now();
	const char *outcome;
	char detail[128];

	ask_next = now + AGAIN_MS;
	if (!am_target_fit(rows, now, &outcome, detail)) {
		if (outcome != NULL)
			tell_all(now, outcome, detail);
		return;
	}
	ask_next = 0;
	for (size_t i = 0; i < notices.count; i++)
		if (flying < FLYING_MAX && ready(notices.all[i], now))
			launch(notices.all[i], rows);
}

/* Runs the source when somebody waits for a session, and acts on its answer. */
static void
ask(int wanted, long long now)
{
	static char last[400];
	struct am_rows rows;
	char why[400] = "";
	int got = 0;

	if (!source.runs) {
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

	for (size_t i = 0; i < notices.count; i++) {
		struct am_notice *n = notices.all[i];

		if (n->state == AM_N_FLYING)
			fly(n);
		wanted |= (n->state == AM_N_NEW && n->next <= now) || (flying < FLYING_MAX && ready(n, now));
	}
	/* The source runs while the notices are looked at. */
	ask(wanted && !source.runs, now);
	for (size_t i = 0; i < notices.count; i++)
		if (notices.all[i]->state == AM_N_NEW && notices.all[i]->next <= now)
			look_at(notices.all[i]);
	if (source.runs)
		ask(0, now);
	for (size_t i = 0; i < notices.count; i++) {
		struct am_notice *n = notices.all[i];

		if (n->state == AM_N_FLYING)
			sooner(&at, n->in->deadline);
		else if (n->state == AM_N_NEW || (n->state == AM_N_ADMITTED && n->next > now))
			sooner(&at, n->next);
		else if (flying < FLYING_MAX && !source.runs && ready(n, now))
			sooner(&at, ask_next);
	}
	if (source.runs)
		sooner(&at, source.deadline);
	now = am_now();
	return at < 0 ? -1 : at <= now ? 0 : at - now > 1000000 ? 1000000 : (int)(at - now);
}

int
am_delivery_poll(struct pollfd fds[AM_DELIVERY_FDS])
{
	int used = am_source_poll(&source, fds);

	for (size_t i = 0; i < notices.count; i++)
		if (notices.all[i]->state == AM_N_FLYING && used + AM_INJECT_FDS <= AM_DELIVERY_FDS)
			used += am_inject_poll(notices.all[i]->in, fds + used);
	return used;
}

/* ---- the ends of a life ---- */

void
am_delivery_stop(void)
{
	am_source_stop(&source);
	for (size_t i = 0; i < notices.count; i++) {
		struct am_notice *n = notices.all[i];

		if (n->state != AM_N_FLYING)
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
	struct am_notice *n;

	if (strlen(key) == 37 && strspn(id, "0123456789abcdef") == 32) {
		remove_reply(am_str(r, "reply"));
		n = am_notices_note(&notices, lane, id);
		if (state != NULL && strcmp(state, "held") == 0) {
			/* Offered again, but not while the session that holds it lives. */
			n->state = AM_N_ADMITTED;
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
	am_notices_sort(&notices);
}
