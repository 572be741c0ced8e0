#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "output.h"

#define ROUNDS_AT_END 64	/* of 16 KiB: what a pipe and a terminal can hold, and more */

static void
drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- what is written ---- */

/* Takes out what moves a terminal's cursor or names its window; the length that is left. */
static size_t
strip(char *line, size_t len)
{
	size_t out = 0;

	for (size_t i = 0; i < len; i++) {
		if (line[i] != '\033') {
			line[out++] = line[i];
			continue;
		}
		if (++i < len && line[i] == '[')
			while (++i < len && (line[i] < 0x40 || line[i] > 0x7e))
				;
		else if (i < len && line[i] == ']')
			while (++i < len && line[i] != '\007' && !(line[i - 1] == '\033' && line[i] == '\\'))
				;
	}
	return out;
}

static void
end_line(struct ams_output *o)
{
	size_t len = strip(o->line, o->line_len);

	while (len > 0 && o->line[len - 1] == '\r')
		len--;
	o->line_len = 0;
	if (len == 0)
		return;
	ams_log(&o->log, "sandbox", "INFO", "main", o->line, len);
	snprintf(o->last, sizeof o->last, "%.*s", (int)len, o->line);
}

static void
log_lines(struct ams_output *o, const char *p, size_t len)
{
	for (const char *end = p + len; p < end; p++) {
		if (*p == '\n' || o->line_len == sizeof o->line)
			end_line(o);
		if (*p != '\n')
			o->line[o->line_len++] = *p;
	}
}

/* 0 when there is no more for now. */
static int
forward(struct ams_output *o, int *from)
{
	char buf[16384];
	ssize_t n = read(*from, buf, sizeof buf);

	if (n < 0 && errno == EINTR)
		return 1;
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0) {		/* EIO: the last process has closed the terminal */
		drop(from);
		return 0;
	}
	ams_ring_add(&o->output, buf, (size_t)n);
	log_lines(o, buf, (size_t)n);
	for (size_t i = 0; i < AMS_CLIENTS; i++)
		/* one that cannot keep up is let go rather than waited for */
		if (o->clients[i] >= 0 && send(o->clients[i], buf, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) != n)
			drop(&o->clients[i]);
	return 1;
}

/* ---- connected terminals ---- */

