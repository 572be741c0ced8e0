#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "file.h"
#include "router/router.h"

/* Appends in one write; a line that a crash cut short is ended first. */
static int
append(int dir, const char *text, size_t len)
{
	int fd = am_open_beneath(dir, "log.jsonl", O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK, 0600), rc = -1, saved;
	struct stat st;
	char last = '\n';

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			errno = EINVAL;
		else if (st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) != 1)
			errno = EIO;
		else if (am_write_all(fd, last == '\n' ? text + 1 : text, last == '\n' ? len - 1 : len) == 0 &&
		    fdatasync(fd) == 0 && (st.st_size > 0 || fsync(dir) == 0))
			rc = 0;
	}
	saved = errno;
	close(fd);
	errno = saved;
	return rc;
}

int
amr_audit(const struct amr_router *r, const char *instance, const char *ts, jv line)
{
	int dir = amr_state_dir(r, instance, "audit"), rc, saved;
	size_t len;
	char *text;
	jv s;

	line = am_set_str(am_set_str(line, "instance", instance), "ts", ts);
	if (dir < 0) {
		jv_free(line);
		return -1;
	}
	s = jv_string_fmt("\n%s\n", text = am_json_text(line, AM_SORTED, &len));
	rc = append(dir, jv_string_value(s), len + 2);
	saved = errno;
	free(text);
	jv_free(s);
	jv_free(line);
	close(dir);
	errno = saved;
	return rc;
}
