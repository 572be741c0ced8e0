#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "erase.h"

/*
 * Empties a directory that an agent filled: any depth, any mode, any name.
 * Directories inside are moved up before they are emptied, so neither the
 * stack nor the number of descriptors grows with the depth.
 */
static int
hoist(int top, int sub, unsigned long *serial)
{
	DIR *d = fdopendir(dup(sub));
	struct dirent *e;
	char name[32];
	int rc = 0;

	if (d == NULL)
		return -1;
	rewinddir(d);
	while (rc == 0 && (errno = 0, e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(sub, e->d_name, 0) == 0)
			continue;
		/* moving a directory writes its "..": it must be writable itself */
		(void)!fchmodat(sub, e->d_name, 0700, AT_SYMLINK_NOFOLLOW);
		snprintf(name, sizeof name, ".hoisted-%lu", (*serial)++);
		rc = renameat2(sub, e->d_name, top, name, RENAME_NOREPLACE);
		if (rc != 0 && errno == EEXIST)
			rc = 0;		/* the next round tries another name */
	}
	if (rc == 0 && errno != 0)
		rc = -1;
	closedir(d);
	return rc;
}

int
ams_empty(int top)
{
	unsigned long serial = 0;
	int found = 1, rc = 0;

	while (rc == 0 && found) {
		DIR *d = fdopendir(dup(top));
		struct dirent *e;

		if (d == NULL)
			return -1;
		rewinddir(d);
		found = 0;
		while (rc == 0 && (e = readdir(d)) != NULL) {
			int sub;

			if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
				continue;
			found = 1;
			if (unlinkat(top, e->d_name, 0) == 0 || unlinkat(top, e->d_name, AT_REMOVEDIR) == 0)
				continue;
			(void)!fchmodat(top, e->d_name, 0700, AT_SYMLINK_NOFOLLOW);
			if ((sub = openat(top, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
				rc = -1;
				break;
			}
			rc = hoist(top, sub, &serial);
			close(sub);
			if (rc == 0 && unlinkat(top, e->d_name, AT_REMOVEDIR) != 0 && errno != ENOTEMPTY)
				rc = -1;
		}
		closedir(d);
	}
	return rc;
}

int
ams_erase(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	rc = ams_empty(fd);
	close(fd);
	return rc == 0 ? unlinkat(at, name, AT_REMOVEDIR) : -1;
}
