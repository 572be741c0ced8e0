#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "cli.h"
#include "enter.h"
#include "policy.h"
#include "record.h"
#include "relay.h"
#include "say.h"
#include "supervise.h"

#define EXEC_WORDS 1024
#define EXEC_WORD_MAX (32u * 1024)
#define EXEC_BYTES (256u * 1024)
#define DELETE_GRACE 2
#define LIFECYCLE_S 300

/* ---- exec ---- */

struct command {
	const char *name, *workdir;
	long timeout;
	int tty, login;
	jv env;
	char **words;
	int n_words;
};

static int
read_exec(struct command *x, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "workdir", required_argument, NULL, 'w' },
		{ "timeout", required_argument, NULL, 'T' },
		{ "tty", no_argument, NULL, 't' },
		{ "no-tty", no_argument, NULL, 'N' },
		{ "env", required_argument, NULL, 'e' },
		{ "no-login-shell", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 }
	};
	size_t bytes = 0;
	char *end;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "+n:", longopts, NULL)) != -1) {
		switch (c) {
		case 'n': x->name = optarg; break;
		case 'w': x->workdir = optarg; break;
		case 'T':
			x->timeout = strtol(optarg, &end, 10);
			if (optarg[0] < '0' || optarg[0] > '9' || *end != '\0' || x->timeout > 1000000000)
				return ams_cli_usage("--timeout: not a number of seconds: %s", am_quotes(optarg));
			break;
		case 't': x->tty = 1; break;
		case 'N': x->tty = -1; break;
		case 'e':
			if (strchr(optarg, '=') == NULL || optarg[0] == '=')
				return ams_cli_usage("--env: not KEY=VALUE: %s", am_quotes(optarg));
			end = strchr(optarg, '=');
			x->env = jv_object_set(x->env, jv_string_sized(optarg, (int)(end - optarg)), jv_string(end + 1));
			break;
		case 'l': x->login = 0; break;
		default: return ams_cli_usage("sandbox exec: usage");
		}
	}
	x->words = argv + optind;
	x->n_words = argc - optind;
	if (x->name == NULL)
		return ams_cli_usage("sandbox exec: --name is required");
	if (x->n_words == 0)
		return ams_cli_usage("sandbox exec: a command is required after --");
	for (int i = 0; i < x->n_words; i++) {
		size_t n = strlen(x->words[i]);

		bytes += n;
		if (n > EXEC_WORD_MAX || bytes > EXEC_BYTES || x->n_words > EXEC_WORDS)
			return ams_refuse(AMS_INVALID_ARGUMENT, "command exceeds %d arguments, %u bytes each or %u bytes in all", EXEC_WORDS,
			    EXEC_WORD_MAX, EXEC_BYTES);
	}
	if (x->workdir != NULL && strchr(x->workdir, '\n') != NULL)
		return ams_refuse(AMS_INVALID_ARGUMENT, "workdir must not contain newlines");
	if (x->tty == 0)
		x->tty = isatty(0) && isatty(1) ? 1 : -1;
	return 0;
}

/* The words of amap-confine for this command; the array only, from malloc. */
static char **
confine_words(const struct command *x, jv rec)
{
	static char status[8], policy[8], env[8], script[] = "exec \"$@\"";
	jv limits = am_get(rec, "limits", JV_KIND_ARRAY);
	int n_limits = jv_is_valid(limits) ? jv_array_length(jv_copy(limits)) : 0;
	char **v = calloc((size_t)x->n_words + (size_t)n_limits * 2 + 24, sizeof *v);
	size_t n = 0;

	if (v == NULL)
		abort();
	snprintf(status, sizeof status, "%d", AMS_FD_STATUS);
	snprintf(policy, sizeof policy, "%d", AMS_FD_POLICY);
	snprintf(env, sizeof env, "%d", AMS_FD_ENV);
	v[n++] = "amap-confine";
	v[n++] = "--entered";
	v[n++] = "--status-fd";
	v[n++] = status;
	v[n++] = "--policy-fd";
	v[n++] = policy;
	v[n++] = "--env-fd";
	v[n++] = env;
	v[n++] = "--chdir";
	v[n++] = x->workdir != NULL ? (char *)(uintptr_t)x->workdir : AMS_WORKDIR;
	if (x->tty > 0)
		v[n++] = (char *)(uintptr_t)ams_tty_word();
	for (int i = 0; i < n_limits; i++) {
		jv s = jv_array_get(jv_copy(limits), i);

		v[n++] = "--limit";
		v[n++] = strdup(jv_string_value(s));
		jv_free(s);
	}
	v[n++] = "--";
	if (x->login) {
		v[n++] = "/bin/bash";
		v[n++] = "-lc";
		v[n++] = script;
		v[n++] = "bash";
	}
	for (int i = 0; i < x->n_words; i++)
		v[n++] = x->words[i];
	jv_free(limits);
	return v;
}

