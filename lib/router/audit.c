#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "router/router.h"

#define TAIL (1 << 20)		/* where the line of the request in hand is, when there is one */

/* Appends in one write; a line that a crash cut short is ended first. The log, to be flushed and closed. */
static int
append(int dir, const char *text, size_t len)
{
	int fd = am_open_beneath(dir, "log.jsonl", O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK, 0600), saved;
	struct stat st;
	char last = '\n';

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			errno = EINVAL;
		else if (st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) != 1)
			errno = EIO;
		else if ((st.st_size > 0 || fsync(dir) == 0) &&
		    am_write_all(fd, last == '\n' ? text + 1 : text, last == '\n' ? len - 1 : len) == 0)
			return fd;
	}
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int
amr_audit_begin(const struct amr_router *r, const char *instance, const char *ts, jv line)
{
	int dir = amr_use_state(r, instance, "audit"), fd, saved;
	size_t len;
	char *text;
	jv s;

	line = am_set_str(am_set_str(line, "instance", instance), "ts", ts);
	if (dir < 0) {
		jv_free(line);
		return -1;
	}
	s = jv_string_fmt("\n%s\n", text = am_json_text(line, AM_SORTED, &len));
	fd = append(dir, jv_string_value(s), len + 2);
	saved = errno;
	free(text);
	jv_free(s);
	jv_free(line);
	errno = saved;
	return fd;
}

int
amr_audit(const struct amr_router *r, const char *instance, const char *ts, jv line)
{
	int fd = amr_audit_begin(r, instance, ts, line), rc, saved;

	if (fd < 0)
		return -1;
	rc = fdatasync(fd);
	saved = errno;
	close(fd);
	errno = saved;
	return rc;
}

int
amr_audit_tells(const struct amr_router *r, const char *instance, const char *what)
{
	int dir = amr_use_state(r, instance, "audit"), found = 0;
	int fd = dir < 0 ? -1 : am_open_beneath(dir, "log.jsonl", O_RDONLY | O_NONBLOCK, 0);
	char *tail = malloc(TAIL);
	struct stat st;
	ssize_t n;

	if (tail == NULL)
		abort();
	if (fd >= 0 && fstat(fd, &st) == 0 && (n = pread(fd, tail, TAIL, st.st_size > TAIL ? st.st_size - TAIL : 0)) > 0)
		found = memmem(tail, (size_t)n, what, strlen(what)) != NULL;
	free(tail);
	if (fd >= 0)
		close(fd);
	return found;
}
