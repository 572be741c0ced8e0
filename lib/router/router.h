/*
 * router - what the rooms of the router share.
 *
 * One thread (but for helpers that only flush), one request in hand. Trusted: the configuration and state_dir.
 * Hostile: every byte and every name below an instance's root.
 */
#ifndef AM_ROUTER_H
#define AM_ROUTER_H

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "file.h"
#include "json.h"
#include "router/conf.h"

#define AM_REQUEST_MAX (1u << 20)
#define AM_REQ_ID_MAX 64
#define AM_NOTICE_ID 32			/* hexadecimal digits of 128 random bits */

/* Counters of one instance: names and order in count.c (spec router, 17.2). */
enum amr_counter {
	AM_FIRST_SIGHT, AM_SEEN, AM_BAD_NAME, AM_RESUMED, AM_REUSED, AM_ERRORED, AM_DRAINED,
	AM_ACCEPTED, AM_REJECTED, AM_QUEUED, AM_QUARANTINED, AM_BY_EVENT, AM_BY_SCAN,
	AM_RELEASED, AM_DENIED,
	AM_PEER_SEEN,			/* from here on only where there is a delegation lane */
	AM_PEER_DELIVERED, AM_PEER_HELD, AM_PEER_DENIED, AM_PEER_REFUSED, AM_PEER_AMBIGUOUS, AM_PEER_FAILED,
	AM_PEER_DISCARDED, AM_PEER_ERRORED, AM_DSN_SENT, AM_DSN_FAILED,
	AM_INSTANCE_ERRORED,
	AM_COUNTERS
};
extern const char *const amr_counter_names[AM_COUNTERS];

/* Which version of a file or directory something was made from. */
struct amr_version {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
};
struct amr_version amr_version_of(const struct stat *st);
int amr_same_version(const struct amr_version *a, const struct amr_version *b);

/* A sorted set of short names in one piece of memory. */
struct amr_names {
	char *text;		/* NUL-ended, one after the other */
	size_t len, cap;
	uint32_t *at;		/* where each begins */
	size_t n, room;
};
void amr_names_add(struct amr_names *s, const char *name, const char *more);	/* more: kept beside it, or NULL */
void amr_names_sort(struct amr_names *s);
const char *amr_names_find(const struct amr_names *s, const char *name);	/* sorted before; what is kept beside it, or NULL */
void amr_names_free(struct amr_names *s);

/* One instance that was admitted at some time in this process. */
struct amr_inst {
	char *name;
	long at;		/* its index in the configuration; -1: not admitted now */
	long last[AM_COUNTERS], total[AM_COUNTERS];
	time_t last_error;
	jv alerts;		/* the last 50; invalid until the first */
	jv denied;		/* placed but denied; invalid until the first pass */
	jv pass_alerts;		/* of this poll */

	struct amr_version marker_version;	/* first-seen.json as last read */
	struct amr_names snapshot;
	time_t first_seen;

	struct amr_version outcomes_version;	/* of its recorded outcomes, for denied */
	struct amr_version held_version;		/* of held/, for the next two */
	long held;
	time_t held_oldest;
	int exposure_known;
	unsigned long exposure_turn;		/* in which it was looked at last */
	struct amr_version inbox_version;	/* of inbox/notices, for last_foreign */
	time_t last_foreign;			/* mail that this router did not write; 0: none */
	time_t last_external;			/* of the ledger; 0: none */

	struct amr_names queue;	/* request ids that wait, next the one at head */
	size_t head;
	int scanned;		/* the queue was filled by a scan, not by events */
	int truncated;		/* and more lies there than it took; the next poll goes on */
	int rescan, outcomes_due, watch_due, waiting;	/* waiting: it stands in the line of the loop */
	struct amr_inst *next;

	int told_watch, told_first;
	long bad_names_told;			/* a standing condition is logged when it changes */
	char told_id[AM_REQ_ID_MAX + 1];
	int told_errno, told_drain;
	long outcomes_left, outcomes_told;
	char outcome_left[128];
	int peer_was;				/* it had a delegation lane when last admitted */
};

struct amr_router {
	const char *config_path;
	struct amr_conf *conf;
	int state, lock;
	double interval;	/* 0: unknown */
	time_t started, last_poll;
	long polls;
	unsigned long turns;
	struct amr_inst **inst;	/* by byte order of name; only grows */
	size_t n;
	jv intents;		/* array: what was decided and is perhaps not yet done */
	int intent_fd, intents_saved;	/* how many the file holds */
	size_t intent_len;		/* its length, when it was written in place */
	int notify, cwd;	/* inotify; -1: none */
	int decisions_watch, decisions_due;
	int unclean;		/* the last holder of the lock did not end well */
	struct amr_inst *line, **line_end;
	jv admitted;		/* of the last poll; invalid before the first */
	char *roster_told;	/* its last outcome, for the log */
};

/* One instance, opened for one turn. */
struct amr_turn {
	struct amr_router *r;
	struct amr_inst *in;
	const struct amr_member *m;
	int root, outbox;
};

/* count.c */
void amr_count(struct amr_inst *in, enum amr_counter c);

/* members.c */
struct amr_inst *amr_inst_find(const struct amr_router *r, const char *name);
void amr_adopt(struct amr_router *r);	/* makes r->inst follow r->conf */

/* dirs.c: -1 with errno. Directories that are missing are made. */
int amr_dir(int at, const char *path);
int amr_state_dir(const struct amr_router *r, const char *instance, const char *sub);
/* The same, and borrowed: they stay open until they are let go, at the end of a turn. */
int amr_use_state(const struct amr_router *r, const char *instance, const char *sub);
int amr_use_lane(const struct amr_member *m, char lane, const char *leaf);
void amr_let_go(void);
int amr_root(const struct amr_member *m);
const char *amr_lane(const struct amr_member *m, char which);	/* 'i', 'o', 'p' */
char *amr_state_read(const struct amr_router *r, const char *instance, const char *path, size_t max, size_t *len);
int amr_state_publish(const struct amr_router *r, const char *instance, const char *sub, const char *name, jv doc);	/* consumes */
int amr_draft_json(struct am_draft *d, int dirfd, const char *name, jv doc, mode_t mode);	/* consumes; dirfd -1: as errno says */
int amr_publish_json(int dirfd, const char *name, jv doc, mode_t mode);	/* consumes */
/* Empties and removes a directory below at; bounded, and follows nothing. */
void amr_remove_tree(int at, const char *name);

/* 1 for an errno that says nothing about the file: descriptors, memory, room, a failing disk. */
int amr_is_shortage(int errnum);
void amr_digest(const char *bytes, size_t len, char hex[65]);

/* audit.c: consumes the line, which has its event. The first leaves it to the caller to flush and close the log. */
int amr_audit_begin(const struct amr_router *r, const char *instance, const char *ts, jv line);
int amr_audit(const struct amr_router *r, const char *instance, const char *ts, jv line);
/* 1 when one of the last lines holds this. */
int amr_audit_tells(const struct amr_router *r, const char *instance, const char *what);

#endif
