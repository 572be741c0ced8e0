/*
 * amap-session - make any command a member of the fleet
 *
 * Stands where Claude Code would: it opens a session's messaging socket, queues
 * the turns that inbox-delivery brings, and runs a command once for each, the
 * body on standard input and its fields in the environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "connector/inbound.h"
#include "connector/inject.h"
#include "connector/place.h"
#include "connector/session.h"
#include "connector/turn.h"
#include "diag.h"
#include "file.h"
#include "id.h"
#include "json.h"

#define QUEUE_MAX 50
#define HELD_MAX 100
#define TRIES 5
#define DELAY_MAX_MS 60000
#define STOP_MS 5000		/* for the command to end after SIGTERM */

static const char usage[] =
    "usage: amap-session [--settings FILE] [--tries N] -- COMMAND [ARGUMENT ...]\n"
    "  --settings FILE  read crossSessionInbound (accept, hold or refuse) there, at each message\n"
    "  --tries N        run a failing command at most N times for one turn (5)\n";

extern char **environ;

/* Messages that wait, the oldest first. */
struct queue {
	struct am_message m[HELD_MAX];
	size_t count;
};

static struct am_inbound inbound;
static struct queue waiting, holding;
static const char *settings;
static char **command;
static unsigned tries = TRIES;
static struct {
	pid_t pid;		/* of the command, 0 when none runs */
	struct am_message m;	/* whose text is NULL when there is no turn */
	unsigned failed;
	long long next;		/* when to run it again */
} turn;
static volatile sig_atomic_t stop;

static void
on_signal(int sig)
{
	if (sig == SIGTERM || sig == SIGINT)
		stop = 1;		/* others only wake the loop */
}

static void
push(struct queue *q, const struct am_message *m)
{
	q->m[q->count++] = *m;
}

static struct am_message
shift(struct queue *q)
{
	struct am_message m = q->m[0];

	memmove(q->m, q->m + 1, --q->count * sizeof q->m[0]);
	return m;
}

static void
receipt(const struct am_message *m, const char *status, const char *detail, const char *reason)
{
	int rc = am_inbound_receipt(&inbound, m, status, detail, reason);

	am_warnx("receipt status=%s sent=%s", status, rc == 0 ? "yes" : strerror(errno));
}

/* ---- what comes in ---- */

enum mode { ACCEPT, HOLD, REFUSE };

/* What the settings say now; a value or a file that cannot be understood holds everything. */
static enum mode
mode(void)
{
	enum mode m = HOLD;
	const char *word;
	jv doc;

	if (settings == NULL)
		return ACCEPT;
	doc = am_json_read(settings, AM_SESSION_FILE_MAX);
	word = am_str(doc, "crossSessionInbound");
	if (!jv_is_valid(doc))
		am_warnx("%s: %s", settings, am_json_why(jv_copy(doc)));
	else if (!am_has(doc, "crossSessionInbound") || (word != NULL && strcmp(word, "accept") == 0))
		m = ACCEPT;
	else if (word != NULL && strcmp(word, "refuse") == 0)
		m = REFUSE;
	jv_free(doc);
	return m;
}

static void
take(struct am_message *m)
{
	struct am_message oldest;

	switch (mode()) {
	case REFUSE:
		receipt(m, "expired", "refused", "this session takes no messages: its crossSessionInbound is refuse");
		free(m->text);
		return;
	case HOLD:
		if (holding.count == HELD_MAX) {
			oldest = shift(&holding);
			receipt(&oldest, "expired", NULL, "too many messages are held");
			free(oldest.text);
		}
		push(&holding, m);
		receipt(m, "held", NULL, "held until crossSessionInbound is accept and the session is told so");
		return;
	case ACCEPT:
		if (waiting.count == QUEUE_MAX) {
			receipt(m, "dropped", "queue-full", "too many messages wait");
			free(m->text);
			return;
		}
		push(&waiting, m);
	}
}