static int
env_descriptor(jv rec, jv more)
{
	jv env = am_get(rec, "env", JV_KIND_OBJECT);
	char **v;
	int n = 0, fd;

	env = jv_object_merge(jv_is_valid(env) ? env : jv_object(), more);
	if ((v = calloc((size_t)jv_object_length(jv_copy(env)) + 1, sizeof *v)) == NULL)
		abort();
	jv_object_foreach(env, key, value) {
		if (asprintf(&v[n++], "%s=%s", jv_string_value(key), jv_string_value(value)) < 0)
			abort();
		jv_free(key);
		jv_free(value);
	}
	fd = ams_launch_env(v);
	while (n > 0)
		free(v[--n]);
	free(v);
	jv_free(env);
	return fd;
}

int
ams_cli_exec(struct ams_cli *cli, int argc, char *argv[])
{
	struct command x = { .login = 1, .env = jv_object() };
	struct ams_enter e = { 0 };
	struct ams_launch id = { 0 };
	struct ams_policy policy;
	struct ams_run run;
	int rc = read_exec(&x, argc, argv), unit;
	char why[512], *text;
	size_t len;
	jv rec;

	if (rc != 0 || (unit = ams_cli_open(cli, x.name)) < 0) {
		jv_free(x.env);
		return rc != 0 ? rc : 1;
	}
	ams_unit_run(unit, &run);
	if (!ams_phase_is(&run, "Ready")) {
		jv_free(x.env);
		return ams_fail("sandbox '%s' is not ready (phase: %s); wait for it to reach Ready state", x.name, run.phase);
	}
	rec = ams_unit_read(unit, "record.json");
	text = am_read_regular(unit, "policy.yaml", AM_YAML_MAX, &len);
	if (!jv_is_valid(rec) || text == NULL || ams_policy_parse(text, len, &policy, why) != AMS_POLICY_FINE)
		return ams_fail("sandbox '%s': its record cannot be read", x.name);
	rc = ams_launch_identity(&id, policy.user, policy.group);
	ams_policy_free(&policy);
	free(text);
	e.init = run.init;
	e.uid = id.uid;
	e.gid = id.gid;
	e.tty = x.tty > 0;
	e.timeout = x.timeout;
	e.policy = am_open_regular(unit, "policy.yaml", AM_YAML_MAX);
	e.env = env_descriptor(rec, x.env);
	e.args = confine_words(&x, rec);
	jv_free(rec);
	if (rc != 0 || e.policy < 0 || e.env < 0)
		return ams_fail("sandbox '%s': %s", x.name, rc != 0 ? id.why : strerror(errno));
	if (ams_enter(&e) == 0)
		return e.status;
	if (e.status == 126 || e.status == 127) {
		am_warnx("%s", e.why);
		return e.status;
	}
	return ams_fail("sandbox '%s': exec: %s", x.name, e.why);
}

/* ---- connect ---- */

