#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../file.h"
#include "../id.h"
#include "mainproc.h"
#include "preflight.h"
#include "state.h"
#include "supervise.h"

#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MAX_MS 180000
#define BACKOFF_RESET_MS 10000
#define SLOW_START_MS 500
#define LOOK_MS 60000		/* how often, when nothing else happens, it looks for its directory */

struct super {
	struct ams_launch *launch;
	struct ams_run run;
	struct ams_output io;
	struct ams_main process;
	int report;		/* to whoever created or started; -1 once told */
	int signals;
	int stopping;
	const char *first_phase;
	long long began_ms;	/* of what runs now; 0 while it starts */
	long long backoff_ms, deadline_ms;
};

static long long
since_epoch_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
event(struct super *s, const char *level, const char *text)
{
	ams_log(&s->io.log, "gateway", level, "supervisor", text, strlen(text));
}

static void
tell(struct super *s, const char *word)
{
	if (s->report < 0)
		return;
	(void)!write(s->report, word, strlen(word));
	close(s->report);
	s->report = -1;
}

static int
set_phase(struct super *s, const char *phase, const char *reason, const char *message)
{
	s->run.phase = phase;
	snprintf(s->run.reason, sizeof s->run.reason, "%s", reason);
	snprintf(s->run.message, sizeof s->run.message, "%s", message);
	return ams_unit_set_run(s->launch->unit, &s->run);
}

static void
say_limits(struct super *s)
{
	const struct ams_launch *l = s->launch;
	char text[AMS_CGROUP_PATH + 256];
	size_t n = (size_t)snprintf(text, sizeof text, "limits");

	for (size_t i = 0; i < AMS_N_LIMITS; i++)
		if (l->limits.max[i] != 0)
			n += (size_t)snprintf(text + n, sizeof text - n, " %s=%llu", ams_limit_names[i], l->limits.max[i]);
	if (l->cgroup[0] != '\0')
		snprintf(text + n, sizeof text - n, " by the cgroup %s and by setrlimit", l->cgroup);
	else
		snprintf(text + n, sizeof text - n, " by setrlimit alone: %s", l->no_cgroup);
	event(s, "INFO", text);
}

/* ---- the main process ---- */

static int
start(struct super *s)
{
	am_random_uuid(s->run.instance);
	s->run.message[0] = '\0';
	s->began_ms = 0;
	s->deadline_ms = am_now() + SLOW_START_MS;
	return ams_main_start(&s->process);
}

static void
running(struct super *s)
{
	char text[64];

	if (!s->stopping)
		s->deadline_ms = 0;
	s->began_ms = am_now();
	s->run.started_ms = since_epoch_ms();
	s->run.main = s->process.main;
	s->run.init = s->process.init;
	s->run.next_restart_ms = 0;
	if (set_phase(s, "Ready", "MainProcessRunning", "") != 0) {
		/* what nobody can find, nobody can enter or stop */
		snprintf(s->run.message, sizeof s->run.message, "run.json: %s", strerror(errno));
		tell(s, s->run.message);
		kill(s->process.child, SIGKILL);
		return;
	}
	tell(s, "R");
	snprintf(text, sizeof text, "main process started pid=%d", (int)s->run.main.pid);
	event(s, "INFO", text);
}

static void
hear(struct super *s, int flags)
{
	if (ams_main_hear(&s->process, flags))
		running(s);
}

/* ---- the end of a main process ---- */

static _Noreturn void
finish(struct super *s, const char *phase, const char *reason, const char *message)
{
	if (s->run.cgroup[0] != '\0')
		ams_cgroup_remove(s->run.cgroup);
	s->run.cgroup[0] = '\0';
	memset(&s->run.init, 0, sizeof s->run.init);
	memset(&s->run.main, 0, sizeof s->run.main);
	s->run.next_restart_ms = 0;
	set_phase(s, phase, reason, message);
	event(s, "INFO", phase);
	ams_output_flush(&s->io);
	unlinkat(s->launch->unit, "ctl", 0);
	tell(s, s->run.message[0] != '\0' ? s->run.message : reason);
	_exit(0);
}

