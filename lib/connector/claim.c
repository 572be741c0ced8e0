#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "connector/claim.h"
#include "connector/proc.h"
#include "diag.h"
#include "file.h"
#include "id.h"
#include "json.h"

#define CLAIM_MAX 65536

enum verdict { GONE, STALE, HELD };

static void
nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000 * 1000 }, NULL);
}

/* Owns the claim; invalid when it is gone (errno ENOENT) or no object. */
static jv
read_claim(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	char *text;
	size_t len;
	jv v = jv_invalid();

	if (fd < 0)
		return v;
	if ((text = am_read_fd(fd, CLAIM_MAX, &len)) != NULL) {
		v = am_json_parse(text, len);
		if (jv_get_kind(v) != JV_KIND_OBJECT) {
			jv_free(v);
			v = jv_invalid();
		}
	}
	free(text);
	close(fd);
	errno = 0;
	return v;
}

/* Whose a claim is. Whatever cannot be told means that it is held. */
static enum verdict
judge(const char *path, char why[1024])
{
	jv claim = jv_invalid(), number;
	const char *consumer, *dir, *start;
	struct am_proc p;
	enum verdict verdict = HELD;
	pid_t pid;

	for (int i = 0; i < 5 && !jv_is_valid(claim); i++) {
		if (i > 0)
			nap();
		claim = read_claim(path);
		if (!jv_is_valid(claim) && errno == ENOENT)
			return GONE;
	}
	number = am_get(claim, "pid", JV_KIND_NUMBER);
	pid = jv_is_valid(number) ? (pid_t)jv_number_value(number) : 0;
	if (pid <= 0 || (double)pid != jv_number_value(number)) {
		snprintf(why, 1024, "something already consumes it: %s holds no readable claim; remove that file if nothing does", path);
	} else {
		consumer = am_str(claim, "consumer");
		dir = am_str(claim, "notice_dir");
		start = am_str(claim, "proc_start");
		if (kill(pid, 0) != 0 && errno == ESRCH)
			verdict = STALE;
		else if (start != NULL && am_proc_read(pid, &p) == 0 && strcmp(start, p.start) != 0)
			verdict = STALE;	/* the number was given to another process */
		snprintf(why, 1024, verdict == STALE ? "%s (pid %ld) is gone" : "%s (pid %ld) already consumes %s: %s",
		    consumer == NULL ? "an unnamed consumer" : am_quotes(consumer), (long)pid,
		    dir == NULL ? "it" : am_quotes(dir), path);
	}
	jv_free(number);
	jv_free(claim);
	return verdict;
}

/* 0 when the claim was made, 1 when one stands there, -1 with errno. */
static int
make_claim(const char *path, const char *text, size_t len)
{
	char *temp;
	int fd, rc = -1, saved;

	if (asprintf(&temp, "%s.tmp.%ld", path, (long)getpid()) < 0)
		abort();
	unlink(temp);
	if ((fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) >= 0) {
		if (am_write_all(fd, text, len) == 0 && fsync(fd) == 0)
			rc = link(temp, path) == 0 ? 0 : errno == EEXIST ? 1 : -1;
		saved = errno;
		close(fd);
		unlink(temp);
		errno = saved;
	}
	free(temp);
	if (rc == 0 || rc == 1 || (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS))
		return rc;
	/* A file system without hard links: readers see a claim that is not whole as held. */
	if ((fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) < 0)
		return errno == EEXIST ? 1 : -1;
	rc = am_write_all(fd, text, len) == 0 && fsync(fd) == 0 ? 0 : -1;
	saved = errno;
	close(fd);
	if (rc != 0)
		unlink(path);
	errno = saved;
	return rc;
}

/* Of two that find the same stale claim the later one would take the new claim of the other away. -1 with errno. */
static int
lock_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
	int fd;

	if (dir == NULL)
		abort();
	if ((fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0 && flock(fd, LOCK_EX) != 0) {
		close(fd);
		fd = -1;
	}
	free(dir);
	return fd;
}

int
am_claim_take(const char *path, const char *consumer, const char *notice_dir, char why[1024])
{
	char ts[21], stale[1024] = "", *text;
	jv claim = jv_object();
	enum verdict v = GONE;
	struct am_proc self;
	size_t len;
	int lock, rc = 1;

	if ((lock = lock_directory(path)) < 0) {
		snprintf(why, 1024, "%s: %s", path, strerror(errno));
		return -1;
	}
	am_timestamp(time(NULL), ts);
	claim = am_set_str(claim, "consumer", consumer);
	claim = am_set(claim, "pid", jv_number((double)getpid()));
	claim = am_set_str(claim, "proc_start", am_proc_read(0, &self) == 0 ? self.start : NULL);
	claim = am_set_str(claim, "notice_dir", notice_dir);
	claim = am_set_str(claim, "started_at", ts);
	text = am_json_text(claim, AM_COMPACT, &len);
	jv_free(claim);
	for (int tries = 0; tries < 2 && rc == 1; tries++) {
		if ((rc = make_claim(path, text, len)) == -1)
			snprintf(why, 1024, "%s: %s", path, strerror(errno));
		if (rc == 1) {
			if ((v = judge(path, why)) == HELD)
				break;
			if (v == STALE) {
				snprintf(stale, sizeof stale, "%s", why);
				unlink(path);
			}
		}
	}
	close(lock);
	free(text);
	if (rc == 0)
		strcpy(why, stale);
	else if (rc == 1 && v != HELD)		/* lost to one who knows nothing of this lock */
		snprintf(why, 1024, "another consumer already consumes it: %s", path);
	return rc;
}

void
am_claim_release(const char *path)
{
	unlink(path);
}
