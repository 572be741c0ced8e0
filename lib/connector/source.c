#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "connector/source.h"
#include "diag.h"
#include "id.h"

#define LIMIT_MS 10000

extern char **environ;

int
am_source_start(struct am_source *s, const char *path)
{
	char *argv[] = { (char *)path, NULL };
	int out[2], err[2], rc;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, piped;

	if (pipe2(out, O_CLOEXEC) != 0)
		return -1;
	if (pipe2(err, O_CLOEXEC) != 0) {
		close(out[0]);
		close(out[1]);
		return -1;
	}
	sigemptyset(&none);
	sigemptyset(&piped);
	sigaddset(&piped, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, err[1], STDERR_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &piped);
	rc = posix_spawn(&s->pid, path, &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	close(out[1]);
	close(err[1]);
	if (rc != 0) {
		close(out[0]);
		close(err[0]);
		s->pid = 0;
		errno = rc;
		return -1;
	}
	s->out = out[0];
	s->err = err[0];
	s->text_len = s->error_len = 0;
	s->deadline = am_now() + LIMIT_MS;
	fcntl(s->out, F_SETFL, O_NONBLOCK);
	fcntl(s->err, F_SETFL, O_NONBLOCK);
	return 0;
}

int
am_source_poll(const struct am_source *s, struct pollfd fds[2])
{
	int n = 0;

	if (s->pid != 0 && s->out >= 0)
		fds[n++] = (struct pollfd){ .fd = s->out, .events = POLLIN };
	if (s->pid != 0 && s->err >= 0)
		fds[n++] = (struct pollfd){ .fd = s->err, .events = POLLIN };
	return n;
}

/* Reads what has come; what does not fit is dropped. */
static void
drain(int *fd, char *buf, size_t *len, size_t size)
{
	char rest[4096];
	ssize_t n;

	while (*fd >= 0) {
		int full = *len == size;

		n = read(*fd, full ? rest : buf + *len, full ? sizeof rest : size - *len);
		if (n > 0) {
			*len += full ? 0 : (size_t)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			close(*fd);
			*fd = -1;
		} else if (errno == EAGAIN) {
			return;
		}
	}
}

/* Counts the rows and keeps the first. */
static void
parse(char *text, struct am_rows *rows)
{
	char *line, *lines, *field[6], *rest;

	memset(rows, 0, sizeof *rows);
	for (line = strtok_r(text, "\n", &lines); line != NULL; line = strtok_r(NULL, "\n", &lines)) {
		int n = 0;

		for (char *f = strtok_r(line, " \t\r\v\f", &rest); f != NULL && n < 6; f = strtok_r(NULL, " \t\r\v\f", &rest))
			field[n++] = f;
		if (n < 6 || strcmp(field[0], "claude") != 0 || rows->count++ > 0)
			continue;
		if (strspn(field[3], "0123456789") == strlen(field[3]))
			rows->pid = (pid_t)atol(field[3]);
		snprintf(rows->socket, sizeof rows->socket, "%s", field[4]);
		snprintf(rows->key, sizeof rows->key, "%s", field[5]);
	}
}

static void
release(struct am_source *s)
{
	if (s->out >= 0)
		close(s->out);
	if (s->err >= 0)
		close(s->err);
	s->pid = 0;
}

int
am_source_step(struct am_source *s, struct am_rows *rows, char why[400])
{
	int status;
	pid_t got;

	drain(&s->out, s->text, &s->text_len, sizeof s->text - 1);
	drain(&s->err, s->error, &s->error_len, sizeof s->error);
	if ((got = waitpid(s->pid, &status, WNOHANG)) == 0) {
		if (am_now() < s->deadline)
			return 0;
		am_source_stop(s);
		snprintf(why, 400, "session source failed: no answer within %d s", LIMIT_MS / 1000);
		return -1;
	}
	/* What it wrote just before its end. */
	drain(&s->out, s->text, &s->text_len, sizeof s->text - 1);
	drain(&s->err, s->error, &s->error_len, sizeof s->error);
	release(s);
	if (got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		s->text[s->text_len] = '\0';
		parse(s->text, rows);
		return 1;
	}
	while (s->error_len > 0 && s->error[s->error_len - 1] == '\n')
		s->error_len--;
	if (got > 0 && WIFSIGNALED(status))
		snprintf(why, 400, "session source failed: killed by signal %d", WTERMSIG(status));
	else
		snprintf(why, 400, "session source exited %d: %.200s", WEXITSTATUS(status), am_quote(s->error, s->error_len));
	return -1;
}

void
am_source_stop(struct am_source *s)
{
	if (s->pid == 0)
		return;
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	release(s);
}
