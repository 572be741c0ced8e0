/*
 * inbox-delivery - turn notices into turns of the agent's session
 *
 * Watches the notices of both lanes and hands each one, once, to the session
 * that the session source names (spec connector, section 6). One process, no
 * threads: inotify wakes it, and while nothing happens only its heartbeat does.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "connector/claim.h"
#include "connector/delivery.h"
#include "connector/inject.h"
#include "connector/place.h"
#include "diag.h"
#include "doc.h"
#include "file.h"
#include "id.h"
#include "json.h"

#define HEARTBEAT_MS 15000

static const char usage[] =
    "usage: inbox-delivery\n"
    "Delivers the notices of both lanes to the agent's session. All it works on is named\n"
    "by AMAP_DELIVERY_* in the environment: see inbox-delivery(1).\n";

/* What must be set, in the order in which the lacking ones are named. */
enum { MAIL_NOTICES, PEER_NOTICES, PEER_MESSAGES, MAIL_CLAIM, PEER_CLAIM, STATE, OUTCOMES, SOURCE, REQUIRED };
static const char *const variable[REQUIRED] = {
	[MAIL_NOTICES] = "AMAP_DELIVERY_MAIL_NOTICE_DIR",
	[PEER_NOTICES] = "AMAP_DELIVERY_PEER_NOTICE_DIR",
	[PEER_MESSAGES] = "AMAP_DELIVERY_PEER_MESSAGE_DIR",
	[MAIL_CLAIM] = "AMAP_DELIVERY_MAIL_CLAIM",
	[PEER_CLAIM] = "AMAP_DELIVERY_PEER_CLAIM",
	[STATE] = "AMAP_DELIVERY_STATE_DIR",
	[OUTCOMES] = "AMAP_DELIVERY_OUTCOME_DIR",
	[SOURCE] = "AMAP_DELIVERY_SESSION_SOURCE",
};
static const char *value[REQUIRED];

static volatile sig_atomic_t stop;

static void
on_signal(int sig)
{
	stop |= sig != SIGCHLD;		/* a child's end only wakes the loop */
}

/* The value, cut in its place to what stands between white space; NULL when nothing does. */
static const char *
trimmed(const char *name)
{
	static const char space[] = " \t\r\n\v\f";
	char *s = getenv(name);
	size_t n;

	if (s == NULL)
		return NULL;
	s += strspn(s, space);
	for (n = strlen(s); n > 0 && strchr(space, s[n - 1]) != NULL; )
		s[--n] = '\0';
	return n == 0 ? NULL : s;
}

/* ---- start-up, in the order of the spec ---- */

static void
read_environment(void)
{
	char missing[512] = "";

	for (int i = 0; i < REQUIRED; i++)
		if ((value[i] = trimmed(variable[i])) == NULL) {
			strlcat(missing, missing[0] == '\0' ? "" : ", ", sizeof missing);
			strlcat(missing, variable[i], sizeof missing);
		}
	if (missing[0] != '\0')
		am_diex("fatal: missing required environment: %s", missing);
}

static double
read_window(void)
{
	const char *s = trimmed("AMAP_DELIVERY_RECEIPT_WINDOW_SECONDS");
	double seconds = 30;
	char *end = "";

	if (s != NULL)
		seconds = strtod(s, &end);
	if (*end != '\0' || !(seconds > 0))
		am_diex("fatal: AMAP_DELIVERY_RECEIPT_WINDOW_SECONDS must be a number greater than 0, not %s", am_quotes(s));
	return seconds;
}

static const char *
read_self(void)
{
	const char *s = trimmed("AMAP_DELIVERY_SELF");

	if (s != NULL && !am_is_addr(s, strlen(s)))
		am_diex("fatal: AMAP_DELIVERY_SELF is no addr-spec (name@domain): %s", am_quotes(s));
	return s;
}

static void
need_directory(const char *what, const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		am_diex("fatal: %s %s is not a directory", what, path);
	if (access(path, R_OK | X_OK) != 0)
		am_diex("fatal: %s %s is not readable", what, path);
}

static void
make_directory_of(const char *what, const char *path)
{
	char *dir = strdup(path), *slash = dir == NULL ? NULL : strrchr(dir, '/');

	if (slash == NULL)
		am_diex("fatal: %s %s names no directory", what, path);
	*slash = '\0';
	if (slash != dir && am_make_dirs(dir) != 0)
		am_die("fatal: %s %s cannot be created", what, dir);
	free(dir);
}

static void
check_paths(void)
{
	struct stat st;

	need_directory("mail notice directory", value[MAIL_NOTICES]);
	need_directory("peer notice directory", value[PEER_NOTICES]);
	need_directory("peer message directory", value[PEER_MESSAGES]);
	if (stat(value[SOURCE], &st) != 0 || !S_ISREG(st.st_mode) || access(value[SOURCE], X_OK) != 0)
		am_diex("fatal: session source %s is not an executable file", value[SOURCE]);
	if (am_make_dirs(value[STATE]) != 0)
		am_die("fatal: state directory %s cannot be created", value[STATE]);
	make_directory_of("directory of the mail claim", value[MAIL_CLAIM]);
	make_directory_of("directory of the peer claim", value[PEER_CLAIM]);
}