static int
wants_restart(const struct super *s, int code)
{
	const char *policy = s->launch->restart;

	return strcmp(policy, "always") == 0 || strcmp(policy, "unless-stopped") == 0 ||
	    (strcmp(policy, "on-failure") == 0 && code != 0);
}

static void
ended(struct super *s, int status)
{
	int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	char text[128], why[sizeof s->run.message];
	long long ran;

	while (s->process.status >= 0)		/* a reason that is still on its way */
		hear(s, MSG_DONTWAIT);
	ams_output_end(&s->io);
	snprintf(why, sizeof why, "%s", s->process.why[0] != '\0' ? s->process.why : s->run.message);
	if (s->began_ms == 0 && why[0] == '\0')
		/* bubblewrap says why it failed on its standard error, which is the last of the output */
		snprintf(why, sizeof why, "%s", ams_launch_failure(s->io.last));
	ran = s->began_ms == 0 ? 0 : am_now() - s->began_ms;
	ams_main_reap(&s->process);
	s->run.exit_code = code;
	memset(&s->run.init, 0, sizeof s->run.init);
	memset(&s->run.main, 0, sizeof s->run.main);
	snprintf(text, sizeof text, "main process ended status=%d", code);
	event(s, code == 0 || s->stopping ? "INFO" : "WARN", text);
	if (s->stopping)
		finish(s, "Stopped", "ContainerStopped", "");
	if (s->run.started_ms == 0)		/* not once */
		finish(s, "Error", "ContainerStartFailed", why);
	if (!wants_restart(s, code)) {
		if (code == 0)
			finish(s, "Completed", "MainProcessCompleted", "");
		finish(s, "Error", "MainProcessExited", why[0] != '\0' ? why : text);
	}
	if (ran >= BACKOFF_RESET_MS)
		s->backoff_ms = BACKOFF_FIRST_MS;
	s->deadline_ms = am_now() + s->backoff_ms;
	s->run.next_restart_ms = since_epoch_ms() + s->backoff_ms;
	s->backoff_ms = s->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : s->backoff_ms * 2;
	set_phase(s, "Starting", code == 0 ? "MainProcessCompleted" : "MainProcessFailed", why[0] != '\0' ? why : text);
}

/* ---- the loop ---- */

static void
stop(struct super *s)
{
	if (s->process.child == 0)
		finish(s, "Stopped", "ContainerStopped", "");
	if (s->stopping)
		return;
	s->stopping = 1;
	set_phase(s, "Stopping", "", "");
	s->deadline_ms = am_now() + AMS_STOP_GRACE * 1000;
	ams_main_ask_to_end(&s->process);
}

static void
handle_signals(struct super *s)
{
	struct signalfd_siginfo info;
	int status;

	while (read(s->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo != SIGCHLD)
			stop(s);
		else if (s->process.child > 0 && waitpid(s->process.child, &status, WNOHANG) == s->process.child)
			ended(s, status);
	}
}

static void
handle_deadline(struct super *s)
{
	if (s->deadline_ms == 0 || am_now() < s->deadline_ms)
		return;
	s->deadline_ms = 0;
	if (s->stopping) {
		kill(s->process.child, SIGKILL);
		return;
	}
	if (s->process.child != 0) {		/* still starting: whoever waits may give up, so say it ourselves */
		set_phase(s, s->first_phase, "Starting", "");
		return;
	}
	s->run.restarts++;
	if (ams_launch_renew(s->launch) != 0 || fchdir(s->launch->unit) != 0 || start(s) != 0)
		finish(s, "Error", "ContainerStartFailed", strerror(errno));
}

