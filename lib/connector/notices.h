/*
 * notices - the notices of both lanes that are known, and how far each has come.
 *
 *	NEW -> ADMITTED -> FLYING -> DONE
 *	 |        ^           |
 *	 +-> DONE +- again ---+
 */
#ifndef AM_NOTICES_H
#define AM_NOTICES_H

#include <stddef.h>
#include <sys/types.h>

#include "connector/inject.h"
#include "connector/journal.h"

enum am_lane { AM_MAIL, AM_PEER };
extern const char *const am_lane_name[];

enum am_notice_state { AM_N_NEW, AM_N_ADMITTED, AM_N_FLYING, AM_N_DONE };

struct am_notice {
	enum am_lane lane;
	char id[33];
	enum am_notice_state state;
	unsigned seen, fails;
	int waits;			/* cannot be looked at, and that was said */
	long long next;			/* am_now before which it is not tried */
	const char *told;		/* the outcome last written */
	struct am_injection *in;	/* while it flies */
	pid_t session;			/* that it was handed to, or 0 */
	char session_start[24];
};

/* In the order of lane and id, but for those that were added since the last scan. */
struct am_notices {
	struct am_notice **all;
	size_t count, sorted, room;
	unsigned generation;
	const struct am_journal *journal;	/* whose ledger says which are done */
};

/* The notice, which is added when it is not among those that are in order. */
struct am_notice *am_notices_note(struct am_notices *set, enum am_lane lane, const char *id);

/* Puts all in order; a scan does. */
void am_notices_sort(struct am_notices *set);

/*
 * Lists the two directories: what stands there is known afterwards, and what
 * stands there no more is forgotten, unless it flies.
 */
void am_notices_scan(struct am_notices *set, const char *const dirs[2]);

/* Its name in the journal: "TREE-ID". Static buffer. */
const char *am_notice_key(const struct am_notice *n);

#endif
