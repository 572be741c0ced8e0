#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "json.h"
#include "utf8.h"

/*
 * Our own writer: libjq's puts every text together piece by piece in a value,
 * which is most of the time of a program that prints many records, and writes
 * whole numbers above 1e17 with an exponent.
 */

struct text {
	struct am_buf out;
	enum am_json_style style;
};

static void
put_line(struct text *t, int depth)
{
	if (t->style != AM_DOCUMENT)
		return;
	am_buf_byte(&t->out, '\n');
	memset(am_buf_room(&t->out, 2 * (size_t)depth), ' ', 2 * (size_t)depth);
	t->out.n += 2 * (size_t)depth;
}

static void
put_escape(struct am_buf *b, uint32_t c)
{
	static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *hit = c != 0 && c < 0x80 ? strchr(named, (int)c) : NULL;
	char buf[16];

	if (hit != NULL) {
		am_buf_byte(b, '\\');
		am_buf_byte(b, letters[hit - named]);
		return;
	}
	if (c < 0x10000)
		snprintf(buf, sizeof buf, "\\u%04x", c);
	else
		snprintf(buf, sizeof buf, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
		    0xdc00 + ((c - 0x10000) & 0x3ff));
	am_buf_add(b, buf, strlen(buf));
}

void
am_json_string(struct am_buf *b, const char *s, size_t len, enum am_json_style style)
{
	const char *end = s + len, *from;
	uint32_t c;
	int n;

	am_buf_byte(b, '"');
	while (s < end) {
		for (from = s; s < end && (unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7f && *s != '"' &&
		    *s != '\\'; )
			s++;
		am_buf_add(b, from, (size_t)(s - from));
		if (s == end)
			break;
		if ((n = am_utf8_next(s, (size_t)(end - s), &c)) < 0) {
			c = 0xfffd;
			n = 1;
		}
		if (c == 0x7f && style == AM_DOCUMENT)
			am_buf_byte(b, 0x7f);		/* spec deployment: what is not ASCII is escaped, and this is */
		else if (c < 0x80 || style != AM_COMPACT)
			put_escape(b, c);
		else if (c == 0xfffd)
			am_buf_add(b, "\xef\xbf\xbd", 3);
		else
			am_buf_add(b, s, (size_t)n);
		s += n;
	}
	am_buf_byte(b, '"');
}

/* Borrows. */
static void
put_string(struct text *t, jv v)
{
	am_json_string(&t->out, jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)), t->style);
}

/* The shortest spelling that reads back as the same number. */
static void
put_number(struct text *t, double d)
{
	char buf[40];

	if (fabs(d) <= 9007199254740992.0 && d == floor(d))
		snprintf(buf, sizeof buf, "%.0f", d);
	else
		for (int digits = 15; digits <= 17; digits++) {
			snprintf(buf, sizeof buf, "%.*g", digits, d);
			if (strtod(buf, NULL) == d)
				break;
		}
	am_buf_add(&t->out, buf, strlen(buf));
}

static void put_value(struct text *t, jv v, int depth);

/* Consumes key and value. */
static void
put_member(struct text *t, jv key, jv v, int first, int depth)
{
	if (!first)
		am_buf_byte(&t->out, ',');
	put_line(t, depth);
	put_string(t, key);
	am_buf_add(&t->out, ": ", t->style == AM_DOCUMENT ? 2 : 1);
	put_value(t, v, depth);
	jv_free(key);
	jv_free(v);
}

struct member {
	jv key, value;
	const char *s;
	size_t len;
};

static int
by_bytes(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int d = memcmp(x->s, y->s, x->len < y->len ? x->len : y->len);

	return d != 0 ? d : (x->len > y->len) - (x->len < y->len);
}

/* jv_keys would make an array, and each key of it be looked up again. */
static void
put_sorted(struct text *t, jv o, int depth)
{
	size_t n = 0, room = (size_t)jv_object_length(jv_copy(o));
	struct member few[32], *v = room <= 32 ? few : calloc(room, sizeof *v);

	if (v == NULL)
		abort();
	for (int i = jv_object_iter(o); jv_object_iter_valid(o, i); i = jv_object_iter_next(o, i), n++) {
		v[n].key = jv_object_iter_key(o, i);
		v[n].value = jv_object_iter_value(o, i);
		v[n].s = jv_string_value(v[n].key);
		v[n].len = (size_t)jv_string_length_bytes(jv_copy(v[n].key));
	}
	qsort(v, n, sizeof *v, by_bytes);
	for (size_t i = 0; i < n; i++)
		put_member(t, v[i].key, v[i].value, i == 0, depth + 1);
	if (v != few)
		free(v);
}

static void
put_object(struct text *t, jv o, int depth)
{
	int begin = jv_object_iter(o), empty = !jv_object_iter_valid(o, begin);

	am_buf_byte(&t->out, '{');
	if (t->style == AM_SORTED)
		put_sorted(t, o, depth);
	else
		for (int i = begin; jv_object_iter_valid(o, i); i = jv_object_iter_next(o, i))
			put_member(t, jv_object_iter_key(o, i), jv_object_iter_value(o, i), i == begin, depth + 1);
	if (!empty)
		put_line(t, depth);
	am_buf_byte(&t->out, '}');
}

static void
put_array(struct text *t, jv a, int depth)
{
	int n = jv_array_length(jv_copy(a));

	am_buf_byte(&t->out, '[');
	for (int i = 0; i < n; i++) {
		jv v = jv_array_get(jv_copy(a), i);

		if (i > 0)
			am_buf_byte(&t->out, ',');
		put_line(t, depth + 1);
		put_value(t, v, depth + 1);
		jv_free(v);
	}
	if (n > 0)
		put_line(t, depth);
	am_buf_byte(&t->out, ']');
}

/* Borrows. */
static void
put_value(struct text *t, jv v, int depth)
{
	switch (jv_get_kind(v)) {
	case JV_KIND_OBJECT:
		put_object(t, v, depth);
		break;
	case JV_KIND_ARRAY:
		put_array(t, v, depth);
		break;
	case JV_KIND_STRING:
		put_string(t, v);
		break;
	case JV_KIND_NUMBER:
		put_number(t, jv_number_value(v));
		break;
	case JV_KIND_TRUE:
		am_buf_add(&t->out, "true", 4);
		break;
	case JV_KIND_FALSE:
		am_buf_add(&t->out, "false", 5);
		break;
	case JV_KIND_NULL:
		am_buf_add(&t->out, "null", 4);
		break;
	default:
		abort();		/* an invalid value is nothing that can be written */
	}
}

char *
am_json_text(jv v, enum am_json_style style, size_t *len)
{
	struct text t = { .style = style };

	put_value(&t, v, 0);
	if (style == AM_DOCUMENT)
		am_buf_byte(&t.out, '\n');
	if (len != NULL)
		*len = t.out.n;
	return am_buf_end(&t.out);
}
