#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../file.h"
#include "../id.h"
#include "enter.h"
#include "launch.h"
#include "relay.h"

#define LINGER_MS 2000		/* how long output of background children is still forwarded */
#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP)

struct session {
	struct ams_enter *e;
	int status;			/* of amap-confine */
	int terminal;			/* of a command with --tty */
	int out[3], inside[3];		/* our end of a carried stream, and the command's; -1 */
	pid_t pid;			/* of the command; 0 until told */
};

static void
drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static _Noreturn void
complain(int status, const char *what)
{
	char why[256];

	snprintf(why, sizeof why, "%s: %s", what, strerror(errno));
	(void)!send(status, why, strlen(why), MSG_NOSIGNAL);
	_exit(125);
}

/* In the second child, a member of the namespaces. */
static _Noreturn void
become(struct session *s, int status)
{
	struct ams_enter *e = s->e;
	char *env[] = { NULL };
	sigset_t none;
	int policy, vars;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		if (s->inside[i] >= 0 && dup2(s->inside[i], i) < 0)
			complain(status, "descriptors");
	status = fcntl(status, F_DUPFD_CLOEXEC, 600);
	policy = fcntl(e->policy, F_DUPFD_CLOEXEC, 600);
	vars = fcntl(e->env, F_DUPFD_CLOEXEC, 600);
	if (dup2(policy, AMS_FD_POLICY) < 0 || dup2(vars, AMS_FD_ENV) < 0 || dup2(status, AMS_FD_STATUS) < 0)
		complain(status, "descriptors");
	execve(AMS_INSIDE "/confine", e->args, env);
	complain(status, AMS_INSIDE "/confine");
}

/*
 * The first child joins the namespaces; only a child of its own can be a member
 * of the process namespace. That one is made our child too, so its status is ours
 * to read and the first can go.
 */
static _Noreturn void
join(struct session *s, int target, int status)
{
	struct ams_enter *e = s->e;
	long pid;

	/* one of another session may not be moved there: its limits are those of setrlimit(2) */
	if (e->cgroup[0] != '\0')
		ams_cgroup_enter(e->cgroup);
	ams_launch_expendable();
	if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setresgid(e->gid, e->gid, e->gid) != 0 ||
	    setresuid(e->uid, e->uid, e->uid) != 0))
		complain(status, "identity");
	if (setns(target, NAMESPACES) != 0)
		complain(status, "the namespaces");
	/* joining gave every capability there: none may come back by any way */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if ((pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0)) < 0)
		complain(status, "a process");
	if (pid == 0)
		become(s, status);
	_exit(0);
}

static void
status_packet(struct session *s)
{
	char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
	struct iovec iov = { s->e->why, sizeof s->e->why - 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t n = recvmsg(s->status, &msg, MSG_CMSG_CLOEXEC);
	struct ucred who;

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		drop(&s->status);
		return;
	}
	s->e->why[n] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&who, CMSG_DATA(c), sizeof who);
			if (strcmp(s->e->why, "start") == 0)
				s->pid = who.pid;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			memcpy(&s->terminal, CMSG_DATA(c), sizeof s->terminal);
		}
	}
	if (strcmp(s->e->why, "start") == 0)
		s->e->why[0] = '\0';
}

/* One step of carrying bytes; closes both ends when there is no more. */
static void
carry(int *from, int to, int *end)
{
	char buf[16384];
	ssize_t n = read(*from, buf, sizeof buf);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0 && am_write_all(to, buf, (size_t)n) == 0)
		return;
	*from = -1;		/* not closed: it may be the caller's */
	if (end != NULL)
		drop(end);
}

/* Which of the caller's streams are terminals: those are carried by pipes. */
static int
open_streams(struct session *s)
{
	for (int i = 0; i < 3; i++) {
		int pipes[2];

		s->out[i] = s->inside[i] = -1;
		if (s->e->tty || !isatty(i))
			continue;
		if (pipe2(pipes, O_CLOEXEC) != 0)
			return -1;
		s->inside[i] = pipes[i == 0 ? 0 : 1];
		s->out[i] = pipes[i == 0 ? 1 : 0];
	}
	return 0;
}

