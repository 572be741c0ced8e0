/*
 * outbox - publishing a request for the router (spec connector, sections 5.4 to 5.6).
 *
 * Numbers are never used twice, by two writers or after the router has cleared
 * its archives: they are handed out under a lock, and the last one is kept in
 * <outbox>/ext/claude-code/last-request, which nobody clears.
 */
#ifndef AM_OUTBOX_H
#define AM_OUTBOX_H

#include <jv.h>
#include <stddef.h>

#define AM_ATTACHMENTS_MAX 16

struct am_attachment {
	const char *path;
	char *filename, *media_type;
	int fd;				/* of the source, open and at its start */
};

/*
 * Copies the attachments and publishes the request; draft, consumed, lacks
 * only their descriptors. The number goes to id. On failure -1 with the reason
 * as a clause in why, and nothing is published.
 */
int am_outbox_publish(const char *outbox, jv draft, const char *agent_id, const struct am_attachment *files,
    size_t count, size_t max_bytes, char id[24], char why[256]);

#endif