/* The past, as it is at this moment; all that comes later is sent. */
static int
send_replay(struct ams_output *o, int client)
{
	static const char *const names[] = { "output.old", "output" };
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct ams_replay replay = { { 0, 0 } };
	struct iovec iov = { &replay, sizeof replay };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fds[2], rc;

	ams_ring_flush(&o->output);
	for (int i = 0; i < 2; i++) {
		struct stat st;

		if ((fds[i] = openat(o->unit, names[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) < 0)
			fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		else if (fstat(fds[i], &st) == 0)
			replay.size[i] = (unsigned long long)st.st_size;
	}
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(c), fds, sizeof fds);
	rc = sendmsg(client, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof replay ? 0 : -1;
	close(fds[0]);
	close(fds[1]);
	return rc;
}

static void
greet(struct ams_output *o)
{
	int fd = accept4(o->listener, NULL, NULL, SOCK_CLOEXEC);
	size_t i = 0;

	if (fd < 0)
		return;
	while (i < AMS_CLIENTS && o->clients[i] >= 0)
		i++;
	if (i == AMS_CLIENTS || send_replay(o, fd) != 0)
		close(fd);
	else
		o->clients[i] = fd;
}

/* To the terminal, as much as it takes: the rest waits, and whoever types with it. */
static void
type(struct ams_output *o)
{
	ssize_t n = o->terminal < 0 ? (ssize_t)o->typed_len : write(o->terminal, o->typed + o->typed_at, o->typed_len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	n = n < 0 ? (ssize_t)o->typed_len : n;
	o->typed_at += (size_t)n;
	o->typed_len -= (size_t)n;
}

static void
hear(struct ams_output *o, int *client)
{
	unsigned char head[5];
	struct winsize size = { 0 };
	size_t len;

	/* Clients are our own and write whole messages; anything else is no client. */
	if (recv(*client, head, 3, MSG_WAITALL) != 3)
		goto gone;
	if (head[0] == 'r') {
		if (recv(*client, head + 3, 2, MSG_WAITALL) != 2)
			goto gone;
		size.ws_row = (unsigned short)(head[1] << 8 | head[2]);
		size.ws_col = (unsigned short)(head[3] << 8 | head[4]);
		if (o->terminal >= 0)
			ioctl(o->terminal, TIOCSWINSZ, &size);
		return;
	}
	len = (size_t)head[1] << 8 | head[2];
	if (head[0] != 'd' || len > sizeof o->typed || recv(*client, o->typed, len, MSG_WAITALL) != (ssize_t)len)
		goto gone;
	o->typed_at = 0;
	o->typed_len = len;
	type(o);
	return;
gone:
	drop(client);
}

/* ---- for the supervisor ---- */

void
ams_output_open(struct ams_output *o, int unit)
{
	memset(o, 0, sizeof *o);
	o->unit = unit;
	o->pipe = o->terminal = o->held = o->listener = -1;
	for (size_t i = 0; i < AMS_CLIENTS; i++)
		o->clients[i] = -1;
	ams_ring_open(&o->log, unit, "log");
	ams_ring_open(&o->output, unit, "output");
}

int
ams_output_listen(struct ams_output *o)
{
	/* by its short name: no path is too long for a socket then */
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "ctl" };

	unlink("ctl");		/* the unit's lock says that nobody else serves it */
	o->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (o->listener >= 0 && (bind(o->listener, (struct sockaddr *)&sun, sizeof sun) != 0 || listen(o->listener, AMS_CLIENTS) != 0))
		drop(&o->listener);
	return o->listener < 0 ? -1 : 0;
}

void
ams_output_pipe(struct ams_output *o, int pipe)
{
	o->pipe = pipe;
	o->last[0] = '\0';		/* a line of the one before says nothing about this one */
	fcntl(pipe, F_SETFL, O_NONBLOCK);
}

void
ams_output_terminal(struct ams_output *o, int terminal)
{
	drop(&o->terminal);
	drop(&o->held);
	o->terminal = terminal;
	o->held = ioctl(terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	fcntl(terminal, F_SETFL, O_RDWR | O_NONBLOCK);
}

void
ams_output_poll(const struct ams_output *o, struct pollfd *p)
{
	*p++ = (struct pollfd){ o->listener, POLLIN, 0 };
	*p++ = (struct pollfd){ o->pipe, POLLIN, 0 };
	*p++ = (struct pollfd){ o->terminal, o->typed_len > 0 ? POLLIN | POLLOUT : POLLIN, 0 };
	for (size_t i = 0; i < AMS_CLIENTS; i++)
		*p++ = (struct pollfd){ o->clients[i], o->typed_len > 0 ? 0 : POLLIN, 0 };
}

void
ams_output_serve(struct ams_output *o, const struct pollfd *p)
{
	if (p[0].revents != 0)
		greet(o);
	if (p[1].revents != 0)
		forward(o, &o->pipe);
	if ((p[2].revents & ~POLLOUT) != 0)
		forward(o, &o->terminal);
	if (o->typed_len > 0)
		type(o);
	for (size_t i = 0; i < AMS_CLIENTS; i++) {
		if (p[3 + i].revents == 0 || o->clients[i] < 0)
			continue;
		if (o->typed_len == 0)
			hear(o, &o->clients[i]);
		else if ((p[3 + i].revents & (POLLHUP | POLLERR)) != 0)
			drop(&o->clients[i]);
	}
}

void
ams_output_end(struct ams_output *o)
{
	for (int i = 0; i < ROUNDS_AT_END && o->pipe >= 0 && forward(o, &o->pipe); i++)
		;
	for (int i = 0; i < ROUNDS_AT_END && o->terminal >= 0 && forward(o, &o->terminal); i++)
		;
	end_line(o);
	drop(&o->pipe);
	drop(&o->terminal);
	drop(&o->held);
	o->typed_len = 0;
}

void
ams_output_flush(struct ams_output *o)
{
	ams_ring_flush(&o->output);
	ams_ring_flush(&o->log);
}
