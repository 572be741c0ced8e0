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
