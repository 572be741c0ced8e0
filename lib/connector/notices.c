#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connector/notices.h"
#include "diag.h"

const char *const am_lane_name[] = { "mail", "peer" };

const char *
am_notice_key(const struct am_notice *n)
{
	static char key[48];

	snprintf(key, sizeof key, "%s-%s", am_lane_name[n->lane], n->id);
	return key;
}

static int
compare(const void *a, const void *b)
{
	const struct am_notice *p = *(struct am_notice *const *)a, *q = *(struct am_notice *const *)b;

	return p->lane != q->lane ? (p->lane > q->lane) - (p->lane < q->lane) : strcmp(p->id, q->id);
}

void
am_notices_sort(struct am_notices *set)
{
	if (set->count > 0)
		qsort(set->all, set->count, sizeof set->all[0], compare);
	set->sorted = set->count;
}

struct am_notice *
am_notices_note(struct am_notices *set, enum am_lane lane, const char *id)
{
	struct am_notice key = { .lane = lane }, *n = &key, **found;

	memcpy(key.id, id, 33);
	if (set->sorted > 0 && (found = bsearch(&n, set->all, set->sorted, sizeof set->all[0], compare)) != NULL)
		return *found;
	if (set->count == set->room &&
	    (set->all = reallocarray(set->all, set->room = set->room * 2 + 64, sizeof set->all[0])) == NULL)
		abort();
	if ((n = malloc(sizeof *n)) == NULL)
		abort();
	*n = key;
	n->state = am_journal_done(set->journal, am_notice_key(n)) ? AM_N_DONE : AM_N_NEW;
	return set->all[set->count++] = n;
}

/* notice-<32 hexadecimal digits>.json: the id, else NULL. */
static const char *
id_of(const char *name)
{
	static char id[33];

	if (strlen(name) != 44 || strncmp(name, "notice-", 7) != 0 || strcmp(name + 39, ".json") != 0 ||
	    strspn(name + 7, "0123456789abcdef") != 32)
		return NULL;
	memcpy(id, name + 7, 32);
	return id;
}

static int
list(struct am_notices *set, enum am_lane lane, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	const char *id;

	if (dir == NULL) {
		am_warn("cannot list %s", path);
		return -1;
	}
	while (errno = 0, (e = readdir(dir)) != NULL)
		if ((id = id_of(e->d_name)) != NULL)
			am_notices_note(set, lane, id)->seen = set->generation;
	if (errno != 0) {
		am_warn("cannot list %s", path);
		closedir(dir);
		return -1;
	}
	closedir(dir);
	return 0;
}

void
am_notices_scan(struct am_notices *set, const char *const dirs[2])
{
	size_t kept = 0;
	int whole[2];

	set->generation++;
	whole[AM_MAIL] = list(set, AM_MAIL, dirs[AM_MAIL]) == 0;
	whole[AM_PEER] = list(set, AM_PEER, dirs[AM_PEER]) == 0;
	for (size_t i = 0; i < set->count; i++) {
		struct am_notice *n = set->all[i];

		if (n->seen == set->generation || !whole[n->lane] || n->state == AM_N_FLYING) {
			set->all[kept++] = n;
			continue;
		}
		/* What the router took away needs no memory: its ledger entry stays. */
		if (n->session != 0)
			am_journal_end(set->journal, am_notice_key(n), 0);
		free(n);
	}
	set->count = kept;
	am_notices_sort(set);
}
