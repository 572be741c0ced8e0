#include <stdlib.h>
#include <string.h>

#include "router/router.h"

void
amr_names_add(struct amr_names *s, const char *name, const char *more)
{
	size_t first = strlen(name) + 1, second = more == NULL ? 1 : strlen(more) + 1, len = first + second;

	if (s->len + len > s->cap && (s->text = realloc(s->text, s->cap = (s->len + len) * 2)) == NULL)
		abort();
	if (s->n == s->room &&
	    (s->at = realloc(s->at, (s->room = s->room ? s->room * 2 : 16) * sizeof *s->at)) == NULL)
		abort();
	memcpy(s->text + s->len, name, first);
	memcpy(s->text + s->len + first, more == NULL ? "" : more, second);
	s->at[s->n++] = (uint32_t)s->len;
	s->len += len;
}

static int
by_bytes(const void *a, const void *b, void *text)
{
	return strcmp((char *)text + *(const uint32_t *)a, (char *)text + *(const uint32_t *)b);
}

void
amr_names_sort(struct amr_names *s)
{
	if (s->n > 0)
		qsort_r(s->at, s->n, sizeof *s->at, by_bytes, s->text);
}

const char *
amr_names_find(const struct amr_names *s, const char *name)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int d = strcmp(name, s->text + s->at[mid]);

		if (d == 0)
			return s->text + s->at[mid] + strlen(name) + 1;
		if (d < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

void
amr_names_free(struct amr_names *s)
{
	free(s->text);
	free(s->at);
	memset(s, 0, sizeof *s);
}
