#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "router/log.h"
#include "router/queue.h"
#include "router/request.h"

#define QUEUE_MAX 16384		/* names kept, also of what is done; the rest is found when these are */

static int
kind_of(int dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type;
	if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return DT_UNKNOWN;
	return S_ISLNK(st.st_mode) ? DT_LNK : S_ISREG(st.st_mode) ? DT_REG : DT_DIR;
}

void
amr_queue_empty(struct amr_inst *in)
{
	amr_names_free(&in->queue);
	in->head = 0;
}

int
amr_queue_scan(struct amr_turn *t)
{
	struct amr_inst *in = t->in;
	int fd = t->outbox < 0 ? -1 : openat(t->outbox, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char id[AM_REQ_ID_MAX + 1], first[256] = "";
	struct dirent *e;
	long bad = 0;

	in->rescan = in->truncated = 0;
	amr_queue_empty(in);
	if (d == NULL) {
		int saved = errno;

		if (fd >= 0)
			close(fd);
		errno = saved;
		return t->outbox < 0 ? 0 : -1;
	}
	while ((errno = 0, e = readdir(d)) != NULL) {
		int kind = kind_of(fd, e);

		if (kind == DT_LNK || (kind == DT_REG && !amr_is_request_name(e->d_name, id))) {
			size_t len = strlen(e->d_name);

			/* A file on its way comes and goes: counted, and no news. */
			if ((len < 4 || strcmp(e->d_name + len - 4, ".tmp") != 0) && bad++ == 0)
				snprintf(first, sizeof first, "%s", e->d_name);
			amr_count(in, AM_SEEN);
			amr_count(in, AM_BAD_NAME);
		} else if (kind == DT_REG) {
			if ((in->truncated = in->queue.n == QUEUE_MAX))
				break;
			amr_names_add(&in->queue, id, NULL);
		}
	}
	closedir(d);
	amr_names_sort(&in->queue);
	in->scanned = 1;
	if (bad != in->bad_names_told && bad > 0)
		amr_log(AM_WARNING, ".outbound", "%s: %ld entries of its outbox are no requests and are left alone, one of them %s",
		    in->name, bad, am_quotes(first));
	in->bad_names_told = bad;
	return 0;
}

void
amr_queue_event(struct amr_inst *in, const char *file)
{
	char id[AM_REQ_ID_MAX + 1];

	if (!amr_is_request_name(file, id))
		return;
	if (in->queue.n >= QUEUE_MAX) {
		in->rescan = 1;
		return;
	}
	if (in->head == in->queue.n)
		in->scanned = 0;
	amr_names_add(&in->queue, id, in->scanned ? "event" : NULL);
}
