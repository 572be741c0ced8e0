#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mainproc.h"

#define EMPTY_MS 10000		/* what is killed may take that long to go */

static void
drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
ams_main_init(struct ams_main *m, struct ams_launch *l, struct ams_output *io)
{
	memset(m, 0, sizeof *m);
	m->launch = l;
	m->io = io;
	m->status = m->main_fd = m->init_fd = -1;
	ams_denied_open(&m->denied, &io->log);
}

int
ams_main_start(struct ams_main *m)
{
	int pipes[2], pair[2], on = 1;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
		return -1;
	m->why[0] = '\0';
	m->announced = 0;
	if ((m->child = fork()) < 0)
		return -1;
	if (m->child == 0)
		ams_launch_exec(m->launch, pipes[1], pair[1]);
	close(pipes[1]);
	close(pair[1]);
	ams_output_pipe(m->io, pipes[0]);
	m->status = pair[0];
	return 0;
}

/* One packet: its length, and what came with it. */
static ssize_t
receive(struct ams_main *m, int flags, char *text, size_t size, struct ucred *who, int *fd)
{
	char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
	struct iovec iov = { text, size - 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t n = recvmsg(m->status, &msg, MSG_CMSG_CLOEXEC | flags);

	for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			memcpy(who, CMSG_DATA(c), sizeof *who);
		else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(fd, CMSG_DATA(c), sizeof *fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n;
}

int
ams_main_hear(struct ams_main *m, int flags)
{
	struct ucred who = { 0 };
	char text[sizeof m->why];
	int fd = -1;
	ssize_t n = receive(m, flags, text, sizeof text, &who, &fd);
	pid_t parent;

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0) {
		drop(&m->status);
		/* the end without a reason: the command has taken its place */
		return m->announced && m->why[0] == '\0';
	}
	if (strcmp(text, "network") == 0) {
		ams_denied_listen(&m->denied, fd);
		return 0;
	}
	if (fd >= 0)
		ams_output_terminal(m->io, fd);
	if (strcmp(text, "start") != 0) {
		memcpy(m->why, text, sizeof text);
		return 0;
	}
	/* Who the main process is, by credentials that the kernel vouches for; gone already, when it was short. */
	m->announced = 1;
	if (ams_proc_look(who.pid, &m->main, &parent) == 0 && ams_proc_look(parent, &m->init, NULL) == 0) {
		m->main_fd = ams_proc_open(&m->main);
		m->init_fd = ams_proc_open(&m->init);
	}
	return 0;
}

void
ams_main_ask_to_end(const struct ams_main *m)
{
	if (m->main_fd >= 0)
		syscall(SYS_pidfd_send_signal, m->main_fd, SIGTERM, NULL, 0);
	else
		kill(m->child, SIGKILL);
}

/* What bubblewrap left when it was killed half way has become our child, and is killed too. */
void
ams_main_reap(struct ams_main *m)
{
	struct pollfd init = { m->init_fd, POLLIN, 0 };
	char path[64], list[1024];
	ssize_t n;
	int fd;

	ams_denied_listen(&m->denied, -1);
	if (m->init_fd >= 0)
		poll(&init, 1, EMPTY_MS);
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	while ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
		n = read(fd, list, sizeof list - 1);
		close(fd);
		if (n <= 0)
			break;
		list[n] = '\0';
		kill((pid_t)atol(list), SIGKILL);
		if (waitpid((pid_t)atol(list), NULL, 0) < 0)
			break;
	}
	drop(&m->main_fd);
	drop(&m->init_fd);
	memset(&m->main, 0, sizeof m->main);
	memset(&m->init, 0, sizeof m->init);
	m->child = 0;
}
