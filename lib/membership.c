#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "membership.h"

static int __attribute__((format(printf, 2, 3)))
refuse(struct am_membership *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(m->why, sizeof m->why, fmt, ap);
	va_end(ap);
	return -1;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct am_record *)a)->name, ((const struct am_record *)b)->name);
}

static int
by_id(const void *a, const void *b)
{
	return strcmp((*(const struct am_record *const *)a)->id, (*(const struct am_record *const *)b)->id);
}

/* Borrows entry. */
static int
read_entry(struct am_membership *m, jv entry, int at)
{
	static const char *const keys[] = { "workspace", "name", "id", NULL };
	struct am_record *r = &m->v[m->n];
	const char *problem, *key;

	*r = (struct am_record){ am_str(entry, "workspace"), am_str(entry, "name"), am_str(entry, "id") };
	if (jv_get_kind(entry) != JV_KIND_OBJECT)
		return refuse(m, "members: entry %d is no object", at);
	if ((key = am_unknown_key(entry, keys)) != NULL)
		return refuse(m, "members: entry %d: %s: no such key", at, am_quotes(key));
	if (r->workspace == NULL || r->name == NULL || r->id == NULL)
		return refuse(m, "members: entry %d: workspace, name and id must be strings", at);
	if ((problem = am_name_problem(r->workspace)) != NULL)
		return refuse(m, "members: entry %d: workspace \"%s\": %s", at, am_quotes(r->workspace), problem);
	if ((problem = am_name_problem(r->name)) != NULL)
		return refuse(m, "members: entry %d: name \"%s\": %s", at, am_quotes(r->name), problem);
	if ((problem = am_id_problem(r->id)) != NULL)
		return refuse(m, "members: entry %d: id \"%s\": %s", at, am_quotes(r->id), problem);
	if (strcmp(r->workspace, m->v[0].workspace) != 0)
		return refuse(m, "members: \"%s\" and \"%s\" are two workspaces; one fleet has one", m->v[0].workspace,
		    r->workspace);
	m->n++;
	return 0;
}

static int
check_unique(struct am_membership *m)
{
	const struct am_record **ids = calloc(m->n + 1, sizeof *ids);
	int rc = 0;

	if (ids == NULL)
		abort();
	if (m->n > 0)
		qsort(m->v, m->n, sizeof *m->v, by_name);
	for (size_t i = 0; i < m->n; i++)
		ids[i] = &m->v[i];
	qsort(ids, m->n, sizeof *ids, by_id);
	for (size_t i = 1; i < m->n && rc == 0; i++) {
		if (strcmp(m->v[i].name, m->v[i - 1].name) == 0)
			rc = refuse(m, "members: %s stands twice", m->v[i].name);
		else if (strcmp(ids[i]->id, ids[i - 1]->id) == 0)
			rc = refuse(m, "members: %s and %s have the same id %s", ids[i - 1]->name, ids[i]->name,
			    am_quotes(ids[i]->id));
	}
	free(ids);
	return rc;
}

/* Borrows the document. */
static int
read_document(struct am_membership *m)
{
	static const char *const keys[] = { "version", "members", NULL };
	jv version, members;
	const char *key;
	int one, n, rc = 0;

	if (jv_get_kind(m->doc) != JV_KIND_OBJECT)
		return refuse(m, "it is no JSON object");
	if ((key = am_unknown_key(m->doc, keys)) != NULL)
		return refuse(m, "%s: no such key", am_quotes(key));
	version = am_get(m->doc, "version", JV_KIND_NUMBER);
	one = jv_is_valid(version) && jv_number_value(version) == 1;
	jv_free(version);
	if (!one)
		return refuse(m, "version: it is not 1");
	members = am_get(m->doc, "members", JV_KIND_ARRAY);
	if (!jv_is_valid(members))
		return refuse(m, "members: it is no list");
	n = jv_array_length(jv_copy(members));
	if ((m->v = calloc((size_t)n + 1, sizeof *m->v)) == NULL)
		abort();
	for (int i = 0; i < n && rc == 0; i++) {
		jv entry = jv_array_get(jv_copy(members), i);

		rc = read_entry(m, entry, i + 1);
		jv_free(entry);		/* the document keeps its own reference */
	}
	jv_free(members);
	return rc == 0 ? check_unique(m) : rc;
}

int
am_membership_read(struct am_membership *m, const char *path)
{
	int use_stdin = path == NULL || strcmp(path, "-") == 0;
	jv doc = use_stdin ? am_json_read(NULL, AM_JSON_MAX) : am_json_read_regular(path, 1, AM_JSON_MAX);
	int errnum = errno;

	*m = (struct am_membership){ .doc = doc };
	if (jv_is_valid(doc))
		return read_document(m);
	m->doc = jv_invalid();
	refuse(m, "%s", am_json_why(doc));
	if (errnum == ENOENT && !use_stdin) {
		m->absent = 1;
		return 0;
	}
	/* A link, or no regular file, is refused as bad bytes are. */
	return errnum == 0 || errnum == ELOOP || errnum == EINVAL ? -1 : -2;
}

void
am_membership_free(struct am_membership *m)
{
	free(m->v);
	m->v = NULL;
	m->n = 0;
	jv_free(m->doc);
	m->doc = jv_invalid();
}

struct am_record *
am_membership_find(const struct am_membership *m, const char *name)
{
	struct am_record key = { .name = name };

	return m->n == 0 ? NULL : bsearch(&key, m->v, m->n, sizeof *m->v, by_name);
}

void
am_membership_names(const struct am_membership *m, struct am_names *out)
{
	*out = (struct am_names){ 0 };
	for (size_t i = 0; i < m->n; i++)
		am_names_add(out, m->v[i].name);
}
