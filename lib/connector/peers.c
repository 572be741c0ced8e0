#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "connector/place.h"
#include "connector/submit.h"
#include "diag.h"
#include "doc.h"
#include "file.h"
#include "json.h"

#define ROSTER_MAX 4194304

/* ---- how old the roster is ---- */

/* Seconds since the epoch of an RFC 3339 time; 0 when the text is no such time, or has no offset. */
static int
parse_time(const char *s, double *out)
{
	struct tm tm = { 0 };
	int n = 0, hours, minutes;
	double fraction = 0;
	char *end;

	if (sscanf(s, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
	    &tm.tm_min, &tm.tm_sec, &n) != 6 || n != 19)
		return 0;
	s += n;
	if (*s == '.') {
		if (s[1] < '0' || s[1] > '9')
			return 0;
		fraction = strtod(s, &end);
		s = end;
	}
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*out = (double)timegm(&tm) + fraction;
	if (strcmp(s, "Z") == 0 || strcmp(s, "z") == 0)
		return 1;
	n = 0;
	if ((*s != '+' && *s != '-') || sscanf(s + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 || n != 5 || s[6] != '\0')
		return 0;
	*out -= (*s == '+' ? 60 : -60) * (hours * 60.0 + minutes);
	return 1;
}

static jv
age(jv roster)
{
	const char *written = am_str(roster, "written_at");
	struct timespec now;
	double t, tenths;

	if (written == NULL || !parse_time(written, &t))
		return jv_null();
	clock_gettime(CLOCK_REALTIME, &now);
	tenths = ((double)now.tv_sec + (double)now.tv_nsec / 1e9 - t) * 10;
	return jv_number((double)(long long)(tenths + (tenths < 0 ? -0.5 : 0.5)) / 10);
}

/* ---- who matches ---- */

/* 0 the whole address or its local part, 1 the local part begins so, 2 it holds it, 3 none. */
static int
tier(const char *address, const char *query)
{
	size_t local = strcspn(address, "@"), len = strlen(query);

	if (strcasecmp(address, query) == 0 || (local == len && strncasecmp(address, query, len) == 0))
		return 0;
	if (len <= local && strncasecmp(address, query, len) == 0)
		return 1;
	for (size_t i = 0; i + len <= local; i++)
		if (strncasecmp(address + i, query, len) == 0)
			return 2;
	return 3;
}

/* Borrows the list; owns those entries of it that match best. */
static jv
matching(jv members, const char *query, const char *self, int *skipped)
{
	jv found[3] = { jv_array(), jv_array(), jv_array() };
	int best = 2;

	*skipped = 0;
	jv_array_foreach(members, i, m) {
		const char *address = am_str(m, "address");
		jv entry = jv_object(), state = am_get(m, "state", JV_KIND_STRING);
		int t;

		if (address == NULL || !am_is_addr(address, strlen(address))) {
			(*skipped)++;
			t = 3;
		} else {
			t = query[0] == '\0' ? 0 : tier(address, query);
			entry = am_set_str(entry, "address", address);
			entry = am_set(entry, "state", jv_is_valid(state) ? jv_copy(state) : jv_null());
			if (self != NULL && strcasecmp(self, address) == 0)
				entry = am_set(entry, "self", jv_true());
		}
		if (t < 3)
			found[t] = jv_array_append(found[t], entry);
		else
			jv_free(entry);
		jv_free(state);
		jv_free(m);
	}
	for (int t = 1; t >= 0; t--)
		if (jv_array_length(jv_copy(found[t])) > 0)
			best = t;
	for (int t = 0; t < 3; t++)
		if (t != best)
			jv_free(found[t]);
	return found[best];
}

/* ---- the tool ---- */

/* Owns the roster; invalid when it cannot be used, and then that is answered. */
static jv
read_roster(const char *dir, struct am_answer *answer)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t len;
	char *text = fd < 0 ? NULL : am_read_regular(fd, "roster.json", ROSTER_MAX, &len);
	jv roster = jv_invalid();

	if (text == NULL && errno == ENOENT) {
		am_answer_error(answer, "peers: %s/roster.json does not exist: who the members are is UNKNOWN now, "
		    "which is not the same as nobody", dir);
	} else if (text == NULL) {
		am_answer_error(answer, "peers: %s/roster.json: %s", dir, strerror(errno));
	} else if (!jv_is_valid(roster = am_json_parse(text, len))) {
		am_answer_error(answer, "peers: %s/roster.json: %s", dir, am_json_why(roster));
		roster = jv_invalid();
	} else if (jv_get_kind(roster) != JV_KIND_OBJECT) {
		am_answer_error(answer, "peers: %s/roster.json: it is no object", dir);
		jv_free(roster);
		roster = jv_invalid();
	} else if (am_doc_version_refused("roster", roster)) {
		am_answer_error(answer, "peers: %s/roster.json: its contract_version is not understood: only major 2 is", dir);
		jv_free(roster);
		roster = jv_invalid();
	}
	free(text);
	if (fd >= 0)
		close(fd);
	return roster;
}

/* The trimmed query, from malloc; NULL when it is no string. Borrows. */
static char *
query_of(jv arguments)
{
	static const char space[] = " \t\r\n\v\f";
	const char *s = am_has(arguments, "query") ? am_str(arguments, "query") : "";
	char *query;

	if (s == NULL)
		return NULL;
	s += strspn(s, space);
	query = strdup(s);
	for (size_t n = strlen(query); n > 0 && strchr(space, query[n - 1]) != NULL; )
		query[--n] = '\0';
	return query;
}

void
am_peers(jv arguments, struct am_answer *answer)
{
	const char *dir = am_env("AMAP_ROSTER_DIR"), *self = getenv("AMAP_SELF");
	char *query = query_of(arguments), *text;
	jv roster = jv_invalid(), members = jv_invalid(), list, out, interval;
	int skipped, ambiguous;
	size_t len;

	if (query == NULL)
		am_answer_error(answer, "peers: 'query' must be a string");
	else if (dir == NULL)
		am_answer_error(answer, "peers: AMAP_ROSTER_DIR is not set, so it is not known where the roster is; "
		    "this is not an empty fleet");
	else if (self != NULL && !am_is_addr(self, strlen(self)))
		am_answer_error(answer, "peers: AMAP_SELF is set and is no address");
	else if (jv_is_valid(roster = read_roster(dir, answer))) {
		members = am_get(roster, "members", JV_KIND_ARRAY);
		if (!jv_is_valid(members))
			am_answer_error(answer, "peers: %s/roster.json: it has no list of members", dir);
	}
	if (jv_is_valid(members)) {
		list = matching(members, query, self, &skipped);
		ambiguous = query[0] != '\0' && jv_array_length(jv_copy(list)) > 1;
		interval = am_get(roster, "interval_s", JV_KIND_NUMBER);
		out = am_set(am_set_str(jv_object(), "query", query), "members", list);
		out = am_set(out, "ambiguous", ambiguous ? jv_true() : jv_false());
		out = am_set(out, "written_at", am_has(roster, "written_at") ?
		    jv_object_get(jv_copy(roster), jv_string("written_at")) : jv_null());
		out = am_set(out, "interval_s", jv_is_valid(interval) ? interval : jv_null());
		out = am_set(out, "age_s", age(roster));
		if (skipped > 0)
			out = am_set(out, "skipped_entries", jv_number(skipped));
		text = am_json_text(out, AM_DOCUMENT, &len);
		am_answer(answer, "%.*s", (int)len - 1, text);
		free(text);
		jv_free(out);
	}
	jv_free(members);
	jv_free(roster);
	free(query);
}
