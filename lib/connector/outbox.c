#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "connector/outbox.h"
#include "connector/place.h"
#include "file.h"
#include "json.h"
#include "tree.h"

#define STATE_DIR "ext/claude-code"
#define LAST STATE_DIR "/last-request"
#define LAST_NUMBER 999999999999999ULL	/* beyond it a stem is no number of ours */

static int
fail(char why[256], const char *what)
{
	snprintf(why, 256, "%s: %s", what, strerror(errno));
	return -1;
}

/* ---- numbers ---- */

/* The number in a stem of digits, with or without "req-" before it and ".json" after it. */
static unsigned long long
number_of(const char *name, int need_prefix)
{
	unsigned long long n;
	char *end;

	if (strncmp(name, "req-", 4) == 0)
		name += 4;
	else if (need_prefix)
		return 0;
	if (*name < '0' || *name > '9' || strspn(name, "0123456789") > 15)
		return 0;
	n = strtoull(name, &end, 10);
	/* One more than the number, so that 0 says that there is none. */
	return strcmp(end, ".json") == 0 && n < LAST_NUMBER ? n + 1 : 0;
}

static unsigned long long
after_last(int outbox, const char *sub, int need_prefix, unsigned long long next)
{
	int fd = am_open_beneath(outbox, sub, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (dir == NULL) {
		if (fd >= 0)
			close(fd);
		return next;
	}
	while ((e = readdir(dir)) != NULL) {
		unsigned long long n = number_of(e->d_name, need_prefix);

		next = n > next ? n : next;
	}
	closedir(dir);
	return next;
}

/* Opens and locks the file that holds the last number; -1 with errno. */
static int
lock_numbers(int outbox)
{
	int fd;

	if (am_mkdir_beneath(outbox, "ext") != 0 || am_mkdir_beneath(outbox, STATE_DIR) != 0)
		return -1;
	if ((fd = am_open_beneath(outbox, LAST, O_RDWR | O_CREAT | O_NONBLOCK, 0666)) < 0)
		return -1;
	while (flock(fd, LOCK_EX) != 0)
		if (errno != EINTR) {
			close(fd);
			return -1;
		}
	return fd;
}

static unsigned long long
next_number(int outbox, int numbers)
{
	char text[32] = "";
	unsigned long long next = 0;
	ssize_t n = pread(numbers, text, sizeof text - 1, 0);

	if (n > 0 && strspn(text, "0123456789") <= 15 && text[strspn(text, "0123456789")] == '\n')
		next = strtoull(text, NULL, 10) + 1;
	next = after_last(outbox, ".", 1, next);
	next = after_last(outbox, "processed", 1, next);
	return after_last(outbox, "results", 0, next);
}

/* Written before the request is: a crash then leaves a gap, never the same number twice. */
static int
keep_number(int numbers, const char *id)
{
	char text[32];
	int n = snprintf(text, sizeof text, "%s\n", id);

	return pwrite(numbers, text, (size_t)n, 0) != n || ftruncate(numbers, n) != 0 ? -1 : fsync(numbers);
}

/* ---- attachments ---- */

/* Copies one source, hashing and counting what is written. */
static int
copy_file(int dir, unsigned index, const struct am_attachment *a, size_t max, char sha[65], size_t *size)
{
	static char block[1 << 20];
	char name[16], temp[24];
	SHA2_CTX hash;
	ssize_t n;
	int fd;

	snprintf(name, sizeof name, "%u", index);
	snprintf(temp, sizeof temp, "%u.tmp", index);
	if ((fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)) < 0)
		return -1;
	SHA256Init(&hash);
	*size = 0;
	while ((n = read(a->fd, block, sizeof block)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0 && (*size += (size_t)n) > max) {
			errno = EFBIG;
			n = -1;
		}
		if (n < 0 || am_write_all(fd, block, (size_t)n) != 0) {
			close(fd);
			return -1;
		}
		SHA256Update(&hash, (const uint8_t *)block, (size_t)n);
	}
	SHA256End(&hash, sha);
	if (fsync(fd) != 0) {
		close(fd);
		return -1;
	}
	return close(fd) != 0 ? -1 : renameat(dir, temp, dir, name);
}

