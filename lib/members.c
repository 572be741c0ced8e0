#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "members.h"

static int
read_stream(struct am_members *m, struct am_stream *in)
{
	char fault[200] = "";
	int got;
	jv rec;

	while ((got = am_next(in, &rec)) > 0) {
		const char *problem = am_str(rec, "problem");

		m->records = jv_array_append(m->records, jv_copy(rec));
		if ((m->n & (m->n - 1)) == 0 &&
		    (m->v = realloc(m->v, (m->n == 0 ? 1 : 2 * m->n) * sizeof *m->v)) == NULL)
			abort();
		if (am_member_read(&m->v[m->n], rec, fault, sizeof fault) != 0 && problem != NULL)
			snprintf(m->why, sizeof m->why, "%s", am_quotes(problem));
		else if (fault[0] != '\0')
			snprintf(m->why, sizeof m->why, "%s:%ld: %s", in->name, in->line, fault);
		else if (strcmp(m->v[m->n].workspace, m->v[0].workspace) != 0)
			snprintf(m->why, sizeof m->why, "%s:%ld: another workspace", in->name, in->line);
		m->n++;
		jv_free(rec);
		if (m->why[0] != '\0') {
			free(in->buf);
			return -1;
		}
	}
	if (got < 0)
		snprintf(m->why, sizeof m->why, "%s", am_stream_why(in));
	else if (m->n == 0)
		snprintf(m->why, sizeof m->why, "%s: the fleet names nobody", in->name);
	return m->why[0] == '\0' ? 0 : -1;
}

int
am_members_read(struct am_members *m, const char *path)
{
	int use_stdin = strcmp(path, "-") == 0, rc;
	struct am_stream in = { .fp = use_stdin ? stdin : fopen(path, "re"), .name = use_stdin ? "<stdin>" : path };

	memset(m, 0, sizeof *m);
	m->records = jv_array();
	if (in.fp == NULL) {
		snprintf(m->why, sizeof m->why, "%s: %s", path, strerror(errno));
		return -1;
	}
	if ((rc = read_stream(m, &in)) != 0) {
		for (size_t i = 0; i < m->n; i++)
			am_member_free(&m->v[i]);
		m->n = 0;
	}
	if (!use_stdin)
		fclose(in.fp);
	return rc;
}

void
am_members_free(struct am_members *m)
{
	for (size_t i = 0; i < m->n; i++)
		am_member_free(&m->v[i]);
	free(m->v);
	jv_free(m->records);
}
