/*
 * record - the two growing files of a unit, each kept to about its last MiB.
 *
 * NAME takes what is added; at AMS_RING_MAX bytes it becomes NAME.old and a new
 * one begins. An agent that writes without end fills no disk.
 */
#ifndef AM_SANDBOX_RECORD_H
#define AM_SANDBOX_RECORD_H

#include <stddef.h>

#define AMS_RING_MAX (1u << 20)

struct ams_ring {
	int unit, fd;
	const char *name;
	size_t size, waiting;
	char buf[16384];		/* a line at a time would be a write at a time */
};

void ams_ring_open(struct ams_ring *r, int unit, const char *name);
void ams_ring_add(struct ams_ring *r, const void *bytes, size_t len);
void ams_ring_flush(struct ams_ring *r);

/* From malloc: the last max bytes of both files; NULL when there are none. */
char *ams_ring_last(int unit, const char *name, size_t max, size_t *len);

/*
 * One line of the log, as OpenShell prints it (spec openshell, section 6):
 * source gateway or sandbox, level, target, text. What is not printable (utf8.h),
 * and what is no UTF-8, becomes "?".
 */
void ams_log(struct ams_ring *log, const char *source, const char *level, const char *target, const char *text, size_t len);

#endif