static void
send_size(int fd)
{
	struct winsize size;
	unsigned char m[5] = { 'r' };

	if (ioctl(0, TIOCGWINSZ, &size) != 0)
		return;
	m[1] = (unsigned char)(size.ws_row >> 8);
	m[2] = (unsigned char)size.ws_row;
	m[3] = (unsigned char)(size.ws_col >> 8);
	m[4] = (unsigned char)size.ws_col;
	(void)!send(fd, m, sizeof m, MSG_NOSIGNAL);
}

/* What was typed, to the supervisor; 1 when it ended with Ctrl-P Ctrl-Q. */
static int
send_typed(int fd, const unsigned char *typed, size_t n, int *after_p)
{
	unsigned char m[3 + 512] = { 'd' };
	size_t k = 3;

	for (size_t i = 0; i < n; i++) {
		if (*after_p && typed[i] == 'Q' - '@')
			return 1;
		if (*after_p)
			m[k++] = 'P' - '@';
		*after_p = typed[i] == 'P' - '@';
		if (!*after_p)
			m[k++] = typed[i];
	}
	m[1] = (unsigned char)((k - 3) >> 8);
	m[2] = (unsigned char)(k - 3);
	if (k > 3)
		(void)!send(fd, m, k, MSG_NOSIGNAL);
	return 0;
}

static int
attach(int fd)
{
	struct signalfd_siginfo info;
	int signals, in = 0, after_p = 0, terminal;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if ((signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return -1;
	terminal = ams_raw_begin();
	send_size(fd);
	for (;;) {
		struct pollfd p[] = { { fd, POLLIN, 0 }, { in, POLLIN, 0 }, { signals, POLLIN, 0 } };
		unsigned char buf[16384];
		ssize_t n;

		if (poll(p, 3, -1) < 0)
			break;
		if (p[0].revents != 0 && ((n = read(fd, buf, sizeof buf)) <= 0 || am_write_all(1, buf, (size_t)n) != 0))
			break;
		if (p[1].revents != 0) {
			/* halved, because a held Ctrl-P comes on top */
			if ((n = read(in, buf, 256)) <= 0)
				in = -1;
			else if (send_typed(fd, buf, (size_t)n, &after_p))
				break;
		}
		if (p[2].revents != 0 && read(signals, &info, sizeof info) == sizeof info) {
			if (info.ssi_signo != SIGWINCH)
				break;
			send_size(fd);
		}
	}
	ams_raw_end();
	if (terminal)
		fputs("\r\n", stderr);
	return 0;
}

/* By its short name from inside the directory, as the supervisor bound it. */
static int
call_supervisor(int unit)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "ctl" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), saved;

	if (fd >= 0 && fchdir(unit) == 0 && connect(fd, (struct sockaddr *)&sun, sizeof sun) == 0)
		return fd;
	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

/* The last MiB of what was written before we came, as the supervisor tells it. */
static int
replay(int fd)
{
	char control[CMSG_SPACE(2 * sizeof(int))], buf[16384];
	struct ams_replay past;
	struct iovec iov = { &past, sizeof past };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	unsigned long long skip;
	struct cmsghdr *c;
	int fds[2];

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_WAITALL) != sizeof past || (c = CMSG_FIRSTHDR(&msg)) == NULL ||
	    c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return -1;
	memcpy(fds, CMSG_DATA(c), sizeof fds);
	skip = past.size[0] + past.size[1] > AMS_RING_MAX ? past.size[0] + past.size[1] - AMS_RING_MAX : 0;
	for (int i = 0; i < 2; i++) {
		off_t at = (off_t)(skip < past.size[i] ? skip : past.size[i]), end = (off_t)past.size[i];

		skip -= (unsigned long long)at;
		while (at < end) {
			ssize_t n = pread(fds[i], buf, end - at > (off_t)sizeof buf ? sizeof buf : (size_t)(end - at), at);

			if (n <= 0 || am_write_all(1, buf, (size_t)n) != 0)
				break;
			at += n;
		}
		close(fds[i]);
	}
	return 0;
}

