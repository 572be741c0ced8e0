#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../file.h"
#include "../id.h"
#include "enter.h"
#include "flow.h"
#include "launch.h"
#include "relay.h"

#define LINGER_MS 2000		/* how long output of background children is still forwarded */
#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP)

struct session {
	struct ams_enter *e;
	int status;			/* of amap-confine */
	int terminal;			/* of a command with --tty */
	int out[3], inside[3];		/* of a carried stream: the pipe's end that is ours, and the command's; -1 */
	struct ams_flow flow[3];	/* what is carried: standard input, and what it writes */
	unsigned long long due[3];	/* of that, what the command itself wrote */
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

/*
 * What a process that the command left behind must not hold, or else whoever
 * waits for the end of our output waits for that process: a pipe or a socket.
 * And a terminal, whose output would steal what is typed.
 */
static int
is_carried(int fd, const struct stat *st)
{
	return isatty(fd) || (fd > 0 && (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode)));
}

static int
open_streams(struct session *s)
{
	struct stat st[3] = { 0 };

	for (int i = 0; i < 3; i++) {
		int pipes[2], in = i == 0;

		s->out[i] = s->inside[i] = -1;
		s->flow[i] = (struct ams_flow){ .from = -1, .to = -1 };
		if (s->e->tty || fstat(i, &st[i]) != 0 || !is_carried(i, &st[i]))
			continue;
		/* one that is both stays one, so that what is written keeps its order */
		if (i == 2 && s->inside[1] >= 0 && st[1].st_dev == st[2].st_dev && st[1].st_ino == st[2].st_ino) {
			s->inside[2] = fcntl(s->inside[1], F_DUPFD_CLOEXEC, 3);
			continue;
		}
		if (pipe2(pipes, O_CLOEXEC) != 0)
			return -1;
		s->inside[i] = pipes[in ? 0 : 1];
		s->out[i] = pipes[in ? 1 : 0];
		s->flow[i].from = in ? 0 : s->out[i];
		s->flow[i].to = in ? s->out[i] : i;
		fcntl(s->out[i], F_SETFL, O_NONBLOCK);
	}
	if (s->e->tty)
		s->flow[0].from = 0;
	return 0;
}

static void
terminal_given(struct session *s)
{
	fcntl(s->terminal, F_SETFL, O_RDWR | O_NONBLOCK);
	s->flow[0].to = s->flow[1].from = s->terminal;
	s->flow[1].to = 1;
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
			terminal_given(s);
		}
	}
	if (strcmp(s->e->why, "start") == 0)
		s->e->why[0] = '\0';
}

static void
carry(struct session *s, const struct pollfd *p)
{
	for (int i = 0; i < 3; i++, p += 2) {
		/* whom nobody hears any more is told so: by the signal of a pipe, or of a terminal that goes */
		if (ams_flow_write(&s->flow[i], p) != 0 && i > 0 && s->terminal >= 0) {
			drop(&s->terminal);
			s->flow[0] = (struct ams_flow){ .from = -1, .to = -1 };
		}
		ams_flow_read(&s->flow[i], p);
		if (ams_flow_ended(&s->flow[i])) {
			drop(&s->out[i]);
			s->flow[i].to = -1;
		}
	}
}

/* The command has ended: what it wrote is carried to the end, what others write only for a while. */
static void
count_due(struct session *s)
{
	for (int i = 1; i < 3; i++) {
		int n = 0;

		if (s->flow[i].from >= 0)
			ioctl(s->flow[i].from, FIONREAD, &n);
		s->due[i] = s->flow[i].done + s->flow[i].len + (unsigned)n;
	}
}

static int
owes(const struct session *s, int i)
{
	return !ams_flow_ended(&s->flow[i]) && s->flow[i].done < s->due[i];
}

static int
talk(struct session *s, int signals)
{
	long long deadline = s->e->timeout > 0 ? am_now() + s->e->timeout * 1000 : 0, linger = 0;
	int ended = -1, timed_out = 0;
	struct signalfd_siginfo info;

	for (;;) {
		struct pollfd p[8] = { { s->status, POLLIN, 0 }, { signals, POLLIN, 0 } };
		long long until = linger != 0 ? linger : deadline, wait = until == 0 ? -1 : until - am_now();
		int status, idle = 0, n;
		pid_t pid;

		if (ended >= 0 && s->status < 0 && ams_flow_ended(&s->flow[1]) && ams_flow_ended(&s->flow[2]))
			break;
		if (linger != 0 && wait <= 0) {
			/* a terminal goes with its command, and then has an end: nobody else can write there */
			if (timed_out || (s->terminal < 0 && !owes(s, 1) && !owes(s, 2)))
				break;
			idle = s->terminal >= 0 && s->flow[1].len == 0;
			wait = idle ? 0 : -1;
		} else if (until != 0 && wait <= 0) {
			timed_out = 1;
			deadline = 0;
			if (s->pid > 0) {
				kill(-s->pid, SIGKILL);
				kill(s->pid, SIGKILL);
			}
			continue;
		}
		for (int i = 0; i < 3; i++)
			ams_flow_poll(&s->flow[i], p + 2 + 2 * i);
		if ((n = poll(p, sizeof p / sizeof p[0], wait < 0 ? -1 : (int)(wait > 1 << 30 ? 1 << 30 : wait))) < 0)
			continue;
		if (n == 0 && idle)
			break;
		if (p[0].revents != 0)
			status_packet(s);
		carry(s, p + 2);
		while (p[1].revents != 0 && read(signals, &info, sizeof info) == sizeof info) {
			if (info.ssi_signo == SIGWINCH && s->terminal >= 0)
				ams_copy_size(s->terminal);
			else if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGWINCH && s->pid > 0 && ended < 0)
				kill(s->pid, (int)info.ssi_signo);
		}
		/* the first child's status tells nothing; the command's is the one whose number we were told */
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (s->status >= 0 && s->pid == 0)
				status_packet(s);
			if (pid == s->pid || (s->pid == 0 && status != 0)) {
				ended = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
				linger = am_now() + LINGER_MS;
				count_due(s);
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
