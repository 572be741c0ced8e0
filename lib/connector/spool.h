/*
 * spool - the published messages of one lane (spec connector, sections 4.2, 4.3 and 4.6).
 */
#ifndef AM_SPOOL_H
#define AM_SPOOL_H

#include <jv.h>
#include <stddef.h>

#define AM_ATTACHMENT_TEXT_MAX 65536	/* bytes of an attachment that may be shown */

/* Borrows. 1 for a string that may name a document: 1 to 200 characters of an ID, without "..". */
int am_spool_id(jv v);

struct am_descriptor {
	char *filename, *media_type, *disposition;	/* cleaned */
	double size;
	char sha256[65];
	int readable;		/* vouched for, and its bytes are published */
};

struct am_spooled {
	char nid[201];		/* the key of its attachments */
	char *id, *date, *from, *to, *cc, *subject, *body;	/* cleaned; empty when absent */
	struct am_descriptor *files;
	size_t count;
};

/*
 * Loads the message of this file in the directory; -1 with the reason in why.
 * Freed by am_spool_free, after a failure as well.
 */
int am_spool_load(int dir, const char *name, struct am_spooled *m, char why[300]);
void am_spool_free(struct am_spooled *m);

/* The file that an id names: 0 and the name, or -1 when there is none. */
int am_spool_find(int dir, const char *id, char name[224]);

/*
 * Checks the published bytes of an attachment: size and digest. parent is the
 * directory above the messages. On success 0, and *text, from malloc, holds
 * what is small enough to show (else NULL); -1 with the reason in why.
 */
int am_spool_attachment(int parent, const struct am_spooled *m, size_t index, char **text, char why[300]);

#endif
