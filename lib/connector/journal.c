#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connector/journal.h"
#include "file.h"
#include "json.h"
#include "path.h"

#define ATTEMPT_MAX 65536

static int
open_dir(const char *state, const char *name)
{
	char *path = am_path_join(state, name);
	int fd = -1;

	if (mkdir(path, 0777) == 0 || errno == EEXIST)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	free(path);
	return fd;
}

int
am_journal_open(struct am_journal *j, const char *state)
{
	if ((j->ledger = open_dir(state, "ledger")) < 0)
		return -1;
	return (j->attempts = open_dir(state, "attempts")) < 0 ? -1 : 0;
}

int
am_journal_done(const struct am_journal *j, const char *key)
{
	return faccessat(j->ledger, key, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * One fsync, that of the directory: that there is a record must last. What it
 * says may be lost with the machine's power, and then it says "uncertain".
 */
int
am_journal_begin(const struct am_journal *j, const char *key, jv record)
{
	size_t len;
	char *text = am_json_text(record, AM_COMPACT, &len);
	int fd = openat(j->attempts, key, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	int rc = fd >= 0 && am_write_all(fd, text, len) == 0 && fsync(j->attempts) == 0 ? 0 : -1, saved = errno;

	if (fd >= 0)
		close(fd);
	if (rc != 0)
		unlinkat(j->attempts, key, 0);
	free(text);
	jv_free(record);
	errno = saved;
	return rc;
}

int
am_journal_note(const struct am_journal *j, const char *key, jv record)
{
	size_t len;
	char *text = am_json_text(record, AM_COMPACT, &len);
	int rc = am_publish(j->attempts, key, text, len, 0644);

	free(text);
	jv_free(record);
	return rc;
}

int
am_journal_end(const struct am_journal *j, const char *key, int final)
{
	int fd;

	if (final) {
		fd = openat(j->ledger, key, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd < 0 && errno != EEXIST)
			return -1;
		if (fd >= 0)
			close(fd);
		if (fsync(j->ledger) != 0)
			return -1;
	}
	if (unlinkat(j->attempts, key, 0) != 0 && errno != ENOENT)
		return -1;
	/* With the ledger's entry in place an attempt that comes back after a crash does no harm. */
	return final ? 0 : fsync(j->attempts);
}

void
am_journal_recover(const struct am_journal *j, void (*found)(const char *key, jv record))
{
	int fd = openat(j->attempts, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	size_t len;
	char *text;
	jv record;

	if (dir == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.') {
			if (strstr(e->d_name, ".tmp") != NULL)
				unlinkat(fd, e->d_name, 0);
			continue;
		}
		record = jv_invalid();
		if ((text = am_read_regular(j->attempts, e->d_name, ATTEMPT_MAX, &len)) != NULL)
			record = am_json_parse(text, len);
		free(text);
		if (am_journal_done(j, e->d_name))
			am_journal_end(j, e->d_name, 0);
		else
			found(e->d_name, record);
		jv_free(record);
	}
	closedir(dir);
}
