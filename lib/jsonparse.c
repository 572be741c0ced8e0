#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "json.h"
#include "utf8.h"

#define SPREAD 4096		/* slots that keys of a large object are counted in, by their hash */
#define SPREAD_FROM 256		/* keys from which on they are */

struct scan {
	const char *p, *end;
	int depth;
	const char *why;	/* the refusal; NULL as long as there is none */
	char detail[80];	/* what it is about, fit for a message */
	char *buf;		/* a string with its escapes resolved */
	size_t cap;
};

static jv value(struct scan *s);

static jv
refuse(struct scan *s, const char *why)
{
	if (s->why == NULL)
		s->why = why;
	return jv_invalid();
}

/* The next byte; -1 at the end. */
static int
peek(const struct scan *s)
{
	return s->p < s->end ? (unsigned char)*s->p : -1;
}

static void
skip_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

/* Four hexadecimal digits; -1 when they are not there. */
static long
hex4(struct scan *s)
{
	long v = 0;

	for (int i = 0; i < 4; i++, s->p++) {
		int c = peek(s);

		if (c >= '0' && c <= '9')
			v = v << 4 | (c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			v = v << 4 | ((c | 0x20) - 'a' + 10);
		else {
			refuse(s, "a \\u escape without four hexadecimal digits");
			return -1;
		}
	}
	return v;
}

static size_t
put_utf8(char *out, long c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* After a backslash: the character, to out; its length, 0 when it is refused. */
static size_t
escape(struct scan *s, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int c = peek(s);
	const char *hit = c > 0 ? strchr(from, c) : NULL;
	long hi, lo;

	if (hit != NULL) {
		s->p++;
		*out = to[hit - from];
		return 1;
	}
	if (c != 'u') {
		refuse(s, "an unknown escape in a string");
		return 0;
	}
	s->p++;
	if ((hi = hex4(s)) < 0)
		return 0;
	if (hi >= 0xd800 && hi <= 0xdbff && s->end - s->p >= 2 && s->p[0] == '\\' && s->p[1] == 'u') {
		s->p += 2;
		if ((lo = hex4(s)) < 0)
			return 0;
		if (lo >= 0xdc00 && lo <= 0xdfff)
			return put_utf8(out, 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00));
	}
	if (hi >= 0xd800 && hi <= 0xdfff) {
		refuse(s, "a lone surrogate in a string");
		return 0;
	}
	return put_utf8(out, hi);
}

/* From the byte after the last one that was checked to the end: everything up to the quote. */
static jv
escaped_string(struct scan *s, const char *from)
{
	size_t n = (size_t)(s->p - from), room = (size_t)(s->end - from) + 1, add;

	/* No escape is shorter than what it stands for. */
	if (s->cap < room && (s->buf = realloc(s->buf, s->cap = room)) == NULL)
		abort();
	memcpy(s->buf, from, n);
	while (s->p < s->end) {
		unsigned char c = (unsigned char)*s->p;
		uint32_t code;
		int len;

		if (c == '"') {
			s->p++;
			return jv_string_sized(s->buf, (int)n);
		}
		if (c < 0x20)
			return refuse(s, c == 0 ? "a NUL byte" : "a control character in a string");
		if (c == '\\') {
			s->p++;
			if ((add = escape(s, s->buf + n)) == 0)
				return jv_invalid();
			n += add;
			continue;
		}
		if ((len = am_utf8_next(s->p, (size_t)(s->end - s->p), &code)) < 0)
			return refuse(s, "not UTF-8");
		memcpy(s->buf + n, s->p, (size_t)len);
		n += (size_t)len;
		s->p += len;
	}
	return refuse(s, "a string without its end");
}

static jv
string(struct scan *s)
{
	const char *from = ++s->p;

	while (s->p < s->end && (unsigned char)*s->p >= 0x20 && (unsigned char)*s->p < 0x80 && *s->p != '\\') {
		if (*s->p == '"')
			return jv_string_sized(from, (int)(s->p++ - from));
		s->p++;
	}
	return escaped_string(s, from);
}

static int
digits(struct scan *s)
{
	const char *from = s->p;

	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > from;
}

static jv
number(struct scan *s)
{
	const char *from = s->p;
	int good;
	double d;

	if (peek(s) == '-')
		s->p++;
	if (peek(s) == '0') {
		s->p++;
		good = 1;
	} else {
		good = digits(s);
	}
	if (good && peek(s) == '.') {
		s->p++;
		good = digits(s);
	}
	if (good && (peek(s) == 'e' || peek(s) == 'E')) {
		s->p++;
		if (peek(s) == '+' || peek(s) == '-')
			s->p++;
		good = digits(s);
	}
	if (!good || (peek(s) >= '0' && peek(s) <= '9'))
		return refuse(s, "a number that JSON does not know");
	d = strtod(from, NULL);		/* ends where we ended: the text goes on with another character */
	return isfinite(d) ? jv_number(d) : refuse(s, "a number out of range");
}

static jv
word(struct scan *s, const char *w, jv v)
{
	size_t n = strlen(w);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, w, n) != 0)
		return refuse(s, "a word that JSON does not know");
	s->p += n;
	return v;
}

/*
 * libjq hashes keys with a fixed seed, so keys can be made that all stand in
 * one chain, and every further one costs a walk along it. Keys of a large
 * object are counted by the low bits of their hash, which those of one chain
 * share; an honest object never comes near the limit. 0 when it is reached.
 */
