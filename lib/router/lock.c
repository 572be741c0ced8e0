#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "router/lock.h"

#define NAME ".router.lock"

static int
make_path(const char *path)
{
	char part[4096];

	if (strlcpy(part, path, sizeof part) >= sizeof part) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (char *p = part + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
		*p = '\0';
		if (mkdir(part, 0777) != 0 && errno != EEXIST)
			return -1;
	}
	return mkdir(part, 0700) != 0 && errno != EEXIST ? -1 : 0;
}

int
amr_lock(struct amr_router *r, const char *state_dir, char *why, size_t size)
{
	char text[64] = "", pid[32];
	ssize_t n;
	int held;

	r->lock = -1;
	if (make_path(state_dir) != 0 || (r->state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    (r->lock = am_open_beneath(r->state, NAME, O_RDWR | O_CREAT, 0600)) < 0) {
		snprintf(why, size, "%s/%s: %s", state_dir, NAME, strerror(errno));
		return -1;
	}
	held = flock(r->lock, LOCK_EX | LOCK_NB) != 0;
	if ((n = pread(r->lock, text, sizeof text - 1, 0)) > 0)
		text[strcspn(text, "\n")] = '\0';
	if (held) {
		snprintf(why, size, "%s/%s is held by another process, pid %s", state_dir, NAME,
		    text[0] != '\0' ? am_quotes(text) : "unknown");
		return 1;
	}
	r->unclean = n > 0;
	snprintf(pid, sizeof pid, "%ld", (long)getpid());
	if (ftruncate(r->lock, 0) != 0 || pwrite(r->lock, pid, strlen(pid), 0) < 0) {
		snprintf(why, size, "%s/%s: %s", state_dir, NAME, strerror(errno));
		return -1;
	}
	return 0;
}

void
amr_unlock(struct amr_router *r)
{
	if (ftruncate(r->lock, 0) == 0)
		close(r->lock);
}
