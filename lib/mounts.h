/*
 * mounts - what is mounted in a container or an embedded sandbox, from one
 * entry of a docker inspect array.
 *
 * With docker the entry's Mounts decide, and there RW only (spec bugs, B20).
 * An embedded sandbox's entry has Mountinfo instead, its process's own table;
 * what the sandbox's image itself consists of is left out of it.
 */
#ifndef AM_MOUNTS_H
#define AM_MOUNTS_H

#include "json.h"

struct am_mounts {
	jv rows;		/* target -> {"source","writable"} */
	jv shared;		/* target -> text that is the same wherever the same directory is mounted */
	char why[400];
};

/*
 * Borrows. wanted (target -> source) says which directory is expected where: a
 * mount table does not name the source, so it is proven by identity, the
 * device and inode seen through the process against those of that path.
 * binds_only leaves out docker's volumes and tmpfs. 0, or -1 with why set when
 * it cannot be told. am_mounts_free is due in both cases.
 */
int am_mounts_read(struct am_mounts *m, jv entry, jv wanted, int binds_only);
void am_mounts_free(struct am_mounts *m);

/* 1 when the entry is of an embedded sandbox, whose process tells more than the entry. */
int am_is_embedded(jv entry);

/*
 * The network interfaces that an embedded sandbox's process has, but for the
 * loopback: "none", or their names with spaces between them; NULL when that
 * cannot be told. It lies in seen or is constant.
 */
const char *am_networks(jv entry, char *seen, size_t size);

/* Owns: a row's value. The source is resolved as far as it exists. */
jv am_mount_row(const char *source, int writable);

#endif
