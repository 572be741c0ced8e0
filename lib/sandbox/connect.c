#include <errno.h>
#include <fcntl.h>
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

#include "../diag.h"
#include "../file.h"
#include "cli.h"
#include "flow.h"
#include "output.h"
#include "relay.h"
#include "say.h"
#include "supervise.h"

/* The size of the terminal as a message; its length, 0 when there is none. */
static size_t
size_message(char m[5])
{
	struct winsize size;

	if (ioctl(0, TIOCGWINSZ, &size) != 0)
		return 0;
	m[0] = 'r';
	m[1] = (char)(size.ws_row >> 8);
	m[2] = (char)size.ws_row;
	m[3] = (char)(size.ws_col >> 8);
	m[4] = (char)size.ws_col;
	return 5;
}

/* What was typed as a message; its length, or -1 when it ended with Ctrl-P Ctrl-Q. */
static int
typed_message(char *m, const unsigned char *typed, size_t n, int *after_p)
{
	size_t k = 3;

	for (size_t i = 0; i < n; i++) {
		if (*after_p && typed[i] == 'Q' - '@')
			return -1;
		if (*after_p)
			m[k++] = 'P' - '@';
		*after_p = typed[i] == 'P' - '@';
		if (!*after_p)
			m[k++] = (char)typed[i];
	}
	m[0] = 'd';
	m[1] = (char)((k - 3) >> 8);
	m[2] = (char)(k - 3);
	return k > 3 ? (int)k : 0;
}

enum { LEFT = 0, CLOSED = -1, UNWRITABLE = -2 };	/* or the signal that came */

/* Carries until one of these. Neither a terminal nor a sandbox that takes nothing keeps the other waiting. */
static int
attach(int fd, int signals)
{
	struct ams_flow in = { .from = 0, .to = fd }, out = { .from = fd, .to = 1 };
	struct signalfd_siginfo info;
	int after_p = 0, resized = 1, n;

	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	while (!ams_flow_ended(&out)) {
		struct pollfd p[5] = { [4] = { signals, POLLIN, 0 } };
		unsigned char typed[256];	/* half of what the other side takes: a held Ctrl-P comes on top */

		if (resized && in.len == 0) {
			in.at = 0;
			in.len = size_message(in.buf);
			resized = 0;
		}
		ams_flow_poll(&in, p);
		ams_flow_poll(&out, p + 2);
		if (poll(p, 5, -1) < 0)
			continue;
		if (p[4].revents != 0 && read(signals, &info, sizeof info) == sizeof info) {
			if (info.ssi_signo != SIGWINCH)
				return (int)info.ssi_signo;
			resized = 1;
		}
		ams_flow_write(&in, p);
		if (ams_flow_write(&out, p + 2) != 0)
			return UNWRITABLE;
		ams_flow_read(&out, p + 2);
		if (p[0].revents == 0)
			continue;
		if ((n = (int)read(0, typed, sizeof typed)) <= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
			in.from = -1;
		n = n > 0 ? typed_message(in.buf, typed, (size_t)n, &after_p) : 0;
		if (n < 0)
			return LEFT;
		in.at = 0;
		in.len = (size_t)n;
	}
	return CLOSED;
}

static int
attach_terminal(int fd)
{
	int signals, rc, terminal;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if ((signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return UNWRITABLE;
	terminal = ams_raw_begin();
	rc = attach(fd, signals);
	if (rc == UNWRITABLE)
		am_warn("standard output");
	ams_raw_end();
	if (terminal)
		fputs("\r\n", stderr);
	return rc;
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
	int unit, fd, rc;
	const char *name = ams_cli_name(argc, argv);
	struct ams_run run;
	size_t len;
	char *past;

	if (name == NULL)
		return ams_cli_usage("sandbox connect: needs one NAME");
	if ((unit = ams_cli_open(cli, name)) < 0)
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
	if (fd < 0 && ams_phase_is(&run, "Ready"))
		return ams_fail("sandbox '%s': %d connections are the most: leave one of them first", name, AMS_CLIENTS);
	if (fd < 0)
		return ams_fail("sandbox '%s' is not ready (phase: %s); wait for it to reach Ready state", name, run.phase);
	rc = attach_terminal(fd);
	close(fd);
	if (rc == LEFT || rc == UNWRITABLE)
		return rc == LEFT ? 0 : AM_TROUBLE;
	if (rc > 0)
		return 128 + rc;
	ams_unit_run(unit, &run);
	close(unit);
	if (ams_phase_is(&run, "Ready") || ams_phase_is(&run, "Starting"))
		return ams_fail("sandbox '%s': the connection is lost: what it wrote was not taken in time: connect again", name);
	if (run.exit_code >= 0)
		return run.exit_code;
	return ams_fail("sandbox '%s' has ended: %s", name, run.message[0] != '\0' ? run.message : "it was deleted");
}
