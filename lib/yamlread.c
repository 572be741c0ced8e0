#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "yamlread.h"

struct reader {
	yaml_parser_t parser;
	yaml_event_t event;
	char *why;
};

static struct am_yaml *node(struct reader *r, int depth);

static void *
refuse(struct reader *r, long line, const char *reason, const char *object)
{
	if (r->why[0] == '\0')
		snprintf(r->why, 256, "line %ld: %s%s%.100s", line, reason, object ? ": " : "", object ? object : "");
	return NULL;
}

static long
line_of(const struct reader *r)
{
	return (long)r->event.start_mark.line + 1;
}

/* The next event, which the reader then holds; -1 when the bytes are no YAML. */
static int
advance(struct reader *r)
{
	yaml_event_delete(&r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return 0;
	memset(&r->event, 0, sizeof r->event);
	refuse(r, (long)r->parser.problem_mark.line + 1, r->parser.problem ? r->parser.problem : "not YAML", NULL);
	return -1;
}

static char *
scalar_text(struct reader *r)
{
	const char *s = (const char *)r->event.data.scalar.value;
	size_t len = r->event.data.scalar.length;

	if (r->event.data.scalar.anchor != NULL || r->event.data.scalar.tag != NULL)
		return refuse(r, line_of(r), "an anchor or a tag", NULL);
	if (strlen(s) != len)
		return refuse(r, line_of(r), "a NUL character", NULL);
	return strdup(s);
}

/* Members of the map or list that the reader has just entered. */
static struct am_yaml *
members(struct reader *r, struct am_yaml *parent, yaml_event_type_t end, int depth)
{
	struct am_yaml **tail = &parent->first;
	int count = 0;

	for (;;) {
		char *key = NULL;
		struct am_yaml *child;

		if (advance(r) != 0)
			return NULL;
		if (r->event.type == end)
			return parent;
		if (parent->kind == AM_YAML_MAP) {
			if (++count > AM_YAML_KEYS)
				return refuse(r, line_of(r), "a map with too many keys", NULL);
			if (r->event.type != YAML_SCALAR_EVENT)
				return refuse(r, line_of(r), "a key that is no plain text", NULL);
			if ((key = scalar_text(r)) == NULL)
				return NULL;
			if (am_yaml_get(parent, key) != NULL) {
				refuse(r, line_of(r), "a key that stands twice", key);
				free(key);
				return NULL;
			}
			if (advance(r) != 0) {
				free(key);
				return NULL;
			}
		}
		if ((child = node(r, depth)) == NULL) {
			free(key);
			return NULL;
		}
		child->key = key;
		*tail = child;
		tail = &child->next;
	}
}

/* The node that begins with the event the reader holds. */
static struct am_yaml *
node(struct reader *r, int depth)
{
	struct am_yaml *n, *done;
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (depth == AM_YAML_DEPTH)
		return refuse(r, line_of(r), "nested too deep", NULL);
	if (r->event.type == YAML_ALIAS_EVENT)
		return refuse(r, line_of(r), "an alias", NULL);
	if (r->event.type == YAML_MAPPING_START_EVENT) {
		anchor = r->event.data.mapping_start.anchor;
		tag = r->event.data.mapping_start.tag;
	} else if (r->event.type == YAML_SEQUENCE_START_EVENT) {
		anchor = r->event.data.sequence_start.anchor;
		tag = r->event.data.sequence_start.tag;
	}
	if (anchor != NULL || tag != NULL)
		return refuse(r, line_of(r), "an anchor or a tag", NULL);
	if ((n = calloc(1, sizeof *n)) == NULL)
		abort();
	n->line = line_of(r);
	switch (r->event.type) {
	case YAML_SCALAR_EVENT:
		n->kind = AM_YAML_SCALAR;
		n->plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
		done = (n->text = scalar_text(r)) != NULL ? n : NULL;
		break;
	case YAML_MAPPING_START_EVENT:
		n->kind = AM_YAML_MAP;
		done = members(r, n, YAML_MAPPING_END_EVENT, depth + 1);
		break;
	case YAML_SEQUENCE_START_EVENT:
		n->kind = AM_YAML_LIST;
		done = members(r, n, YAML_SEQUENCE_END_EVENT, depth + 1);
		break;
	default:
		done = refuse(r, n->line, "no value", NULL);
	}
	if (done == NULL)
		am_yaml_free(n);
	return done;
}

static struct am_yaml *
document(struct reader *r)
{
	struct am_yaml *root;

	if (advance(r) != 0 || advance(r) != 0)		/* the stream, then its first document */
		return NULL;
	if (r->event.type != YAML_DOCUMENT_START_EVENT)
		return refuse(r, 1, "empty", NULL);
	if (advance(r) != 0 || (root = node(r, 0)) == NULL)
		return NULL;
	if (advance(r) != 0 || advance(r) != 0 || r->event.type != YAML_STREAM_END_EVENT) {
		refuse(r, line_of(r), "a second document", NULL);
		am_yaml_free(root);
		return NULL;
	}
	return root;
}

struct am_yaml *
am_yaml_parse(const char *text, size_t len, char why[256])
{
	struct reader r = { .why = why };
	struct am_yaml *root;

	why[0] = '\0';
	if (len > AM_YAML_MAX) {
		snprintf(why, 256, "larger than %u bytes", AM_YAML_MAX);
		return NULL;
	}
	if (!yaml_parser_initialize(&r.parser))
		abort();
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	root = document(&r);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	return root;
}

void
am_yaml_free(struct am_yaml *n)
{
	struct am_yaml *next;

	for (; n != NULL; n = next) {
		next = n->next;
		am_yaml_free(n->first);
		free(n->key);
		free(n->text);
		free(n);
	}
}

const struct am_yaml *
am_yaml_get(const struct am_yaml *map, const char *key)
{
	const struct am_yaml *n = map != NULL && map->kind == AM_YAML_MAP ? map->first : NULL;

	for (; n != NULL; n = n->next)
		if (strcmp(n->key, key) == 0)
			return n;
	return NULL;
}
