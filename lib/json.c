#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "json.h"
#include "utf8.h"

/* ---- strict check of the bytes ---- */

struct scan {
	const char *start, *p, *end;
	int depth;
	const char *why;
	char key[64];		/* the repeated key, for the message */
};

static int value(struct scan *s);

static int
refuse(struct scan *s, const char *why)
{
	if (s->why == NULL)
		s->why = why;
	return -1;
}

static void
skip_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

static int
utf8(struct scan *s)
{
	uint32_t c;
	int n = am_utf8_next(s->p, (size_t)(s->end - s->p), &c);

	if (n < 0)
		return refuse(s, "not UTF-8");
	s->p += n;
	return 0;
}

static int
hex4(struct scan *s, unsigned *out)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++, s->p++) {
		char c = s->p < s->end ? *s->p : 0;

		if (c >= '0' && c <= '9')
			v = v << 4 | (unsigned)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			v = v << 4 | (unsigned)((c | 0x20) - 'a' + 10);
		else
			return refuse(s, "a \\u escape without four hexadecimal digits");
	}
	*out = v;
	return 0;
}

static int
escape(struct scan *s)
{
	unsigned hi, lo;

	s->p++;
	if (s->p == s->end || strchr("\"\\/bfnrtu", *s->p) == NULL || *s->p == '\0')
		return refuse(s, "an unknown escape in a string");
	if (*s->p++ != 'u')
		return 0;
	if (hex4(s, &hi) != 0)
		return -1;
	if (hi >= 0xdc00 && hi <= 0xdfff)
		return refuse(s, "a lone surrogate in a string");
	if (hi >= 0xd800 && hi <= 0xdbff) {
		if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
			return refuse(s, "a lone surrogate in a string");
		s->p += 2;
		if (hex4(s, &lo) != 0)
			return -1;
		if (lo < 0xdc00 || lo > 0xdfff)
			return refuse(s, "a lone surrogate in a string");
	}
	return 0;
}

static int
string(struct scan *s)
{
	for (s->p++; s->p < s->end; ) {
		unsigned char c = (unsigned char)*s->p;

		if (c == '"') {
			s->p++;
			return 0;
		}
		if (c < 0x20)
			return refuse(s, c == 0 ? "a NUL byte" : "a control character in a string");
		if (c == '\\') {
			if (escape(s) != 0)
				return -1;
		} else if (c < 0x80) {
			s->p++;
		} else if (utf8(s) != 0) {
			return -1;
		}
	}
	return refuse(s, "a string without its end");
}

static int
digits(struct scan *s)
{
	const char *from = s->p;

	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > from ? 0 : refuse(s, "a number that JSON does not know");
}

static int
number(struct scan *s)
{
	if (*s->p == '-')
		s->p++;
	if (s->p < s->end && *s->p == '0')
		s->p++;
	else if (digits(s) != 0)
		return -1;
	if (s->p < s->end && *s->p == '.') {
		s->p++;
		if (digits(s) != 0)
			return -1;
	}
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
			s->p++;
		if (digits(s) != 0)
			return -1;
	}
	return 0;
}

static int
word(struct scan *s, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, w, n) != 0)
		return refuse(s, "a word that JSON does not know");
	s->p += n;
	return 0;
}

/* Keys of one object, decoded by libjq so that "a" and "\u0061" are the same key. */
static int
add_key(struct scan *s, jv *keys, int *count, const char *from)
{
	jv k = jv_parse_sized(from, (int)(s->p - from));
	int seen;

	if (jv_get_kind(k) != JV_KIND_STRING) {
		jv_free(k);
		return refuse(s, "a key that cannot be read");
	}
	seen = jv_object_has(jv_copy(*keys), jv_copy(k));
	if (seen) {
		snprintf(s->key, sizeof s->key, "%.*s", (int)(s->p - from), from);
		jv_free(k);
		return refuse(s, "a key that stands twice in one object");
	}
	*keys = jv_object_set(*keys, k, jv_true());
	if (++*count > AM_JSON_KEYS)
		return refuse(s, "an object with too many keys");
	return 0;
}

static int
members(struct scan *s, jv *keys)
{
	int count = 0;

	for (;;) {
		const char *from = s->p;

		if (s->p == s->end || *s->p != '"')
			return refuse(s, "an object whose key is no string");
		if (string(s) != 0 || add_key(s, keys, &count, from) != 0)
			return -1;
		skip_space(s);
		if (s->p == s->end || *s->p != ':')
			return refuse(s, "a key without its colon");
		s->p++;
		if (value(s) != 0)
			return -1;
		skip_space(s);
		if (s->p < s->end && *s->p == '}') {
			s->p++;
			return 0;
		}
		if (s->p == s->end || *s->p != ',')
			return refuse(s, "an object without its end");
		s->p++;
		skip_space(s);
	}
}

static int
object(struct scan *s)
{
	jv keys;
	int rc;

