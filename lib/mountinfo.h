/*
 * mountinfo - a mount table as the kernel writes it (proc_pid_mountinfo(5)).
 */
#ifndef AM_MOUNTINFO_H
#define AM_MOUNTINFO_H

#include <stddef.h>

struct am_mount {
	int id, parent;
	char *device, *root, *target;	/* "MAJ:MIN"; paths with their octal escapes decoded */
	int read_only;			/* by the mount's own options or by the file system's */
};

struct am_mountinfo {
	struct am_mount *v;
	size_t n;
	char *text;			/* what the strings lie in */
	char why[200];
};

/* 0, or -1 with why set. am_mountinfo_free is due in both cases. */
int am_mountinfo_parse(struct am_mountinfo *mi, const char *text);
void am_mountinfo_free(struct am_mountinfo *mi);

/*
 * The mount that a walk to this absolute, normalised path ends in: what was
 * mounted later over it, or over a directory above it, covers what was there.
 * NULL with why set when the table does not say.
 */
const struct am_mount *am_mountinfo_at(struct am_mountinfo *mi, const char *path);

#endif