/* Lets go what was held, once the settings allow it. */
static void
release(void)
{
	if (holding.count == 0 || mode() != ACCEPT)
		return;
	while (holding.count > 0 && waiting.count < QUEUE_MAX) {
		struct am_message m = shift(&holding);

		push(&waiting, &m);
	}
}

/* ---- turns ---- */

/* Sets the variable, or takes it away where there is no value. */
static void
export(const char *name, const char *text)
{
	if (text == NULL || setenv(name, text, 1) != 0)
		unsetenv(name);
}

/* What the notice in the peer tree, which the router wrote, tells besides: the subject, and what it answers. */
static void
export_notice(const char *id)
{
	const char *peer = am_env("AMAP_PEER_DIR");
	char name[300];
	jv notice = jv_invalid(), message;
	int dir = peer == NULL || id == NULL ? -1 : open(peer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0 && snprintf(name, sizeof name, "notices/notice-%s.json", id) < (int)sizeof name) {
		size_t len;
		char *text = am_read_regular(dir, name, 262144, &len);

		if (text != NULL)
			notice = am_json_parse(text, len);
		free(text);
	}
	message = am_get(notice, "message", JV_KIND_OBJECT);
	if (am_str(message, "id") == NULL || strcmp(am_str(message, "id"), id) != 0) {
		jv_free(message);
		message = jv_invalid();
	}
	export("AMAP_TURN_SUBJECT", am_str(message, "subject"));
	export("AMAP_TURN_IN_REPLY_TO", am_str(message, "in_reply_to"));
	jv_free(message);
	jv_free(notice);
	if (dir >= 0)
		close(dir);
}

/* Starts the command for the turn; -1 with errno. */
static int
start(const struct am_turn *t)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	FILE *body = tmpfile();		/* a file and no pipe: the command reads when it likes, or not at all */
	int rc;

	if (body == NULL)
		return -1;
	if (fcntl(fileno(body), F_SETFD, FD_CLOEXEC) != 0 || fwrite(t->body, 1, t->body_len, body) != t->body_len ||
	    fflush(body) != 0 || lseek(fileno(body), 0, SEEK_SET) != 0) {
		rc = errno;
		fclose(body);
		errno = rc;
		return -1;
	}
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fileno(body), STDIN_FILENO);
	posix_spawnattr_init(&attr);
	/* A group of its own, so that a stop reaches what the command has started. */
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	rc = posix_spawnp(&turn.pid, command[0], &files, &attr, command, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	fclose(body);
	if (rc != 0)
		turn.pid = 0;
	errno = rc;
	return rc == 0 ? 0 : -1;
}

static void
end_turn(void)
{
	free(turn.m.text);
	turn.m.text = NULL;
	turn.failed = 0;
}

static void
fail_turn(const char *why)
{
	long long delay = 1000LL << (turn.failed < 6 ? turn.failed : 6);

	if (++turn.failed >= tries) {
		am_warnx("turn-given-up after=%u why=%s", turn.failed, why);
		end_turn();
		return;
	}
	delay = delay > DELAY_MAX_MS ? DELAY_MAX_MS : delay;
	am_warnx("turn-failed try=%u why=%s again_ms=%lld", turn.failed, why, delay);
	turn.next = am_now() + delay;
}

static void
run_turn(void)
{
	struct am_turn t;
	char count[16];

	am_turn_parse(turn.m.text, turn.m.len, &t);
	snprintf(count, sizeof count, "%u", turn.failed + 1);
	export("AMAP_TURN_KIND", t.kind);
	export("AMAP_TURN_FROM", t.from);
	export("AMAP_TURN_ID", t.id);
	export("AMAP_TURN_TRY", count);
	export_notice(t.id);
	if (start(&t) != 0) {
		fail_turn(strerror(errno));
	} else {
		am_warnx("turn kind=%s from=%s id=%s bytes=%zu try=%s", t.kind, t.from == NULL ? "-" : t.from,
		    t.id == NULL ? "-" : t.id, t.body_len, count);
		if (turn.failed == 0)
			receipt(&turn.m, "delivered", NULL, "the command has it");
	}
	am_turn_free(&t);
}

