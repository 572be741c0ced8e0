#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "id.h"

#define GRACE_MS 2000
#define TICK_MS 20		/* how soon an end is noticed while a child of the command holds a pipe */

static int
spawn(pid_t *pid, char *const argv[], int out, int err)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, piped;
	int rc;

	sigemptyset(&none);
	sigemptyset(&piped);
	sigaddset(&piped, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &piped);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

int
am_child_start(struct am_child *c, char *const argv[])
{
	int out[2], err[2], rc;

	*c = (struct am_child){ .out = { { .fd = -1 }, { .fd = -1 } } };
	if (pipe2(out, O_CLOEXEC) != 0)
		return -1;
	if (pipe2(err, O_CLOEXEC) != 0) {
		rc = errno;
	} else {
		rc = spawn(&c->pid, argv, out[1], err[1]);
		close(err[1]);
		c->out[1].fd = err[0];
	}
	close(out[1]);
	c->out[0].fd = out[0];
	if (rc != 0) {
		am_child_free(c);
		errno = rc;
		return -1;
	}
	fcntl(c->out[0].fd, F_SETFL, O_NONBLOCK);
	fcntl(c->out[1].fd, F_SETFL, O_NONBLOCK);
	return 0;
}

static void
keep_bytes(struct am_output *o, const char *block, size_t n, size_t max, enum am_keep keep)
{
	if (keep == AM_FIRST && n > max - o->len) {
		n = max - o->len;
		o->cut = 1;
	}
	if (n == 0)
		return;
	if ((o->bytes = realloc(o->bytes, o->len + n)) == NULL)
		abort();
	memcpy(o->bytes + o->len, block, n);
	o->len += n;
	if (keep == AM_LAST && o->len > 2 * max) {
		memmove(o->bytes, o->bytes + o->len - max, max);
		o->len = max;
		o->cut = 1;
	}
}

void
am_output_read(struct am_output *o, size_t max, enum am_keep keep)
{
	char block[65536];
	ssize_t n;

	while ((n = read(o->fd, block, sizeof block)) > 0)
		keep_bytes(o, block, (size_t)n, max, keep);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(o->fd);
	o->fd = -1;
}

int
am_child_follow(struct am_child *c, long long until, size_t max, enum am_keep keep)
{
	int status = -1, ended = 0;

	while (!ended || c->out[0].fd >= 0 || c->out[1].fd >= 0) {
		struct pollfd p[2] = { { c->out[0].fd, POLLIN, 0 }, { c->out[1].fd, POLLIN, 0 } };
		long long left = until - am_now();

		if (!ended && waitpid(c->pid, &status, WNOHANG) == c->pid) {
			ended = 1;
			if (left > GRACE_MS)
				until = am_now() + GRACE_MS;
		}
		if (left <= 0)
			break;
		if (poll(p, 2, left > TICK_MS ? TICK_MS : (int)left) <= 0)
			continue;
		for (int i = 0; i < 2; i++)
			if (c->out[i].fd >= 0 && p[i].revents != 0)
				am_output_read(&c->out[i], max, keep);
	}
	if (ended)
		return status;
	kill(-c->pid, SIGKILL);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	return -1;
}

void
am_child_free(struct am_child *c)
{
	for (int i = 0; i < 2; i++) {
		if (c->out[i].fd >= 0)
			close(c->out[i].fd);
		free(c->out[i].bytes);
		c->out[i] = (struct am_output){ .fd = -1 };
	}
}