static int
talk(struct session *s, int signals)
{
	long long deadline = s->e->timeout > 0 ? am_now() + s->e->timeout * 1000 : 0, linger = 0;
	int in = s->e->tty || s->out[0] >= 0 ? 0 : -1, ended = -1, timed_out = 0;
	struct signalfd_siginfo info;

	for (;;) {
		struct pollfd p[] = {
			{ s->status, POLLIN, 0 }, { signals, POLLIN, 0 }, { in, POLLIN, 0 },
			{ s->terminal, POLLIN, 0 }, { s->out[1], POLLIN, 0 }, { s->out[2], POLLIN, 0 },
		};
		long long until = linger != 0 ? linger : deadline, wait = until == 0 ? -1 : until - am_now();
		int status;
		pid_t pid;

		if (ended >= 0 && s->status < 0 && s->terminal < 0 && s->out[1] < 0 && s->out[2] < 0)
			break;
		if (until != 0 && wait <= 0) {
			if (linger != 0)
				break;
			timed_out = 1;
			deadline = 0;
			if (s->pid > 0) {
				kill(-s->pid, SIGKILL);
				kill(s->pid, SIGKILL);
			}
			continue;
		}
		if (poll(p, sizeof p / sizeof p[0], wait < 0 ? -1 : (int)(wait > 1 << 30 ? 1 << 30 : wait)) < 0)
			continue;
		if (p[0].revents != 0)
			status_packet(s);
		if (p[2].revents != 0) {
			if (s->e->tty && s->terminal >= 0)
				carry(&in, s->terminal, NULL);
			else if (!s->e->tty)
				carry(&in, s->out[0], &s->out[0]);
		}
		if (p[3].revents != 0)
			carry(&s->terminal, 1, NULL);
		if (p[4].revents != 0)
			carry(&s->out[1], 1, NULL);
		if (p[5].revents != 0)
			carry(&s->out[2], 2, NULL);
		while (p[1].revents != 0 && read(signals, &info, sizeof info) == sizeof info) {
			if (info.ssi_signo == SIGWINCH && s->terminal >= 0)
				ams_copy_size(s->terminal);
			else if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGWINCH && s->pid > 0)
				kill(s->pid, (int)info.ssi_signo);
		}
		/* the first child's status tells nothing; the command's is the one whose number we were told */
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (s->status >= 0 && s->pid == 0)
				status_packet(s);
			if (pid == s->pid || (s->pid == 0 && status != 0)) {
				ended = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
				linger = am_now() + LINGER_MS;
			}
		}
		if (pid < 0 && errno == ECHILD && ended < 0)
			ended = 1;
	}
	return timed_out ? 124 : ended;
}

int
ams_enter(struct ams_enter *e)
{
	struct session s = { .e = e, .status = -1, .terminal = -1 };
	int pair[2], on = 1, target, signals;
	sigset_t set;
	pid_t pid;

	e->why[0] = '\0';
	e->status = 1;
	if ((target = ams_proc_open(&e->init)) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 || open_streams(&s) != 0) {
		snprintf(e->why, sizeof e->why, "%s", strerror(errno));
		return -1;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if ((pid = fork()) < 0 || signals < 0) {
		snprintf(e->why, sizeof e->why, "%s", strerror(errno));
		return -1;
	}
	if (pid == 0)
		join(&s, target, pair[1]);
	close(pair[1]);
	close(target);
	s.status = pair[0];
	for (int i = 0; i < 3; i++)
		drop(&s.inside[i]);
	if (e->tty)
		ams_raw_begin();
	e->status = talk(&s, signals);
	ams_raw_end();
	return e->why[0] != '\0' ? -1 : 0;
}
