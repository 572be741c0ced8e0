/*
 * yamlread - strict reading of one YAML document into a tree.
 *
 * For documents that decide authority (the sandbox policy, also as OpenShell
 * writes it back): a key that stands twice, an alias, an anchor, a tag, a
 * second document, nesting beyond AM_YAML_DEPTH and a NUL are refused. Scalars
 * stay text; `plain` tells the unquoted ones, because no and "no" differ.
 */
#ifndef AM_YAMLREAD_H
#define AM_YAMLREAD_H

#include <stddef.h>

#define AM_YAML_MAX (1u << 20)		/* bytes of one document */
#define AM_YAML_DEPTH 64
#define AM_YAML_KEYS 4096		/* of one map */

enum am_yaml_kind { AM_YAML_SCALAR, AM_YAML_LIST, AM_YAML_MAP };

struct am_yaml {
	enum am_yaml_kind kind;
	char *key;		/* of a member of a map, else NULL */
	char *text;		/* of a scalar, else NULL */
	int plain;
	long line;
	struct am_yaml *first, *next;
};

/* Owns. NULL on refusal; why then is one line that names the line. */
struct am_yaml *am_yaml_parse(const char *text, size_t len, char why[256]);
void am_yaml_free(struct am_yaml *node);

/* Borrows. The member of a map, NULL when absent or when it is no map. */
const struct am_yaml *am_yaml_get(const struct am_yaml *map, const char *key);

#endif