	s->p++;
	skip_space(s);
	if (s->p < s->end && *s->p == '}') {
		s->p++;
		return 0;
	}
	keys = jv_object();
	rc = members(s, &keys);
	jv_free(keys);
	return rc;
}

static int
array(struct scan *s)
{
	s->p++;
	skip_space(s);
	if (s->p < s->end && *s->p == ']') {
		s->p++;
		return 0;
	}
	for (;;) {
		if (value(s) != 0)
			return -1;
		skip_space(s);
		if (s->p < s->end && *s->p == ']') {
			s->p++;
			return 0;
		}
		if (s->p == s->end || *s->p != ',')
			return refuse(s, "an array without its end");
		s->p++;
	}
}

static int
value(struct scan *s)
{
	int rc;

	skip_space(s);
	if (s->p == s->end)
		return refuse(s, "the text ends where a value should stand");
	if (*s->p == '{' || *s->p == '[') {
		if (s->depth == AM_JSON_DEPTH)
			return refuse(s, "nested too deep");
		s->depth++;
		rc = *s->p == '{' ? object(s) : array(s);
		s->depth--;
		return rc;
	}
	switch (*s->p) {
	case '"':
		return string(s);
	case 't':
		return word(s, "true");
	case 'f':
		return word(s, "false");
	case 'n':
		return word(s, "null");
	case '\0':
		return refuse(s, "a NUL byte");
	case '-': case '0': case '1': case '2': case '3': case '4':
	case '5': case '6': case '7': case '8': case '9':
		return number(s);
	default:
		return refuse(s, "not JSON");
	}
}

jv
am_json_parse(const char *text, size_t len)
{
	struct scan s = { .start = text, .p = text, .end = text + len };
	long line = 1;
	jv v;

	if (len > INT32_MAX)
		return jv_invalid_with_msg(jv_string("too large"));
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return jv_invalid_with_msg(jv_string("line 1: a byte order mark"));
	if (value(&s) == 0) {
		skip_space(&s);
		if (s.p != s.end)
			refuse(&s, *s.p == '\0' ? "a NUL byte" : "more text after the value");
	}
	if (s.why != NULL) {
		for (const char *p = text; p < s.p; p++)
			line += *p == '\n';
		return jv_invalid_with_msg(jv_string_fmt("line %ld: %s%s%s", line, s.why,
		    s.key[0] ? ": " : "", s.key));
	}
	v = jv_parse_sized(text, (int)len);
	if (!jv_is_valid(v)) {
		/* libjq's own message repeats the whole input: never shown. */
		jv_free(v);
		return jv_invalid_with_msg(jv_string("libjq cannot read it"));
	}
	return v;
}

const char *
am_json_why(jv invalid)
{
	static char why[256];
	jv msg = jv_invalid_get_msg(invalid);

	snprintf(why, sizeof why, "%s", jv_get_kind(msg) == JV_KIND_STRING ? jv_string_value(msg) : "unknown");
	jv_free(msg);
	return why;
}

/* ---- reading ---- */

static jv
trouble(int errnum, const char *why)
{
	errno = errnum;
	return jv_invalid_with_msg(jv_string(why));
}

static jv
read_fd(int fd, size_t max)
{
	size_t len;
	char *text = am_read_fd(fd, max, &len);
	jv v;

	if (text == NULL && errno == EFBIG) {
		errno = 0;
		return jv_invalid_with_msg(jv_string_fmt("larger than %zu bytes", max));
	}
	if (text == NULL)
		return trouble(errno, strerror(errno));
	v = len == 0 ? jv_invalid_with_msg(jv_string("empty")) : am_json_parse(text, len);
	free(text);
	errno = 0;
	return v;
}

static jv
close_after(int fd, jv v)
{
	int saved = errno;

	close(fd);
	errno = saved;
	return v;
}

jv
am_json_read(const char *path, size_t max)
{
	int fd;

	if (path == NULL || strcmp(path, "-") == 0)
		return read_fd(STDIN_FILENO, max);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return trouble(errno, strerror(errno));
	return close_after(fd, read_fd(fd, max));
}

jv
am_json_read_regular(const char *path, int nofollow, size_t max)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0));
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return trouble(ELOOP, "a symbolic link where a file should stand");
	if (fd < 0)
		return trouble(errno, strerror(errno));
	if (fstat(fd, &st) != 0)
		return close_after(fd, trouble(errno, strerror(errno)));
	if (!S_ISREG(st.st_mode))
		return close_after(fd, trouble(EINVAL, "not a regular file"));
	return close_after(fd, read_fd(fd, max));
}

jv
am_get(jv object_, const char *key, jv_kind kind)
{
	jv v;

	if (jv_get_kind(object_) != JV_KIND_OBJECT)
		return jv_invalid();
	v = jv_object_get(jv_copy(object_), jv_string(key));
	if (jv_get_kind(v) == kind)
		return v;
	jv_free(v);
	return jv_invalid();
}

