#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../file.h"
#include "../utf8.h"
#include "record.h"

#define LINE_MAX_BYTES 4096

static void
begin(struct ams_ring *r, int flags)
{
	struct stat st;

	r->fd = openat(r->unit, r->name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
	r->size = r->fd >= 0 && fstat(r->fd, &st) == 0 ? (size_t)st.st_size : 0;
}

void
ams_ring_open(struct ams_ring *r, int unit, const char *name)
{
	r->unit = unit;
	r->name = name;
	r->fd = -1;
}

static void
put(struct ams_ring *r, const char *bytes, size_t len)
{
	char old[64];

	if (r->fd < 0)
		begin(r, 0);
	if (r->fd < 0)
		return;
	if (am_write_all(r->fd, bytes, len) != 0) {
		/* a full disk loses log lines, not the sandbox, and leaves none that the next one would go on with */
		(void)!ftruncate(r->fd, (off_t)r->size);
		return;
	}
	r->size += len;
	if (r->size < AMS_RING_MAX)
		return;
	snprintf(old, sizeof old, "%s.old", r->name);
	if (renameat(r->unit, r->name, r->unit, old) == 0) {
		close(r->fd);
		begin(r, O_EXCL);
	}
}

void
ams_ring_flush(struct ams_ring *r)
{
	if (r->waiting > 0)
		put(r, r->buf, r->waiting);
	r->waiting = 0;
}

void
ams_ring_add(struct ams_ring *r, const void *bytes, size_t len)
{
	if (r->waiting + len > sizeof r->buf)
		ams_ring_flush(r);
	if (len > sizeof r->buf) {
		put(r, bytes, len);
		return;
	}
	memcpy(r->buf + r->waiting, bytes, len);
	r->waiting += len;
}

char *
ams_ring_last(int unit, const char *name, size_t max, size_t *len)
{
	char old[64], *a, *b;
	size_t na = 0, nb = 0;

	snprintf(old, sizeof old, "%s.old", name);
	a = am_read_regular(unit, old, 4 * AMS_RING_MAX, &na);
	b = am_read_regular(unit, name, 4 * AMS_RING_MAX, &nb);
	if (a == NULL && b == NULL)
		return NULL;
	if ((a = realloc(a, na + nb + 1)) == NULL)
		abort();
	if (b != NULL)
		memcpy(a + na, b, nb);
	free(b);
	*len = na + nb;
	if (*len > max) {
		memmove(a, a + *len - max, max);
		*len = max;
	}
	a[*len] = '\0';
	return a;
}

void
ams_log(struct ams_ring *log, const char *source, const char *level, const char *target, const char *text, size_t len)
{
	char line[LINE_MAX_BYTES];
	struct timespec now;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	n = (size_t)snprintf(line, sizeof line, "[%lld.%03ld] [%-7s] [%-5s] [%s] ", (long long)now.tv_sec,
	    now.tv_nsec / 1000000, source, level, target);
	while (len > 0) {
		uint32_t c;
		int size = am_utf8_next(text, len, &c);
		size_t taken = size > 0 ? (size_t)size : 1;

		if (n + taken >= sizeof line)
			break;
		/* it is read on a terminal: no byte of the sandbox's moves the cursor there, nor turns the line around */
		if (size > 0 && am_printable(c)) {
			memcpy(line + n, text, taken);
			n += taken;
		} else {
			line[n++] = *text == '\t' ? ' ' : '?';
		}
		text += taken;
		len -= taken;
	}
	line[n++] = '\n';
	ams_ring_add(log, line, n);
}
