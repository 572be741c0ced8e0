/*
 * attach - the files an agent attaches to a request (spec connector, section 5.5).
 */
#ifndef AM_ATTACH_H
#define AM_ATTACH_H

#include <jv.h>
#include <stddef.h>

#include "connector/outbox.h"

/* $INBOX_ATTACH_MAX_BYTES, or 25 MiB. */
size_t am_attachment_limit(void);

/*
 * Borrows the list: null, or path strings and objects. Opens each source;
 * -1 with the reason in why ("attachments[2]: ..."). What was opened is closed
 * by am_attachments_close in either case.
 */
int am_attachments_open(jv list, size_t max, struct am_attachment files[AM_ATTACHMENTS_MAX], size_t *count,
    char why[256]);
void am_attachments_close(struct am_attachment *files, size_t count);

#endif
