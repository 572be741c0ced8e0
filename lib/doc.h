/*
 * doc - AMAP documents: the named predicates and the rules of each class.
 *
 * The one place that decides whether a document is sound; router, connector
 * and validator call it (spec protocol, sections 3, 4, 9 and 13).
 */
#ifndef AM_DOC_H
#define AM_DOC_H

#include <jv.h>
#include <stddef.h>

/* Over all bytes of a decoded string, a NUL among them: nothing is cut. */
int am_is_id(const char *s, size_t len);
int am_is_addr(const char *s, size_t len);
int am_is_noctl(const char *s, size_t len);
int am_is_sha256(const char *s, size_t len);
int am_is_cref(const char *s, size_t len);

/*
 * The classes, in a fixed order, ended by a NULL name. The prefix is the one
 * that selects the class of a fixture ("request-minimal.json").
 */
struct am_doc_class {
	const char *name, *prefix, *about;
};
extern const struct am_doc_class am_doc_classes[];

/* The class of this name or prefix ("submit-request", "request"); NULL when there is none. */
const char *am_doc_class(const char *name);

/* The class that a file's name selects by its prefix; directories before it do not count. */
const char *am_doc_class_of(const char *path);

/*
 * Borrows. 1 when the document is refused for its version, which is decided
 * before the rest is looked at: contract_version is absent (where the class
 * requires it), no decimal number in a string, or another major than 2.
 */
int am_doc_version_refused(const char *doc_class, jv doc);

/*
 * Borrows; owns an array of strings "$.path: problem", empty when the document
 * is sound. The version is among the rules. Values are never repeated; names
 * that the document chose are quoted, so a line is fit to print.
 */
jv am_doc_problems(const char *doc_class, jv doc);

/* Borrows. The whole numbers that a size may have: 0 to 10^15 - 1. */
int am_is_size(jv v);

#endif
