#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "connector/source.h"
#include "diag.h"
#include "id.h"

#define LIMIT_MS 10000
#define TEXT_MAX 65535
#define ERROR_MAX 256

int
am_source_start(struct am_source *s, const char *path)
{
	char *argv[] = { (char *)path, NULL };

	if (am_child_start(&s->child, argv) != 0)
		return -1;
	s->runs = 1;
	s->deadline = am_now() + LIMIT_MS;
	return 0;
}

int
am_source_poll(const struct am_source *s, struct pollfd fds[2])
{
	int n = 0;

	for (int i = 0; s->runs && i < 2; i++)
		if (s->child.out[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = s->child.out[i].fd, .events = POLLIN };
	return n;
}

static void
read_outputs(struct am_source *s)
{
	if (s->child.out[0].fd >= 0)
		am_output_read(&s->child.out[0], TEXT_MAX, AM_FIRST);
	if (s->child.out[1].fd >= 0)
		am_output_read(&s->child.out[1], ERROR_MAX, AM_FIRST);
}

/* Counts the rows and keeps the first. */
static void
parse(const struct am_output *o, struct am_rows *rows)
{
	char *text = strndup(o->len == 0 ? "" : o->bytes, o->len), *line, *lines, *field[6], *rest;

	if (text == NULL)
		abort();
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
	free(text);
}

int
am_source_step(struct am_source *s, struct am_rows *rows, char why[400])
{
	struct am_output *error = &s->child.out[1];
	int status, rc = -1;
	pid_t got;

	read_outputs(s);
	if ((got = waitpid(s->child.pid, &status, WNOHANG)) == 0) {
		if (am_now() < s->deadline)
			return 0;
		am_source_stop(s);
		snprintf(why, 400, "session source failed: no answer within %d s", LIMIT_MS / 1000);
		return -1;
	}
	read_outputs(s);	/* what it wrote just before its end */
	while (error->len > 0 && error->bytes[error->len - 1] == '\n')
		error->len--;
	if (got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		parse(&s->child.out[0], rows);
		rc = 1;
	} else if (got > 0 && WIFSIGNALED(status)) {
		snprintf(why, 400, "session source failed: killed by signal %d", WTERMSIG(status));
	} else {
		snprintf(why, 400, "session source exited %d: %.200s", WEXITSTATUS(status),
		    am_quote(error->len == 0 ? "" : error->bytes, error->len));
	}
	am_child_free(&s->child);
	s->runs = 0;
	return rc;
}

void
am_source_stop(struct am_source *s)
{
	if (!s->runs)
		return;
	kill(-s->child.pid, SIGKILL);
	waitpid(s->child.pid, NULL, 0);
	am_child_free(&s->child);
	s->runs = 0;
}
