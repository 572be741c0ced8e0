/*
 * outcome - tell the router what became of a delegation (spec connector, section 6.12).
 */
#ifndef AM_OUTCOME_H
#define AM_OUTCOME_H

/* Writes <dir>/peer-ID.json, durably; makes the directory. detail may be empty. -1 with errno. */
int am_outcome_write(const char *dir, const char *id, const char *outcome, const char *detail);

#endif