static int
take_claim(const char *lane, const char *path, const char *dir)
{
	char why[1024];

	if (am_claim_take(path, am_prog, dir, why) != 0) {
		am_warnx("fatal: %s claim: %s", lane, why);
		return -1;
	}
	if (why[0] != '\0')
		am_warnx("reclaiming stale consumer claim at %s: %s", path, why);
	return 0;
}

/* ---- life ---- */

static void
heartbeat(const char *started_at)
{
	char now[21], *text;
	jv claims = jv_object(), doc = jv_object();
	int dir = open(value[STATE], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t len;

	am_timestamp(time(NULL), now);
	claims = am_set_str(am_set_str(claims, "mail", value[MAIL_CLAIM]), "peer", value[PEER_CLAIM]);
	doc = am_set_str(am_set(doc, "claims", claims), "heartbeat_at", now);
	doc = am_set_str(am_set(doc, "pid", jv_number((double)getpid())), "started_at", started_at);
	text = am_json_text(doc, AM_COMPACT, &len);
	if (dir < 0 || am_publish(dir, "daemon.json", text, len, 0644) != 0)
		am_warn("heartbeat write failed");
	if (dir >= 0)
		close(dir);
	free(text);
	jv_free(doc);
}

/* Adds the watches; adding one that stands already changes nothing. */
static void
watch(int inotify)
{
	for (int i = MAIL_NOTICES; i <= PEER_NOTICES; i++)
		if (inotify_add_watch(inotify, value[i], IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR) < 0)
			am_warn("cannot watch %s", value[i]);
}

/* Reads all events away: whatever they say, the directories are listed anew. */
static int
woken(int inotify)
{
	char events[4096];
	int any = 0;

	while (read(inotify, events, sizeof events) > 0)
		any = 1;
	return any;
}

static void
run(const char *started_at)
{
	static struct pollfd fds[AM_DELIVERY_FDS + 1];
	int inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), count, wait;
	long long beat = am_now() + HEARTBEAT_MS, now;
	struct timespec limit;
	sigset_t none;

	if (inotify < 0)
		am_warn("no inotify: new notices are found every %d s only", HEARTBEAT_MS / 1000);
	sigemptyset(&none);
	am_delivery_recover();
	watch(inotify);
	am_delivery_scan();
	while (!stop) {
		now = am_now();
		if (now >= beat) {
			watch(inotify);		/* a directory may have been put in the place of another */
			am_delivery_scan();
			heartbeat(started_at);
			beat = now + HEARTBEAT_MS;
		} else if (woken(inotify)) {
			am_delivery_scan();
		}
		wait = am_delivery_step();
		if (wait < 0 || wait > beat - am_now())
			wait = beat > am_now() ? (int)(beat - am_now()) : 0;
		count = am_delivery_poll(fds);
		if (inotify >= 0)
			fds[count++] = (struct pollfd){ .fd = inotify, .events = POLLIN };
		limit = (struct timespec){ .tv_sec = wait / 1000, .tv_nsec = wait % 1000 * 1000000L };
		/* Signals come through here and nowhere else. */
		ppoll(fds, (nfds_t)count, &limit, &none);
	}
	am_delivery_stop();
}

static void
catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGCHLD, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	struct am_delivery_conf conf = { 0 };
	char started_at[21];
	int c;

	am_prog = "inbox-delivery";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		am_std_option(c, usage);
	if (optind != argc)
		am_usage(usage);
	read_environment();
	conf.window = read_window();
	conf.self = read_self();
	check_paths();
	conf.notices[AM_MAIL] = value[MAIL_NOTICES];
	conf.notices[AM_PEER] = value[PEER_NOTICES];
	conf.messages = value[PEER_MESSAGES];
	conf.state = value[STATE];
	conf.outcomes = value[OUTCOMES];
	conf.source = value[SOURCE];
	if (am_delivery_open(&conf) != 0) {
		am_warn("fatal: state directory %s", value[STATE]);
		return AM_PROBLEM;
	}
	catch_signals();
	if (take_claim("mail", value[MAIL_CLAIM], value[MAIL_NOTICES]) != 0)
		return AM_TROUBLE;
	if (take_claim("peer", value[PEER_CLAIM], value[PEER_NOTICES]) != 0) {
		am_claim_release(value[MAIL_CLAIM]);
		return AM_TROUBLE;
	}
	am_timestamp(time(NULL), started_at);
	heartbeat(started_at);
	am_warnx("started pid %ld; mail=%s peer=%s", (long)getpid(), value[MAIL_NOTICES], value[PEER_NOTICES]);
	run(started_at);
	am_claim_release(value[PEER_CLAIM]);
	am_claim_release(value[MAIL_CLAIM]);
	heartbeat(started_at);
	am_warnx("stopped");
	return AM_OK;
}