/* Notices that the command has ended. */
static void
reap(void)
{
	char why[40];
	int status;

	if (turn.pid == 0 || waitpid(turn.pid, &status, WNOHANG) != turn.pid)
		return;
	turn.pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		am_warnx("turn-done");
		end_turn();
		return;
	}
	if (WIFSIGNALED(status))
		snprintf(why, sizeof why, "signal-%d", WTERMSIG(status));
	else
		snprintf(why, sizeof why, "exit-%d", WEXITSTATUS(status));
	fail_turn(why);
}

/* ---- life ---- */

/* What was not begun goes back to the sender, who may try again. */
static void
give_back(struct queue *q)
{
	while (q->count > 0) {
		struct am_message m = shift(q);

		receipt(&m, "expired", NULL, "the session ended");
		free(m.text);
	}
}

static void
stop_command(void)
{
	long long limit = am_now() + STOP_MS;
	int status;

	if (turn.pid == 0)
		return;
	kill(-turn.pid, SIGTERM);
	while (waitpid(turn.pid, &status, WNOHANG) == 0) {
		if (am_now() >= limit)
			kill(-turn.pid, SIGKILL);
		poll(NULL, 0, 10);
	}
}

/* Milliseconds until something is to be done that no event brings; -1 for never. */
static long long
rest(void)
{
	long long now = am_now();

	if (turn.pid != 0)
		return -1;
	if (turn.m.text == NULL)
		return waiting.count > 0 ? 0 : -1;
	return turn.next > now ? turn.next - now : 0;
}

static void
run(void)
{
	struct pollfd fds[AM_INBOUND_FDS];
	struct timespec limit;
	sigset_t none;
	long long ms;

	sigemptyset(&none);
	while (!stop) {
		reap();
		am_inbound_step(&inbound, take);
		release();
		if (turn.m.text == NULL && waiting.count > 0) {
			turn.m = shift(&waiting);
			turn.next = 0;
		}
		if (turn.m.text != NULL && turn.pid == 0 && turn.next <= am_now())
			run_turn();
		ms = rest();
		limit = (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
		ppoll(fds, (nfds_t)am_inbound_poll(&inbound, fds), ms < 0 ? NULL : &limit, &none);
	}
}

static void
catch_signals(void)
{
	static const int ours[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
		sigaddset(&set, ours[i]);
		sigaction(ours[i], &sa, NULL);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "settings", required_argument, NULL, 's' },
		{ "tries", required_argument, NULL, 't' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct am_session_entry entry;
	char why[300], *end;
	unsigned long n;
	int c;

	am_prog = "amap-session";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 's':
			settings = optarg;
			break;
		case 't':
			n = strtoul(optarg, &end, 10);
			if (*optarg < '0' || *optarg > '9' || *end != '\0' || n < 1 || n > 1000)
				am_diex("--tries %s: a number from 1 to 1000 is wanted", am_quotes(optarg));
			tries = (unsigned)n;
			break;
		default:
			am_std_option(c, usage);
		}
	}
	if (optind == argc)
		am_usage(usage);
	command = argv + optind;
	catch_signals();
	if (am_env("HOME") == NULL)
		am_diex("HOME is not set: the session could not be found");
	if (am_inbound_open(&inbound, why) != 0)
		am_diex("%s", why);
	if (am_session_enter(&entry, am_env("HOME"), "amap-session", inbound.path, inbound.token) != 0) {
		am_warn("%s/" AM_SESSIONS, am_env("HOME"));
		am_inbound_close(&inbound);
		return AM_TROUBLE;
	}
	am_warnx("listening pid=%ld socket=%s", (long)getpid(), inbound.path);
	run();
	am_session_leave(&entry);
	give_back(&waiting);
	give_back(&holding);
	stop_command();
	am_inbound_close(&inbound);
	am_session_forget(&entry);
	end_turn();
	am_warnx("stopped");
	return AM_OK;
}
