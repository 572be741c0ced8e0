#include <stdlib.h>

#include "json.h"
#include "router/matrix.h"

/* A name for everyone who may, after a heading; "nobody" when there is none. */
static void
names(FILE *fp, const struct amr_conf *c, size_t of, int (*may)(const struct amr_conf *, size_t, size_t))
{
	const char *sep = "";

	for (size_t i = 0; i < c->n; i++)
		if (i != of && may(c, i, of)) {
			fprintf(fp, "%s%s", sep, c->members[i].name);
			sep = ", ";
		}
	fputs(*sep == '\0' ? "nobody" : "", fp);
}

void
amr_matrix_print(FILE *fp, const struct amr_conf *c)
{
	int n = jv_array_length(jv_copy(c->report));

	for (size_t i = 0; i < c->n; i++) {
		fprintf(fp, "%s\n    tasked by: ", c->members[i].name);
		names(fp, c, i, amr_conf_may_task);
		fprintf(fp, "\n    mail with: ");
		names(fp, c, i, amr_conf_may_mail);
		putc('\n', fp);
	}
	if (n > 0)
		fprintf(fp, "discovery:\n");
	for (int i = 0; i < n; i++) {
		jv line = jv_array_get(jv_copy(c->report), i);

		fprintf(fp, "%s\n", jv_string_value(line));
		jv_free(line);
	}
}

void
amr_matrix_json(FILE *fp, const struct amr_conf *c)
{
	char address[AM_ADDRESS_MAX];
	jv all = jv_object();
	char *text;

	for (size_t to = 0; to < c->n; to++) {
		jv list = jv_array();

		for (size_t from = 0; from < c->n; from++)
			if (amr_conf_may_task(c, from, to))
				list = jv_array_append(list, jv_string(amr_conf_address_of(c, c->members[from].name, address)));
		list = jv_sort(jv_copy(list), list);
		all = am_set(all, amr_conf_address_of(c, c->members[to].name, address), list);
	}
	text = am_json_text(all, AM_SORTED, NULL);
	fprintf(fp, "%s\n", text);
	free(text);
	jv_free(all);
}

/* Names hold letters, digits, dots, underscores and hyphens only: nothing to escape. */
void
amr_matrix_html(FILE *fp, const struct amr_conf *c)
{
	fprintf(fp, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Who may task whom</title>\n"
	    "<style>body{font:16px/1.4 system-ui,sans-serif;margin:2rem}table{border-collapse:collapse}"
	    "td,th{border:1px solid #888;padding:.2rem .5rem;text-align:center}th[scope=row]{text-align:left}</style>\n"
	    "<h1>Who may task whom</h1>\n<p>Row: the one who asks. Column: the one who is asked. "
	    "T: may task. M: both exchange mail.</p>\n<table>\n<tr><th></th>");
	for (size_t i = 0; i < c->n; i++)
		fprintf(fp, "<th scope=\"col\">%s</th>", c->members[i].name);
	fprintf(fp, "</tr>\n");
	for (size_t from = 0; from < c->n; from++) {
		fprintf(fp, "<tr><th scope=\"row\">%s</th>", c->members[from].name);
		for (size_t to = 0; to < c->n; to++)
			fprintf(fp, "<td>%s%s</td>", amr_conf_may_task(c, from, to) ? "T" : "",
			    from != to && amr_conf_may_mail(c, from, to) ? "M" : "");
		fprintf(fp, "</tr>\n");
	}
	fprintf(fp, "</table>\n</html>\n");
}