/* Whose directory was removed by somebody else than delete can be found, and stopped, by nobody. */
static void
end_when_forgotten(struct super *s)
{
	struct stat st;

	if (fstat(s->launch->unit, &st) != 0 || st.st_nlink > 0)
		return;
	if (s->process.child > 0) {
		kill(s->process.child, SIGKILL);
		waitpid(s->process.child, NULL, 0);
		ams_main_reap(&s->process);
	}
	finish(s, "Stopped", "ContainerStopped", "");
}

static _Noreturn void
loop(struct super *s)
{
	for (;;) {
		struct pollfd p[3 + AMS_OUTPUT_FDS] = {
			{ s->signals, POLLIN, 0 }, { s->process.status, POLLIN, 0 }, { s->process.denied.listener, POLLIN, 0 }
		};
		long long wait = s->deadline_ms == 0 ? LOOK_MS : s->deadline_ms - am_now();

		ams_output_poll(&s->io, p + 3);
		if (poll(p, 3 + AMS_OUTPUT_FDS, wait < 0 ? 0 : wait > LOOK_MS ? LOOK_MS : (int)wait) < 0 && errno != EINTR)
			finish(s, "Error", "ControlSupervisorExited", strerror(errno));
		if (p[1].revents != 0)
			hear(s, 0);
		if (p[2].revents != 0 && s->process.denied.listener >= 0)
			ams_denied_serve(&s->process.denied, p[2].revents);
		ams_output_serve(&s->io, p + 3);
		if (p[0].revents != 0)
			handle_signals(s);
		handle_deadline(s);
		ams_output_flush(&s->io);
		end_when_forgotten(s);
	}
}

/* What the caller's shell had open is not held by something that outlives it. */
static void
close_others(const struct ams_launch *l, int report)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		int fd = atoi(e->d_name), keep = fd < 3 || fd == dirfd(d) || fd == report || fd == l->unit ||
		    fd == l->policy || fd == l->env;

		for (size_t i = 0; i < l->n_binds; i++)
			keep |= fd == l->binds[i].fd || fd == l->binds[i].parent;
		if (!keep)
			close(fd);
	}
	if (d != NULL)
		closedir(d);
}

static _Noreturn void
supervisor(struct ams_launch *l, int report, const char *first_phase)
{
	struct super s = { .launch = l, .report = report, .first_phase = first_phase,
	    .backoff_ms = BACKOFF_FIRST_MS };
	int null;
	sigset_t set;

	prctl(PR_SET_NAME, "amap-supervise");
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	close_others(l, report);
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	ams_output_open(&s.io, l->unit);
	ams_main_init(&s.process, l, &s.io);
	s.run.exit_code = -1;
	l->supervisor = getpid();
	if (ams_unit_lock(l->unit) < 0) {
		tell(&s, "another supervisor runs");
		_exit(1);
	}
	if (l->cgroup_home != NULL && ams_cgroup_make(l->cgroup_home, l->unit, &l->limits, l->cgroup) != 0)
		finish(&s, "Error", "ContainerCreateFailed", strerror(errno));
	strcpy(s.run.cgroup, l->cgroup);
	if (l->expendable)
		say_limits(&s);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (ams_launch_stage(l) != 0)
		finish(&s, "Error", "ContainerCreateFailed", strerror(errno));
	if (start(&s) != 0)
		finish(&s, "Error", "ContainerStartFailed", strerror(errno));
	/* while bubblewrap works */
	if (fchdir(l->unit) != 0 || ams_output_listen(&s.io) != 0)
		finish(&s, "Error", "ContainerCreateFailed", strerror(errno));
	loop(&s);
}

int
ams_supervise(struct ams_launch *l, const char *first_phase)
{
	int report[2];
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) != 0)
		return -1;
	fflush(NULL);
	if ((pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		setsid();
		close(report[0]);
		supervisor(l, report[1], first_phase);
	}
	close(report[1]);
	return report[0];
}
