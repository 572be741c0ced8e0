/*
 * target - may what the session source says be delivered to (spec connector,
 * sections 6.5 and 6.6).
 */
#ifndef AM_TARGET_H
#define AM_TARGET_H

#include "connector/source.h"

/* Reads the own ancestors, once: a message from its own descendant would count as a session's own word. */
void am_target_open(void);

/*
 * 1 when the one session can be spoken to. Else 0, with the outcome that those
 * who wait for it are told, or NULL where it only has to be asked again.
 */
int am_target_fit(const struct am_rows *rows, long long now, const char **outcome, char detail[128]);

#endif
