#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "lane.h"
#include "path.h"

static const struct {
	const char *role, *target;
	int read_only;
	int own;			/* below instances/NAME, not shared by all members */
} lanes[AM_ROWS] = {
	{ "payload", "/opt/amap/payload", 1, 0 },
	{ "roster", "/opt/amap/roster", 1, 0 },
	{ "inbox", "/opt/amap/lanes/inbox", 1, 1 },
	{ "peer", "/opt/amap/lanes/peer", 1, 1 },
	{ "outbox", "/opt/amap/lanes/outbox", 0, 1 },
};

void
am_rows_make(struct am_row rows[AM_ROWS], const char *home, const char *name)
{
	for (int i = 0; i < AM_ROWS; i++) {
		rows[i] = (struct am_row){ .role = lanes[i].role, .target = lanes[i].target,
		    .read_only = lanes[i].read_only };
		if (asprintf(&rows[i].source, lanes[i].own ? "%s/instances/%s/%s" : "%s%.0s/%s", home, name,
		    lanes[i].role) < 0)
			abort();
	}
}

void
am_rows_free(struct am_row rows[AM_ROWS])
{
	for (int i = 0; i < AM_ROWS; i++) {
		free(rows[i].source);
		rows[i].source = NULL;
	}
}

int
am_row_is_own(const struct am_row *row, int i)
{
	return row->read_only == lanes[i].read_only && strcmp(row->target, lanes[i].target) == 0;
}

/* The home is what stands before the first lane in its source. */
static char *
home_of(jv row)
{
	const char *source = am_str(row, "source");
	size_t tail = 1 + strlen(lanes[0].role), n = source == NULL ? 0 : strlen(source);
	char *home;

	if (n <= tail || source[n - tail] != '/' || strcmp(source + n - tail + 1, lanes[0].role) != 0)
		return NULL;
	if ((home = strndup(source, n - tail)) == NULL)
		abort();
	if (am_path_problem(home) == NULL)
		return home;
	free(home);
	return NULL;
}

static int
read_row(struct am_row *row, jv record, char *why, size_t size)
{
	const char *role = am_str(record, "role"), *source = am_str(record, "source");
	const char *target = am_str(record, "target");
	jv flag = jv_object_get(jv_copy(record), jv_string("read_only"));
	jv_kind kind = jv_get_kind(flag);

	jv_free(flag);
	if (role == NULL || strcmp(role, row->role) != 0)
		snprintf(why, size, "the row \"%s\" is not in its place", row->role);
	else if (source == NULL || strcmp(source, row->source) != 0)
		snprintf(why, size, "the source of the row \"%s\" is not the member's own", row->role);
	else if (target == NULL)
		snprintf(why, size, "the row \"%s\" has no target", row->role);
	else if (kind != JV_KIND_TRUE && kind != JV_KIND_FALSE)
		snprintf(why, size, "the row \"%s\" has no read_only flag", row->role);
	else {
		row->target = target;
		row->read_only = kind == JV_KIND_TRUE;
		return 0;
	}
	return -1;
}

int
am_member_read(struct am_member *m, jv record, char *why, size_t size)
{
	jv rows = am_get(record, "rows", JV_KIND_ARRAY), row;
	int n = jv_is_valid(rows) ? jv_array_length(jv_copy(rows)) : 0, rc = -1;

	*m = (struct am_member){ .name = am_str(record, "name"), .workspace = am_str(record, "workspace"),
	    .address = am_str(record, "address") };
	if (m->name == NULL || am_name_problem(m->name) != NULL)
		snprintf(why, size, "it has no sound name");
	else if (m->workspace == NULL || am_name_problem(m->workspace) != NULL)
		snprintf(why, size, "it has no sound workspace");
	else if (m->address == NULL || strncmp(m->address, m->name, strlen(m->name)) != 0 ||
	    m->address[strlen(m->name)] != '@' || am_domain_problem(m->address + strlen(m->name) + 1) != NULL)
		snprintf(why, size, "its address is not NAME@DOMAIN");
	else if (n != AM_ROWS)
		snprintf(why, size, "it has not %d rows", AM_ROWS);
	else {
		row = jv_array_get(jv_copy(rows), 0);
		if ((m->home = home_of(row)) == NULL) {
			snprintf(why, size, "the source of the row \"%s\" is not the member's own", lanes[0].role);
		} else {
			am_rows_make(m->rows, m->home, m->name);
			rc = 0;
		}
		jv_free(row);
	}
	for (int i = 0; i < AM_ROWS && rc == 0; i++) {
		row = jv_array_get(jv_copy(rows), i);
		rc = read_row(&m->rows[i], row, why, size);
		jv_free(row);
	}
	jv_free(rows);
	return rc;
}

void
am_member_free(struct am_member *m)
{
	free(m->home);
	m->home = NULL;
	am_rows_free(m->rows);
}

static long
members_each(struct am_stream *in, const char *name, am_member_fn *each, void *arg, char *why, size_t size)
{
	long calls = 0;
	int got = 0, rc = 0;
	char fault[200];
	struct am_member m;
	jv rec;

	while (rc == 0 && (got = am_next(in, &rec)) > 0) {
		if (am_member_read(&m, rec, fault, sizeof fault) != 0) {
			snprintf(why, size, "%s:%ld: %s", in->name, in->line, fault);
			rc = -1;
		} else if (name == NULL || strcmp(name, m.name) == 0) {
			rc = each(&m, arg, why, size);
			calls++;
		}
		am_member_free(&m);
		jv_free(rec);
	}
	if (got < 0)
		snprintf(why, size, "%s", am_stream_why(in));
	free(in->buf);
	return rc != 0 || got < 0 ? -1 : calls;
}

long
am_members_each(const char *path, const char *name, am_member_fn *each, void *arg, char *why, size_t size)
{
	int use_stdin = path == NULL || strcmp(path, "-") == 0;
	struct am_stream in = { .fp = use_stdin ? stdin : fopen(path, "re"), .name = use_stdin ? "<stdin>" : path };
	long calls;

	if (in.fp == NULL) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return -1;
	}
	calls = members_each(&in, name, each, arg, why, size);
	if (!use_stdin)
		fclose(in.fp);
	return calls;
}