const char *
am_str(jv object_, const char *key)
{
	jv v = am_get(object_, key, JV_KIND_STRING);
	const char *s = NULL;

	if (jv_is_valid(v)) {
		s = jv_string_value(v);
		if (strlen(s) != (size_t)jv_string_length_bytes(jv_copy(v)))
			s = NULL;
	}
	jv_free(v);		/* the object keeps its own reference */
	return s;
}

int
am_has(jv object_, const char *key)
{
	return jv_get_kind(object_) == JV_KIND_OBJECT && jv_object_has(jv_copy(object_), jv_string(key));
}

const char *
am_unknown_key(jv object_, const char *const *known)
{
	static char unknown[128];
	int i = jv_object_iter(object_);

	for (; jv_object_iter_valid(object_, i); i = jv_object_iter_next(object_, i)) {
		jv k = jv_object_iter_key(object_, i);
		const char *s = jv_string_value(k);
		size_t len = (size_t)jv_string_length_bytes(jv_copy(k)), n;

		for (n = 0; known[n] != NULL; n++)
			if (strlen(known[n]) == len && memcmp(known[n], s, len) == 0)
				break;
		if (known[n] == NULL) {
			snprintf(unknown, sizeof unknown, "%s", s);
			jv_free(k);
			return unknown;
		}
		jv_free(k);
	}
	return NULL;
}

jv
am_set(jv object_, const char *key, jv v)
{
	return jv_object_set(object_, jv_string(key), v);
}

jv
am_set_str(jv object_, const char *key, const char *s)
{
	return am_set(object_, key, s == NULL ? jv_null() : jv_string(s));
}

/* ---- writing ---- */

char *
am_json_text(jv v, enum am_json_style style, size_t *len)
{
	int flags = style == AM_DOCUMENT ? JV_PRINT_PRETTY | JV_PRINT_INDENT_FLAGS(2) | JV_PRINT_ASCII
	    : style == AM_SORTED ? JV_PRINT_SORTED | JV_PRINT_ASCII : 0;
	jv s = jv_dump_string(jv_copy(v), flags);
	size_t n = (size_t)jv_string_length_bytes(jv_copy(s));
	char *text = malloc(n + 2);

	if (text == NULL)
		abort();
	memcpy(text, jv_string_value(s), n);
	jv_free(s);
	if (style == AM_DOCUMENT)
		text[n++] = '\n';
	text[n] = '\0';
	if (len != NULL)
		*len = n;
	return text;
}

void
am_put(FILE *fp, jv rec)
{
	size_t len;
	char *text = am_json_text(rec, AM_COMPACT, &len);

	fwrite(text, 1, len, fp);
	putc('\n', fp);
	free(text);
	jv_free(rec);
}

void
am_put_end(FILE *fp, long count)
{
	fprintf(fp, "{\"end\":%ld}\n", count);
}

/* ---- JSON Lines ---- */

static int
broken(struct am_stream *in, const char *why)
{
	if (in->line > 0)
		snprintf(in->why, sizeof in->why, "%s:%ld: %s", in->name, in->line, why);
	else
		snprintf(in->why, sizeof in->why, "%s: %s", in->name, why);
	free(in->buf);
	in->buf = NULL;
	in->cap = 0;
	return -1;
}

int
am_next(struct am_stream *in, jv *rec)
{
	ssize_t n;
	jv v, end;

	for (;;) {
		errno = 0;
		n = getline(&in->buf, &in->cap, in->fp);
		if (n < 0 && (ferror(in->fp) || errno != 0))
			return broken(in, strerror(errno ? errno : EIO));
		if (n < 0) {
			if (!in->ended)
				return broken(in, "the stream is cut: no {\"end\":COUNT} line closes it");
			free(in->buf);
			in->buf = NULL;
			in->cap = 0;
			return 0;
		}
		in->line++;
		if (in->buf[n - 1] != '\n')
			return broken(in, "the stream is cut in the middle of a line");
		if ((size_t)n > AM_JSON_MAX)
			return broken(in, "the line is too long");
		in->buf[n - 1] = '\0';
		v = am_json_parse(in->buf, (size_t)n - 1);
		if (!jv_is_valid(v))
			return broken(in, am_json_why(v));
		if (jv_get_kind(v) != JV_KIND_OBJECT) {
			jv_free(v);
			return broken(in, "not an object");
		}
		if (in->ended) {		/* a further part begins */
			in->ended = 0;
			in->count = 0;
		}
		end = am_get(v, "end", JV_KIND_NUMBER);
		if (!jv_is_valid(end)) {
			in->count++;
			*rec = v;
			return 1;
		}
		in->ended = jv_number_value(end) == (double)in->count;
		jv_free(end);
		jv_free(v);
		if (!in->ended)
			return broken(in, "the stream is cut: its end line counts other records than were read");
	}
}

const char *
am_stream_why(const struct am_stream *in)
{
	return in->why;
}