/* Owns an array of descriptors; invalid after a failure, and then no directory is left. */
static jv
copy_files(int outbox, const char *name, const struct am_attachment *files, size_t count, size_t max, char why[256])
{
	jv list = jv_array();
	char sha[65];
	size_t size;
	int dir;

	if (am_remove(outbox, name) != 0 || mkdirat(outbox, name, 0777) != 0 ||
	    (dir = am_open_beneath(outbox, name, O_RDONLY | O_DIRECTORY, 0)) < 0) {
		fail(why, name);
		jv_free(list);
		return jv_invalid();
	}
	for (size_t i = 0; i < count; i++) {
		jv d = jv_object();

		if (copy_file(dir, (unsigned)i, &files[i], max, sha, &size) != 0) {
			snprintf(why, 256, "attachments[%zu]: %s", i, strerror(errno));
			jv_free(d);
			jv_free(list);
			list = jv_invalid();
			break;
		}
		d = am_set_str(am_set_str(d, "filename", files[i].filename), "media_type", files[i].media_type);
		d = am_set_str(am_set(d, "size_bytes", jv_number((double)size)), "sha256", sha);
		list = jv_array_append(list, d);
	}
	if (fsync(dir) != 0 && jv_is_valid(list)) {
		fail(why, name);
		jv_free(list);
		list = jv_invalid();
	}
	close(dir);
	if (!jv_is_valid(list))
		am_remove(outbox, name);
	return list;
}

/* ---- the request ---- */

static void
now(char out[64])
{
	struct timeval tv;
	struct tm tm;
	size_t n;

	gettimeofday(&tv, NULL);
	gmtime_r(&tv.tv_sec, &tm);
	n = strftime(out, 64, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 64 - n, ".%06ld+00:00", (long)tv.tv_usec);
}

/* Publishes at a name that must be free. */
static int
publish_new(int dir, const char *name, const char *text, size_t len)
{
	char temp[64];
	int fd, saved;

	snprintf(temp, sizeof temp, "%s.tmp", name);
	unlinkat(dir, temp, 0);			/* left by a writer that died with the lock */
	if ((fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)) < 0)
		return -1;
	if (am_write_all(fd, text, len) != 0 || fsync(fd) != 0) {
		saved = errno;
		close(fd);
	} else if (close(fd) != 0 || renameat2(dir, temp, dir, name, RENAME_NOREPLACE) != 0) {
		saved = errno;
	} else if (fsync(dir) != 0) {
		saved = errno;
		unlinkat(dir, name, 0);
	} else {
		return 0;
	}
	unlinkat(dir, temp, 0);
	errno = saved;
	return -1;
}

static int
publish_locked(int outbox, int numbers, jv draft, const char *agent_id, const struct am_attachment *files,
    size_t count, size_t max, char id[24], char why[256])
{
	char name[48], sidecars[64], ts[64], *text;
	jv request = jv_object();
	size_t len;
	int rc;

	snprintf(id, 24, "%08llu", next_number(outbox, numbers));
	snprintf(name, sizeof name, "req-%s.json", id);
	snprintf(sidecars, sizeof sidecars, "req-%s.attachments", id);
	if (keep_number(numbers, id) != 0) {
		jv_free(request);
		jv_free(draft);
		return fail(why, LAST);
	}
	if (count > 0) {
		jv list = copy_files(outbox, sidecars, files, count, max, why);

		if (!jv_is_valid(list)) {
			jv_free(request);
			jv_free(draft);
			return -1;
		}
		draft = am_set(draft, "attachments", list);
	}
	now(ts);
	request = am_set_str(am_set_str(request, "contract_version", "2"), "req_id", id);
	request = am_set(am_set_str(request, "ts", ts), "draft", draft);
	if (agent_id != NULL)
		request = am_set_str(request, "agent_id", agent_id);
	text = am_json_text(request, AM_DOCUMENT, &len);
	jv_free(request);
	if ((rc = publish_new(outbox, name, text, len)) != 0) {
		fail(why, name);
		if (count > 0)
			am_remove(outbox, sidecars);
	}
	free(text);
	return rc;
}

int
am_outbox_publish(const char *outbox, jv draft, const char *agent_id, const struct am_attachment *files,
    size_t count, size_t max_bytes, char id[24], char why[256])
{
	int dir = -1, numbers = -1, rc = -1;

	if (am_make_dirs(outbox) != 0 || (dir = open(outbox, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		fail(why, outbox);
		jv_free(draft);
		return -1;
	}
	if ((numbers = lock_numbers(dir)) < 0) {
		fail(why, LAST);
		jv_free(draft);
	} else {
		rc = publish_locked(dir, numbers, draft, agent_id, files, count, max_bytes, id, why);
		close(numbers);
	}
	close(dir);
	return rc;
}
