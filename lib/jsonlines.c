#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

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

static int
broken(struct am_stream *in, const char *why)
{
	if (in->line > 0)
		snprintf(in->why, sizeof in->why, "%s:%ld: %s", in->name, in->line, why);
	else
		snprintf(in->why, sizeof in->why, "%s: %s", in->name, why);
	free(in->buf);
	in->buf = NULL;
	in->cap = in->start = in->len = 0;
	return -1;
}

/*
 * The next line, ended by a NUL in place of its newline: its length to *n.
 * NULL at the end of the input, and when it is broken, with why set.
 */
static char *
next_line(struct am_stream *in, size_t *n)
{
	size_t seen = 0;
	char *nl, *line;
	size_t got;

	while (in->len == in->start || (nl = memchr(in->buf + in->start + seen, '\n', in->len - in->start - seen)) == NULL) {
		seen = in->len - in->start;
		if (seen > AM_JSON_MAX) {
			broken(in, "the line is too long");
			return NULL;
		}
		if (in->start > 0)
			memmove(in->buf, in->buf + in->start, seen);
		in->start = 0;
		in->len = seen;
		if (in->len == in->cap) {
			in->cap = in->cap == 0 ? 65536 : in->cap * 2;
			if ((in->buf = realloc(in->buf, in->cap)) == NULL)
				abort();
		}
		errno = 0;
		if ((got = fread(in->buf + in->len, 1, in->cap - in->len, in->fp)) > 0) {
			in->len += got;
			continue;
		}
		in->line += seen > 0;
		if (ferror(in->fp))
			broken(in, strerror(errno != 0 ? errno : EIO));
		else if (seen > 0)
			broken(in, "the stream is cut in the middle of a line");
		return NULL;
	}
	line = in->buf + in->start;
	*n = (size_t)(nl - line);
	*nl = '\0';
	in->start += *n + 1;
	in->line++;
	return line;
}

int
am_next(struct am_stream *in, jv *rec)
{
	size_t n = 0;
	char *line;
	jv v, end;

	for (;;) {
		if ((line = next_line(in, &n)) == NULL) {
			if (in->why[0] != '\0')
				return -1;
			if (!in->ended)
				return broken(in, "the stream is cut: no {\"end\":COUNT} line closes it");
			free(in->buf);
			in->buf = NULL;
			in->cap = in->start = in->len = 0;
			return 0;
		}
		v = am_json_parse(line, n);
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
		if (!jv_is_valid(end) || jv_object_length(jv_copy(v)) != 1) {
			jv_free(end);
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
