#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "router/page.h"
#include "utf8.h"

#define TEXT_MAX 4000		/* characters of one text */

/* What is not printable is shown by its number; a line of a body may end. */
static void
put_bytes(FILE *fp, const char *s, size_t len, int lines)
{
	size_t from = 0;
	long left = TEXT_MAX;

	while (from < len && left-- > 0) {
		uint32_t c;
		int n = am_utf8_next(s + from, len - from, &c);

		if (n < 1) {
			fputs("&#65533;", fp);
			n = 1;
		} else if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
			fprintf(fp, "&#%u;", c);
		else if (am_printable(c) || (lines && c == '\n'))
			fwrite(s + from, 1, (size_t)n, fp);
		else
			fprintf(fp, "\\u%04x", c);
		from += (size_t)n;
	}
	if (from < len)
		fprintf(fp, " [%zu bytes more]", len - from);
}

void
amr_page_text(FILE *fp, const char *s)
{
	put_bytes(fp, s, strlen(s), 0);
}

void
amr_page_value(FILE *fp, jv v, int lines)
{
	size_t len;
	char *text;

	if (jv_get_kind(v) == JV_KIND_STRING) {
		put_bytes(fp, jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)), lines);
	} else if (jv_is_valid(v)) {
		text = am_json_text(v, AM_COMPACT, &len);
		put_bytes(fp, text, len, 0);
		free(text);
	}
}

static jv
member(jv object, const char *key)
{
	return jv_get_kind(object) == JV_KIND_OBJECT ? jv_object_get(jv_copy(object), jv_string(key)) : jv_invalid();
}

void
amr_page_cell(FILE *fp, jv object, const char *key)
{
	jv v = member(object, key);

	fprintf(fp, "<td>");
	if (jv_get_kind(v) != JV_KIND_NULL)
		amr_page_value(fp, v, 0);
	fprintf(fp, "</td>");
	jv_free(v);
}

void
amr_page_head(FILE *fp, const char *title, const char *const columns[])
{
	fprintf(fp, "<h2>%s</h2>\n<table>\n<tr>", title);
	for (; *columns != NULL; columns++)
		fprintf(fp, "<th>%s</th>", *columns);
	fprintf(fp, "</tr>\n");
}

void
amr_page_term(FILE *fp, const char *label, jv object, const char *key)
{
	jv v = member(object, key);

	if (jv_is_valid(v)) {
		fprintf(fp, "<dt>%s</dt><dd>", label);
		amr_page_value(fp, v, 0);
		fprintf(fp, "</dd>");
	}
	jv_free(v);
}
