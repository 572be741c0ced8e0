/*
 * answer - what commands answered, as amap-ask(1) recorded it.
 */
#ifndef AM_ANSWER_H
#define AM_ANSWER_H

#include "json.h"

/*
 * Owns. Reads whole streams of answers, the n files (none: standard input;
 * "-" is it, too), into one object that the functions below look into;
 * invalid, with a message for am_json_why, when one is cut or broken.
 */
jv am_answers_read(char *const paths[], int n);

/* Owns. The same, of one open stream, added to the answers that it consumes. */
jv am_answers_from(jv answers, FILE *fp, const char *name);

/* One answer. out and err live as long as the answers; NULL when there is none. */
struct am_asked {
	int status;		/* of the command; -1 when it did not run to its end */
	const char *out, *err;
	char why[600];		/* when it is no answer to rely on: one line, fit for print */
};

/*
 * Borrows. 1 when the command ran and ended with status 0 and its output is
 * text; else 0, and why says what happened. subject NULL: asked once for all.
 * What was asked of a sandbox does not count when an answer "get" is there and
 * shows no sandbox.
 */
int am_asked(jv answers, const char *ask, const char *subject, struct am_asked *a);

enum am_presence { AM_ABSENT, AM_PRESENT, AM_UNSURE };

/*
 * Borrows. Is there such a sandbox: the answers "get" (of this name) and
 * "list" decide. A failed get proves nothing; absent is only what a list that
 * succeeded does not name. PRESENT: *document is the object, owned. UNSURE:
 * why says why. With may_be_cut a list of exactly 100 names, the slice that some
 * versions show (spec openshell, section 6), proves nothing.
 */
enum am_presence am_sandbox(jv answers, const char *workspace, const char *name, int may_be_cut,
    jv *document, char why[600]);

/*
 * Owns. The names listed in this workspace, sorted; invalid, with a message,
 * when that cannot be told.
 */
jv am_listed(jv answers, const char *workspace, int may_be_cut);

#endif
