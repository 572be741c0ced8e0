/*
 * claim - one consumer for each notice directory (spec connector, section 6.2).
 */
#ifndef AM_CLAIM_H
#define AM_CLAIM_H

/*
 * Takes the claim at this path: 0 taken, 1 held by another consumer, -1 it
 * cannot be written. why is a clause for the last two, and for 0 it says whose
 * stale claim was taken over, or is empty.
 */
int am_claim_take(const char *path, const char *consumer, const char *notice_dir, char why[1024]);
void am_claim_release(const char *path);

#endif
