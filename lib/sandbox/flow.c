#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "flow.h"

void
ams_flow_poll(const struct ams_flow *f, struct pollfd p[2])
{
	p[0] = (struct pollfd){ f->len == 0 && f->to >= 0 ? f->from : -1, POLLIN, 0 };
	p[1] = (struct pollfd){ f->len > 0 ? f->to : -1, POLLOUT, 0 };
}

int
ams_flow_write(struct ams_flow *f, const struct pollfd p[2])
{
	ssize_t n;

	if (p[1].revents == 0)
		return 0;
	/* no more than a pipe that takes anything takes: it may be one that would wait */
	n = write(f->to, f->buf + f->at, f->len < PIPE_BUF ? f->len : PIPE_BUF);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0) {
		f->from = -1;
		f->len = 0;
		return -1;
	}
	f->at += (size_t)n;
	f->len -= (size_t)n;
	f->done += (size_t)n;
	return 0;
}

void
ams_flow_read(struct ams_flow *f, const struct pollfd p[2])
{
	ssize_t n;

	if (p[0].revents == 0)
		return;
	n = read(f->from, f->buf, sizeof f->buf);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	f->at = 0;
	f->len = n > 0 ? (size_t)n : 0;
	if (n <= 0)		/* EIO: the last process has closed the terminal */
		f->from = -1;
}

int
ams_flow_ended(const struct ams_flow *f)
{
	return f->from < 0 && f->len == 0;
}