int
ams_cli_connect(struct ams_cli *cli, int argc, char *argv[])
{
	int unit, fd, i = argc > 2 && strcmp(argv[1], "--") == 0 ? 2 : 1;
	struct ams_run run;
	size_t len;
	char *past;

	if (argc != i + 1 || argv[i][0] == '-')
		return ams_cli_usage("sandbox connect: needs one NAME");
	if ((unit = ams_cli_open(cli, argv[i])) < 0)
		return 1;
	fflush(stdout);
	if ((fd = call_supervisor(unit)) >= 0 && replay(fd) != 0) {
		close(fd);
		fd = -1;
	}
	if (fd < 0 && (past = ams_ring_last(unit, "output", AMS_RING_MAX, &len)) != NULL) {
		(void)am_write_all(1, past, len);
		free(past);
	}
	ams_unit_run(unit, &run);
	if (fd < 0 && (ams_phase_is(&run, "Completed") || ams_phase_is(&run, "Error")) && run.exit_code >= 0)
		return run.exit_code;		/* it ended before we came: its status is the answer */
	if (fd < 0)
		return ams_fail("sandbox '%s' is not ready (phase: %s); wait for it to reach Ready state", argv[i], run.phase);
	attach(fd);
	close(fd);
	ams_unit_run(unit, &run);
	close(unit);
	return run.supervisor.pid == 0 && run.exit_code >= 0 ? run.exit_code : 0;
}

/* ---- stop, start, delete ---- */

int
ams_cli_stop(struct ams_cli *cli, int argc, char *argv[])
{
	struct ams_run run;
	int unit;

	if (argc != 2 || argv[1][0] == '-')
		return ams_cli_usage("sandbox stop: needs one NAME");
	if ((unit = ams_cli_open(cli, argv[1])) < 0)
		return 1;
	ams_unit_run(unit, &run);
	if (!ams_phase_is(&run, "Ready") && !ams_phase_is(&run, "Starting") && !ams_phase_is(&run, "Provisioning"))
		return ams_refuse(AMS_FAILED_PRECONDITION, "sandbox must be Ready to stop (current phase: %s)", run.phase);
	ams_unit_halt(unit, AMS_STOP_GRACE + 5);
	close(unit);
	printf("\xe2\x9c\x93 Stopped sandbox %s\n", argv[1]);
	return am_finish(0);
}

/*
 * What a host restart or a killed supervisor left may be started like what was
 * stopped: nothing of it runs, and its record and home are whole.
 */
static int
may_start(const struct ams_run *run)
{
	return ams_phase_is(run, "Stopped") || (ams_phase_is(run, "Error") &&
	    (strcmp(run->reason, "ContainerRuntimeRestart") == 0 || strcmp(run->reason, "ContainerStopped") == 0));
}

int
ams_cli_start(struct ams_cli *cli, int argc, char *argv[])
{
	struct ams_run run;
	static struct ams_launch launch;	/* one for the life of the program */
	int unit, report, claim;
	const char *why;
	jv rec;

	if (argc != 2 || argv[1][0] == '-')
		return ams_cli_usage("sandbox start: needs one NAME");
	if ((unit = ams_cli_open(cli, argv[1])) < 0)
		return 1;
	if ((claim = ams_unit_claim(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, argv[1]), unit)) < 0)
		return ams_refuse(AMS_NOT_FOUND, "sandbox not found");
	ams_unit_run(unit, &run);
	if (!may_start(&run))
		return ams_refuse(AMS_FAILED_PRECONDITION, "sandbox must be Stopped to start (current phase: %s)", run.phase);
	rec = ams_unit_read(unit, "record.json");
	if (ams_launch_preflight(launch.why) != 0 || ams_unit_launch(cli->state, unit, rec, &launch) != 0) {
		am_warnx("sandbox %s: %s", argv[1], launch.why);
		jv_free(rec);
		return 1;
	}
	jv_free(rec);
	ams_unit_halt(unit, 0);		/* what a killed supervisor may have left */
	if ((report = ams_supervise(&launch, "Starting")) < 0)
		return ams_fail("sandbox '%s': %s", argv[1], strerror(errno));
	if ((why = ams_wait_ready(report, LIFECYCLE_S)) != NULL)
		return ams_fail("sandbox '%s' did not start: %s", argv[1], why[0] != '\0' ? why : "timed out");
	close(claim);
	printf("\xe2\x9c\x93 Started sandbox %s\n", argv[1]);
	return am_finish(0);
}

