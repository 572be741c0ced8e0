/*
 * delegation - which notices are delivered, and the text of the turn they
 * become (spec connector, sections 6.7 to 6.9; spec protocol, section 12).
 */
#ifndef AM_DELEGATION_H
#define AM_DELEGATION_H

#include <jv.h>

enum am_admission {
	AM_ADMITTED,
	AM_REFUSED,	/* for good; why says the reason */
	AM_NOT_YET,	/* its message may still come */
	AM_CANNOT_TELL	/* this host is short of something just now: to be looked at again */
};

/*
 * Judges the notice of this id in the directory (descriptors); on the peer lane
 * its message as well. When admitted and text is not NULL, *text is the whole
 * envelope, owned. self may be NULL.
 */
enum am_admission am_peer_admit(int notices, int messages, const char *id, const char *self, jv *text, char why[500]);
enum am_admission am_mail_admit(int notices, const char *id, const char *self, jv *text, char why[500]);

#endif
