#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "router/outcome.h"

/* Owns the latest record of a notice; invalid when it is none that says no. */
static jv
latest(const struct amr_router *r, const struct amr_inst *in, int dir, const char *nid)
{
	jv best = jv_invalid(), ledger;
	struct timespec when = { 0, 0 };
	const char *o;

	for (int i = 0; i < AM_OUTCOMES; i++) {
		char name[128], *text;
		const char *a, *b;
		struct stat st;
		size_t len;
		jv doc;

		snprintf(name, sizeof name, "peer-%s.%s.json", nid, amr_outcome_names[i]);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    (text = am_read_regular(dir, name, AM_OUTCOME_MAX, &len)) == NULL)
			continue;
		doc = am_json_parse(text, len);
		free(text);
		a = am_str(doc, "recorded_ts");
		b = am_str(best, "recorded_ts");
		int newer = b == NULL ? 1 : a == NULL ? 0 : strcmp(a, b) != 0 ? strcmp(a, b) > 0 :
		    st.st_mtim.tv_sec != when.tv_sec ? st.st_mtim.tv_sec > when.tv_sec : st.st_mtim.tv_nsec > when.tv_nsec;

		if (newer && jv_get_kind(doc) == JV_KIND_OBJECT) {
			jv_free(best);
			best = doc;
			when = st.st_mtim;
		} else {
			jv_free(doc);
		}
	}
	o = am_str(best, "outcome");
	ledger = amr_outcome_ledger(r, in, nid);
	if (o == NULL || (strcmp(o, "denied") != 0 && strcmp(o, "refused") != 0) || !jv_is_valid(ledger)) {
		jv_free(best);
		best = jv_invalid();
	}
	jv_free(ledger);
	return best;
}

static jv
denied_entry(const struct amr_inst *in, const char *nid, jv record)
{
	jv d = am_set_str(jv_object(), "notice_id", nid);

	d = am_set(d, "sender", amr_outcome_member(record, "from_instance"));
	d = am_set_str(d, "recipient", in->name);
	d = am_set(d, "outcome", amr_outcome_member(record, "outcome"));
	d = am_set(d, "outcome_ts", amr_outcome_member(record, "outcome_ts"));
	d = am_set(d, "recorded_ts", amr_outcome_member(record, "recorded_ts"));
	return am_set(d, "req_id", amr_outcome_member(record, "req_id"));
}

void
amr_refresh_denied(const struct amr_router *r, struct amr_inst *in)
{
	char path[128], nid[AM_NOTICE_ID + 1];
	struct amr_version now = { 0 };
	struct amr_names ids = { 0 };
	struct dirent *e;
	struct stat st;
	int fd;
	DIR *d;
	jv list;

	snprintf(path, sizeof path, "%s/outcomes", in->name);
	fd = am_open_beneath(r->state, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0 && fstat(fd, &st) == 0)
		now = amr_version_of(&st);
	if ((jv_is_valid(in->denied) && amr_same_version(&now, &in->outcomes_version)) || (d = fd < 0 ? NULL : fdopendir(fd)) == NULL) {
		if (fd >= 0)
			close(fd);
		else if (!jv_is_valid(in->denied))
			in->denied = jv_array();
		return;
	}
	while ((e = readdir(d)) != NULL) {
		const char *dot = strchr(e->d_name, '.');

		if (dot == NULL || strlen(e->d_name) < 5 + AM_NOTICE_ID || dot != e->d_name + 5 + AM_NOTICE_ID ||
		    (strcmp(dot, ".denied.json") != 0 && strcmp(dot, ".refused.json") != 0))
			continue;
		memcpy(nid, e->d_name + 5, AM_NOTICE_ID);
		nid[AM_NOTICE_ID] = '\0';
		amr_names_add(&ids, nid, NULL);
	}
	amr_names_sort(&ids);
	list = jv_array();
	for (size_t i = 0; i < ids.n; i++) {
		const char *id = ids.text + ids.at[i];
		jv record;

		if (i > 0 && strcmp(id, ids.text + ids.at[i - 1]) == 0)
			continue;
		record = latest(r, in, fd, id);
		if (jv_is_valid(record))
			list = jv_array_append(list, denied_entry(in, id, record));
		jv_free(record);
	}
	amr_names_free(&ids);
	closedir(d);
	jv_free(in->denied);
	in->denied = list;
	in->outcomes_version = now;
}
