/*
 * docrules - what the documents of each class hold, as tables, for doc.c alone
 * (spec protocol, sections 4 to 13).
 */
#ifndef AM_DOCRULES_H
#define AM_DOCRULES_H

#include "json.h"

enum {
	STRING = 1, OBJECT = 2, ARRAY = 4, BOOLEAN = 8, SIZE = 16, NUMBER = 32, OR_NULL = 64,
	NOT_EMPTY = 128,	/* a string of at least one character, an array of at least one item */
	CLOSED = 256		/* an object that may hold no other members */
};

typedef int am_test(const char *, size_t);

struct am_rule {
	unsigned is;
	am_test *test;			/* of a string */
	const char *const *words;	/* a string must be one of these; NULL ends them */
	const struct am_rule_member *members;	/* of an object */
	const struct am_rule *items;	/* of an array */
	/* What ties members of one object together; adds its problems to the list. */
	jv (*also)(jv problems, const char *path, jv object);
};

struct am_rule_member {
	const char *name;
	int required;
	struct am_rule rule;
};

/* One for each class, in the order of am_doc_classes. */
extern const struct am_rule am_doc_rules[];

/* Consumes the list: the same with "path: text" added. */
jv am_doc_problem(jv problems, const char *path, const char *text);

#endif
