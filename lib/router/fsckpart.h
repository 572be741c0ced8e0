/*
 * fsckpart - what the two halves of fsck share: fsckstate.c looks at what the
 * router keeps for itself, fsck.c at the lanes and the whole.
 */
#ifndef AM_ROUTER_FSCKPART_H
#define AM_ROUTER_FSCKPART_H

#include "router/router.h"

#define AM_FSCK_MAX (16u << 20)	/* bytes of one file */

struct amr_fsck {
	FILE *fp;
	int state;
	const char *name;	/* of the instance in hand */
	int root;		/* of its lanes; -1: not known */
	long problems, notes;
};

void amr_fsck_tell(struct amr_fsck *c, int is_problem, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Owns the document; invalid after telling why. */
jv amr_fsck_read(struct amr_fsck *c, int at, const char *path);
void amr_fsck_judge(struct amr_fsck *c, const char *path, const char *doc_class, jv doc);
int amr_fsck_exists(int at, const char *path);
int amr_fsck_is_notice(const char *name, char nid[AM_NOTICE_ID + 1]);

/* One file of a directory that the state keeps for an instance. */
void amr_fsck_result(struct amr_fsck *c, int at, const char *dir, const char *name);
void amr_fsck_record(struct amr_fsck *c, int at, const char *dir, const char *name);
void amr_fsck_held(struct amr_fsck *c, int at, const char *dir, const char *name);
void amr_fsck_json(struct amr_fsck *c, int at, const char *dir, const char *name);

/* Two deliveries of one request to the instance, in the sender's present life; its audit log. */
void amr_fsck_twice(struct amr_fsck *c);
void amr_fsck_audit(struct amr_fsck *c);

#endif