static int
delete_one(struct ams_cli *cli, const char *workspace, const char *name)
{
	const char *key = ams_sandbox_key(workspace, name);
	int unit = ams_name_problem(name) == NULL ? ams_unit_open(cli->state, AMS_SANDBOXES, key) : -1, claim, rc = 0;

	if (unit < 0) {
		printf("! Sandbox %s not found\n", name);
		return 0;
	}
	if ((claim = ams_unit_claim(cli->state, AMS_SANDBOXES, key, unit)) >= 0) {
		ams_unit_halt(unit, DELETE_GRACE);
		if (ams_unit_remove(cli->state, AMS_SANDBOXES, key) != 0)
			rc = ams_fail("sandbox '%s': %s", name, strerror(errno));
		close(claim);
	}
	close(unit);
	if (rc != 0)
		return rc;
	printf("\xe2\x9c\x93 Deleted sandbox %s\n", name);
	return 0;
}

struct doomed {
	struct ams_cli *cli;
	int rc;
};

static int
delete_each(int unit, const char *key, void *arg)
{
	struct doomed *d = arg;
	jv rec = ams_unit_read(unit, "record.json");
	const char *workspace = am_str(rec, "workspace"), *name = am_str(rec, "name");

	(void)key;
	if (workspace != NULL && name != NULL && strcmp(workspace, d->cli->workspace) == 0)
		d->rc |= delete_one(d->cli, workspace, name);
	jv_free(rec);
	return 0;
}

int
ams_cli_delete(struct ams_cli *cli, int argc, char *argv[])
{
	struct doomed d = { cli, 0 };

	if (argc < 2 || (argv[1][0] == '-' && strcmp(argv[1], "--all") != 0))
		return ams_cli_usage("sandbox delete: needs NAME... or --all");
	ams_state_sweep(cli->state);
	if (strcmp(argv[1], "--all") == 0)
		ams_unit_each(cli->state, AMS_SANDBOXES, delete_each, &d);
	else
		for (int i = 1; i < argc; i++)
			d.rc |= delete_one(cli, cli->workspace, argv[i]);
	return d.rc != 0 ? d.rc : am_finish(0);
}

/* ---- logs ---- */

static const char *const levels[] = { "error", "warn", "info", "debug", "trace", NULL };

/* Seconds of "5m", "30s", "2h", "1d"; -1 when it is none. */
static double
span(const char *s)
{
	char *end;
	double n = strtod(s, &end);

	if (end == s || n < 0 || end[0] == '\0' || end[1] != '\0')
		return -1;
	switch (*end) {
	case 's': return n;
	case 'm': return n * 60;
	case 'h': return n * 3600;
	case 'd': return n * 86400;
	default: return -1;
	}
}

struct view {
	long lines;
	double since;		/* epoch */
	int source;		/* g, s, or a */
	size_t level;
};

/* "[123.456] [sandbox] [INFO ] ..."; no sscanf, which would measure all that follows at every line */
static int
shown(const struct view *v, const char *line)
{
	double when = line[0] == '[' ? strtod(line + 1, (char **)&line) : 0;

	if (strncmp(line, "] [", 3) != 0 || when < v->since || (v->source != 'a' && line[3] != v->source))
		return 0;
	if (strnlen(line, 3 + 7 + 3 + 5) < 3 + 7 + 3 + 5)
		return 0;
	line += 3 + 7 + 3;
	for (size_t i = 0; levels[i] != NULL; i++)
		if (strncasecmp(line, levels[i], 4) == 0)
			return i <= v->level;
	return v->level >= 2;		/* OCSF counts as info */
}

