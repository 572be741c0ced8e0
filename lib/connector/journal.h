/*
 * journal - which notices were delivered, and which are being delivered.
 *
 * <state>/ledger/TREE-ID, empty: never deliver it again. <state>/attempts/TREE-ID:
 * an injection that has begun; it is made before the first byte is sent and
 * taken away when its end is known, so that one which is found at the start
 * tells of a crash in between, and is not repeated (spec protocol, C12).
 */
#ifndef AM_JOURNAL_H
#define AM_JOURNAL_H

#include <jv.h>

struct am_journal {
	int ledger, attempts;	/* directories */
};

/* Makes and opens both below the state directory; -1 with errno. */
int am_journal_open(struct am_journal *j, const char *state);

/* key is "TREE-ID". 1 when it stands in the ledger. */
int am_journal_done(const struct am_journal *j, const char *key);

/* Records, durably, that an attempt begins; or what has become of one that has. Both consume. */
int am_journal_begin(const struct am_journal *j, const char *key, jv record);
int am_journal_note(const struct am_journal *j, const char *key, jv record);

/* The attempt is over: delivered or given up for good (final), or to be made again. */
int am_journal_end(const struct am_journal *j, const char *key, int final);

/* Calls found, which borrows the record, for each attempt that was left behind. */
void am_journal_recover(const struct am_journal *j, void (*found)(const char *key, jv record));

#endif