static int
spread(uint16_t **slots, jv object_, int count, jv key)
{
	if (count < SPREAD_FROM)
		return 1;
	if (*slots == NULL) {
		if ((*slots = calloc(SPREAD, sizeof **slots)) == NULL)
			abort();
		for (int i = jv_object_iter(object_); jv_object_iter_valid(object_, i); i = jv_object_iter_next(object_, i))
			(*slots)[jv_string_hash(jv_object_iter_key(object_, i)) % SPREAD]++;
	}
	return ++(*slots)[jv_string_hash(jv_copy(key)) % SPREAD] <= AM_JSON_CHAIN;
}

/* The first keys of an object as they are spelled, so that most need no look into libjq's table. */
struct keys {
	int count;
	int escaped;			/* one of them may be spelled in another way */
	struct {
		const char *p;
		size_t n;
	} spelled[8];
	uint16_t *slots;
};

/* Borrows key, spelled from there to s->p. 1 when the object has it. */
static int
is_double(struct scan *s, struct keys *k, jv object_, jv key, const char *from)
{
	size_t n = (size_t)(s->p - from);

	k->escaped |= memchr(from, '\\', n) != NULL;
	if (k->escaped || k->count >= (int)(sizeof k->spelled / sizeof k->spelled[0]))
		return jv_object_has(jv_copy(object_), jv_copy(key));
	for (int i = 0; i < k->count; i++)
		if (k->spelled[i].n == n && memcmp(k->spelled[i].p, from, n) == 0)
			return 1;
	k->spelled[k->count].p = from;
	k->spelled[k->count].n = n;
	return 0;
}

/* One "key": value, added to the object. 0 when it is refused. */
static int
member(struct scan *s, jv *object_, struct keys *k)
{
	const char *from = s->p;
	jv key, v;

	if (peek(s) != '"') {
		refuse(s, "an object whose key is no string");
		return 0;
	}
	key = string(s);
	if (!jv_is_valid(key))
		return 0;
	if (is_double(s, k, *object_, key, from)) {
		snprintf(s->detail, sizeof s->detail, ": %.70s", am_quote(from, (size_t)(s->p - from)));
		refuse(s, "a key that stands twice in one object");
	} else if (k->count == AM_JSON_KEYS || !spread(&k->slots, *object_, k->count, key)) {
		refuse(s, k->count == AM_JSON_KEYS ? "an object with too many keys" : "an object whose keys collide");
	}
	skip_space(s);
	if (s->why == NULL && peek(s) != ':')
		refuse(s, "a key without its colon");
	if (s->why != NULL) {
		jv_free(key);
		return 0;
	}
	s->p++;
	v = value(s);
	if (jv_is_valid(v))
		*object_ = jv_object_set(*object_, key, v);
	else
		jv_free(key);
	k->count++;
	return s->why == NULL;
}

static jv
object(struct scan *s)
{
	struct keys k = { 0 };
	jv o = jv_object();

	s->p++;
	skip_space(s);
	if (peek(s) == '}') {
		s->p++;
		return o;
	}
	while (member(s, &o, &k)) {
		skip_space(s);
		if (peek(s) == '}') {
			s->p++;
			free(k.slots);
			return o;
		}
		if (peek(s) != ',') {
			refuse(s, "an object without its end");
			break;
		}
		s->p++;
		skip_space(s);
	}
	free(k.slots);
	jv_free(o);
	return jv_invalid();
}

static jv
array(struct scan *s)
{
	jv a = jv_array(), v;

	s->p++;
	skip_space(s);
	if (peek(s) == ']') {
		s->p++;
		return a;
	}
	while (v = value(s), jv_is_valid(v)) {
		a = jv_array_append(a, v);
		skip_space(s);
		if (peek(s) == ']') {
			s->p++;
			return a;
		}
		if (peek(s) != ',') {
			refuse(s, "an array without its end");
			break;
		}
		s->p++;
	}
	jv_free(a);
	return jv_invalid();
}

static jv
value(struct scan *s)
{
	jv v;
	int c;

	skip_space(s);
	switch (c = peek(s)) {
	case '{':
	case '[':
		if (s->depth == AM_JSON_DEPTH)
			return refuse(s, "nested too deep");
		s->depth++;
		v = c == '{' ? object(s) : array(s);
		s->depth--;
		return v;
	case '"':
		return string(s);
	case 't':
		return word(s, "true", jv_true());
	case 'f':
		return word(s, "false", jv_false());
	case 'n':
		return word(s, "null", jv_null());
	case '-': case '0': case '1': case '2': case '3': case '4':
	case '5': case '6': case '7': case '8': case '9':
		return number(s);
	case -1:
		return refuse(s, "the text ends where a value should stand");
	default:
		return refuse(s, c == 0 ? "a NUL byte" : "not JSON");
	}
}

jv
am_json_parse(const char *text, size_t len)
{
	struct scan s = { .p = text, .end = text + len };
	long line = 1;
	jv v;

	if (len > INT32_MAX)
		return jv_invalid_with_msg(jv_string("too large"));
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return jv_invalid_with_msg(jv_string("line 1: a byte order mark"));
	v = value(&s);
	skip_space(&s);
	if (s.why == NULL && s.p != s.end) {
		jv_free(v);
		refuse(&s, *s.p == '\0' ? "a NUL byte" : "more text after the value");
	}
	free(s.buf);
	if (s.why == NULL)
		return v;
	for (const char *p = text; p < s.p; p++)
		line += *p == '\n';
	return jv_invalid_with_msg(jv_string_fmt("line %ld: %s%s", line, s.why, s.detail));
}
