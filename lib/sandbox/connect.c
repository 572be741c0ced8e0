#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../file.h"
#include "cli.h"
#include "output.h"
#include "relay.h"
#include "say.h"
#include "supervise.h"

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