static void
print_log(int unit, const struct view *v)
{
	size_t len = 0;
	char *text = ams_ring_last(unit, "log", 2 * AMS_RING_MAX, &len), *line, *next;
	long skip = 0;

	if (text == NULL)
		return;
	for (line = text; *line != '\0'; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		skip += shown(v, line);
	}
	for (line = text; *line != '\0'; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (shown(v, line) && skip-- <= v->lines)
			fwrite(line, 1, (size_t)(next - line), stdout);
	}
	free(text);
}

/* Follows the growing file; a new one begins when the old is full. */
static int
follow(int unit, const struct view *v)
{
	struct timespec nap = { 0, 200000000 };
	FILE *fp = NULL;
	char *line = NULL;
	size_t cap = 0;
	ino_t ino = 0;
	int first = 1;

	for (;;) {
		struct stat st;
		int fd;

		if (fstatat(unit, "log", &st, AT_SYMLINK_NOFOLLOW) != 0)
			break;		/* deleted */
		if (fp == NULL || st.st_ino != ino) {
			if (fp != NULL)
				fclose(fp);
			if ((fd = am_open_regular(unit, "log", 4 * AMS_RING_MAX)) < 0 || (fp = fdopen(fd, "r")) == NULL)
				break;
			ino = st.st_ino;
			if (first)
				fseek(fp, 0, SEEK_END);
			first = 0;
		}
		clearerr(fp);
		while (getline(&line, &cap, fp) > 0)
			if (shown(v, line))
				fputs(line, stdout);
		if (fflush(stdout) != 0)
			break;
		nanosleep(&nap, NULL);
	}
	free(line);
	return am_finish(0);
}

int
ams_cli_logs(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "lines", required_argument, NULL, 'n' },
		{ "tail", no_argument, NULL, 't' },
		{ "since", required_argument, NULL, 's' },
		{ "source", required_argument, NULL, 'S' },
		{ "level", required_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 }
	};
	struct view v = { 200, 0, 'a', 4 };
	int c, tail = 0, unit;
	double ago;
	char *end;

	optind = 0;
	while ((c = getopt_long(argc, argv, "n:", longopts, NULL)) != -1) {
		switch (c) {
		case 'n':
			v.lines = strtol(optarg, &end, 10);
			if (*optarg < '0' || *optarg > '9' || *end != '\0')
				return ams_cli_usage("-n: not a number of lines: %s", am_quotes(optarg));
			break;
		case 't': tail = 1; break;
		case 's':
			if ((ago = span(optarg)) < 0)
				return ams_cli_usage("--since: not like 30s, 5m, 2h or 1d: %s", am_quotes(optarg));
			v.since = (double)time(NULL) - ago;
			break;
		case 'S':
			if (strcmp(optarg, "gateway") != 0 && strcmp(optarg, "sandbox") != 0 && strcmp(optarg, "all") != 0)
				return ams_cli_usage("--source: must be gateway, sandbox or all: %s", am_quotes(optarg));
			v.source = optarg[0];
			break;
		case 'l':
			for (v.level = 0; levels[v.level] != NULL && strcmp(levels[v.level], optarg) != 0; v.level++)
				;
			if (levels[v.level] == NULL)
				return ams_cli_usage("--level: must be error, warn, info, debug or trace: %s", am_quotes(optarg));
			break;
		default: return ams_cli_usage("logs: usage");
		}
	}
	if (optind + 1 != argc)
		return ams_cli_usage("logs: needs one NAME");
	/* a service has no workspace; a sandbox of the same name goes first */
	unit = ams_name_problem(argv[optind]) == NULL
	    ? ams_unit_open(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, argv[optind])) : -1;
	if (unit < 0)
		unit = ams_unit_open(cli->state, AMS_SERVICES, argv[optind]);
	if (unit < 0)
		return ams_refuse(AMS_NOT_FOUND, "sandbox not found");
	print_log(unit, &v);
	if (tail)
		return follow(unit, &v);
	close(unit);
	return am_finish(0);
}
