/*
 * amap-probe-health - is the router alive and well, by what it leaves behind?
 *
 * Checks H1 to H7 of spec verify, section 9. Reads the answers "router-status"
 * (status --json) and "router-report" (plain status), the router's first-sight
 * markers and its held requests. Page: amap-probe-health(1).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "check.h"
#include "diag.h"
#include "file.h"
#include "routerview.h"

#define SECTION "router-health"
#define MARKER_MAX (16u << 20)

static const char usage[] =
"usage: amap-probe-health --config FILE [ANSWERS]\n"
"\n"
"Prints seven checks of the router's health, or one when it reports nothing.\n"
"\n"
"  --config FILE  the router's configuration, <home>/router.json\n";

static struct am_check
check_of(const char *id, const char *claim, const char *provenance, const char *remedy)
{
	return (struct am_check){ .section = SECTION, .id = id, .claim = claim, .provenance = provenance,
	    .remedy = remedy };
}

/* The number of a member that may be absent. */
static double
number_or(jv object, const char *key, double absent)
{
	jv v = am_get(object, key, JV_KIND_NUMBER);
	double d = jv_is_valid(v) ? jv_number_value(v) : absent;

	jv_free(v);
	return d;
}

/* ISO 8601: a date and a time, perhaps a fraction, then Z, an offset, or nothing (local). -1: it is none. */
static time_t
iso_time(const char *s)
{
	struct tm tm = { .tm_isdst = -1 };
	int n = 0, hours, minutes = 0, used = 0;
	char sign;

	if (s == NULL || sscanf(s, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
	    &tm.tm_min, &tm.tm_sec, &n) != 6 || n == 0)
		return -1;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	s += n;
	if (*s == '.' || *s == ',')
		s += 1 + strspn(s + 1, "0123456789");
	if (*s == '\0')
		return mktime(&tm);
	if (strcmp(s, "Z") == 0 || strcmp(s, "z") == 0)
		return timegm(&tm);
	if ((sscanf(s, "%c%2d:%2d%n", &sign, &hours, &minutes, &used) == 3 ||
	    sscanf(s, "%c%2d%2d%n", &sign, &hours, &minutes, &used) == 3) &&
	    (sign == '+' || sign == '-') && s[used] == '\0')
		return timegm(&tm) - (sign == '+' ? 1 : -1) * (hours * 3600 + minutes * 60);
	return -1;
}

/* ---- the status document ---- */

static void
check_polled(struct am_checks *out, jv status)
{
	struct am_check c = check_of("H1", "the router has polled", "its status document",
	    "look at the router's log: it has not come through one poll");

	c.expected = jv_true();
	c.actual = number_or(status, "polls", 0) > 0 ? jv_true() : jv_false();
	am_check_equal(out, &c);
}

static void
check_fresh(struct am_checks *out, jv status)
{
	struct am_check c = check_of("H2", "its last poll is at most three intervals old (seconds)",
	    "three times interval_s", "the router does not poll: look whether it runs, and at its log");
	double interval = number_or(status, "interval_s", 0), age;
	time_t last = iso_time(am_str(status, "last_poll_ts"));

	if (interval <= 0 || last < 0) {
		am_check_unknown(out, &c, interval <= 0 ? "the status names no interval (interval_s)"
		    : "the status does not say when it last polled (last_poll_ts)");
		return;
	}
	age = difftime(time(NULL), last);
	c.expected = jv_number(3 * interval);
	c.actual = jv_number(age);
	am_check_put(out, &c, age > 3 * interval ? AM_FAIL : AM_PASS);
}

/* instances borrowed; invalid with why when they are not known. */
static void
check_instances(struct am_checks *out, jv status, jv instances, const char *why)
{
	struct am_check c = check_of("H3", "it has served exactly the selected instances",
	    "selected.json and the directories of the instances",
	    "look at plain status: a retired name goes with the router's next restart");
	jv map = am_get(status, "instances", JV_KIND_OBJECT);

	if (!jv_is_valid(instances) || !jv_is_valid(map)) {
		am_check_unknown(out, &c, jv_is_valid(instances) ? "the status has no instances" : why);
		jv_free(map);
		return;
	}
	c.expected = jv_copy(instances);
	c.actual = jv_keys(map);
	am_check_equal(out, &c);
}

/* The totals' sum of a counter over the instances, where the document has no totals of its own. */
static double
counted(jv status, const char *counter)
{
	jv totals = am_get(status, "totals", JV_KIND_OBJECT), map;
	double sum = number_or(totals, counter, 0);

	if (!jv_is_valid(totals)) {
		map = am_get(status, "instances", JV_KIND_OBJECT);
		if (jv_is_valid(map)) {
			jv_object_foreach(map, name, one) {
				jv t = am_get(one, "totals", JV_KIND_OBJECT);

				sum += number_or(t, counter, 0);
				jv_free(t);
				jv_free(name);
				jv_free(one);
			}
		}
		jv_free(map);
	}
	jv_free(totals);
	return sum;
}

static void
check_errors(struct am_checks *out, jv status)
{
	struct am_check c = check_of("H7", "no request and no instance ended in an error", "its counters",
	    "the router's log names each error; the counters begin anew when it restarts");

	c.expected = jv_number(0);
	c.actual = jv_number(counted(status, "outbound_errored") + counted(status, "instance_errored"));
	am_check_equal(out, &c);
}

/* ---- markers ---- */

static int
contains(jv names, const char *name)
{
	int found = 0;

	jv_array_foreach(names, i, n) {
		found |= strcmp(jv_string_value(n), name) == 0;
		jv_free(n);
	}
	return found;
}

static void
warn_snapshot(struct am_checks *out, const char *name, jv marker)
{
	jv list = am_get(marker, "outbox_snapshot", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;
	char text[400];

	if (n > 0) {
		jv first = jv_array_get(jv_copy(list), 0);
		const char *file = am_str(first, "filename");

		snprintf(text, sizeof text, "%s: %d file%s lay in its outbox at first sight and went to quarantine (%s%s)",
		    name, n, n == 1 ? "" : "s", file == NULL ? "?" : am_quotes(file), n == 1 ? "" : ", ...");
		am_check_warning(out, SECTION, text);
		jv_free(first);
	}
	jv_free(list);
}

static void
warn_retired(struct am_checks *out, int state, jv instances)
{
	DIR *dir = fdopendir(dup(state));
	struct dirent *e;
	char text[400];

	if (dir == NULL)
		return;
	while ((e = readdir(dir)) != NULL) {
		char path[300];
		struct stat st;

		snprintf(path, sizeof path, "%s/first-seen.json", e->d_name);
		if (e->d_name[0] != '.' && !contains(instances, e->d_name) && fstatat(state, path, &st, 0) == 0) {
			snprintf(text, sizeof text, "%s: the router still keeps the state of this instance, which is not"
			    " selected", am_quotes(e->d_name));
			am_check_warning(out, SECTION, text);
		}
	}
	closedir(dir);
}

static void
check_markers(struct am_checks *out, const struct am_router_config *config, jv instances, const char *why)
{
	struct am_check seen = check_of("H4", "each instance has been seen for a first time",
	    "selected.json and the directories of the instances", "wait for one poll, then look at the router's log");
	struct am_check sound = check_of("H5", "each mark of a first sight is sound", "the marks that are there",
	    "look at the named first-seen.json: the router writes it anew when it is gone, and then quarantines"
	    " what waits in that outbox");
	int state = config->state_dir == NULL ? -1 : open(config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[300];

	if (!jv_is_valid(instances) || state < 0) {
		snprintf(text, sizeof text, "the router's state: %s",
		    config->state_dir == NULL ? "router.json has no state_dir" : strerror(errno));
		am_check_unknown(out, &seen, jv_is_valid(instances) ? text : why);
		if (state >= 0)
			close(state);
		return;
	}
	seen.expected = jv_copy(instances);
	seen.actual = jv_array();
	sound.actual = jv_array();
	jv_array_foreach(instances, i, n) {
		const char *name = jv_string_value(n), *mine, *when;
		size_t len;
		char path[300], *bytes;
		int fd;

		snprintf(path, sizeof path, "%s/first-seen.json", name);
		if ((fd = am_open_regular(state, path, MARKER_MAX)) >= 0) {
			jv marker = jv_invalid();

			seen.actual = jv_array_append(seen.actual, jv_copy(n));
			if ((bytes = am_read_fd(fd, MARKER_MAX, &len)) != NULL)
				marker = am_json_parse(bytes, len);
			mine = am_str(marker, "instance");
			when = am_str(marker, "first_seen_ts");
			if (mine != NULL && strcmp(mine, name) == 0 && when != NULL && *when != '\0')
				sound.actual = jv_array_append(sound.actual, jv_copy(n));
			warn_snapshot(out, name, marker);
			jv_free(marker);
			free(bytes);
			close(fd);
		}
		jv_free(n);
	}
	sound.expected = jv_copy(seen.actual);
	am_check_equal(out, &seen);
	am_check_equal(out, &sound);
	warn_retired(out, state, instances);
	close(state);
}

/* ---- the discovery report ---- */

struct group {
	char *tag, *slugs, *reason;
	int n;
};

/* The lines of one condensed warning: "TAG  slug: reason", the same tag and reason joined. */
static void
condense(struct group **groups, size_t *count, const char *line)
{
	const char *gap = strstr(line, "  "), *colon = gap == NULL ? NULL : strstr(gap, ": ");
	struct group *g;

	for (size_t i = 0; i < *count && colon != NULL; i++) {
		g = &(*groups)[i];
		if (g->slugs != NULL && strlen(g->tag) == (size_t)(gap - line) && strncmp(g->tag, line, strlen(g->tag)) == 0 &&
		    strcmp(g->reason, colon + 2) == 0) {
			char *joined;

			if (asprintf(&joined, "%s, %.*s", g->slugs, (int)(colon - gap - 2), gap + 2) < 0)
				abort();
			free(g->slugs);
			g->slugs = joined;
			g->n++;
			return;
		}
	}
	if ((*groups = realloc(*groups, (*count + 1) * sizeof **groups)) == NULL)
		abort();
	g = &(*groups)[(*count)++];
	memset(g, 0, sizeof *g);
	g->n = 1;
	g->tag = strndup(line, colon == NULL ? strlen(line) : (size_t)(gap - line));
	if (colon != NULL) {
		g->slugs = strndup(gap + 2, (size_t)(colon - gap - 2));
		g->reason = strdup(colon + 2);
	}
}

static void
warn_groups(struct am_checks *out, struct group *groups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct group *g = &groups[i];
		char *text;

		if ((g->slugs == NULL ? asprintf(&text, "%s", g->tag)
		    : g->n == 1 ? asprintf(&text, "%s  %s: %s", g->tag, g->slugs, g->reason)
		    : asprintf(&text, "%s \xc3\x97%d (%s): %s", g->tag, g->n, g->slugs, g->reason)) < 0)
			abort();
		am_check_warning(out, SECTION, text);
		free(text);
		free(g->tag);
		free(g->slugs);
		free(g->reason);
	}
	free(groups);
}

static void
check_discovery(struct am_checks *out, jv answers)
{
	struct am_check c = check_of("H6", "discovery has nothing to complain of", "the router's plain status",
	    "VERDICT UNAVAILABLE: selected.json cannot be read; NO DIRECTORY: a member without its lanes, provision it;"
	    " INERT EDGE: a name in the policy that is no member");
	struct group *groups = NULL;
	size_t count = 0, n;
	struct am_asked a;
	int inside = 0;
	char *text;

	if (!am_asked(answers, "router-report", NULL, &a)) {
		c.remedy = "make the router's status work, then verify again";
		am_check_unknown(out, &c, a.why);
		return;
	}
	c.expected = jv_array();
	c.actual = jv_array();
	if (asprintf(&text, "%s\n%s", a.out, a.err == NULL ? "" : a.err) < 0)
		abort();
	for (const char *p = text; *p != '\0'; p += n + (p[n] == '\n')) {
		size_t blank = strspn(p, " \t\r");
		char *line;

		n = strcspn(p, "\n");
		if (blank >= n)
			continue;
		if (blank == 0) {
			inside = n >= 10 && strncmp(p, "discovery:", 10) == 0 && p[10 + strspn(p + 10, " \t\r")] == '\n';
			continue;
		}
		if (!inside)
			continue;
		if ((line = strndup(p + blank, n - blank)) == NULL)
			abort();
		if (strncmp(line, "** ", 3) == 0)
			c.actual = jv_array_append(c.actual, jv_string(line));
		else
			condense(&groups, &count, line);
		free(line);
	}
	am_check_equal(out, &c);
	warn_groups(out, groups, count);
	free(text);
}

/* ---- requests that wait for the operator ---- */

static void
warn_held(struct am_checks *out, jv status)
{
	jv map = am_get(status, "instances", JV_KIND_OBJECT);
	time_t oldest = -1, t;
	double count = 0, age;
	char text[160];

	if (jv_is_valid(map)) {
		jv_object_foreach(map, name, one) {
			count += number_or(one, "held", 0);
			t = iso_time(am_str(one, "held_oldest_ts"));
			if (t >= 0 && (oldest < 0 || t < oldest))
				oldest = t;
			jv_free(name);
			jv_free(one);
		}
	}
	jv_free(map);
	if (count <= 0)
		return;
	age = oldest < 0 ? 0 : difftime(time(NULL), oldest);
	snprintf(text, sizeof text, "%.0f held request%s wait%s for the operator, the oldest for %.0f %s (amap-held list)",
	    count, count > 1 ? "s" : "", count > 1 ? "" : "s",
	    age >= 172800 ? age / 86400 : age >= 7200 ? age / 3600 : age / 60,
	    age >= 172800 ? "days" : age >= 7200 ? "hours" : "minutes");
	am_check_warning(out, SECTION, text);
}

static void
check_all(struct am_checks *out, jv answers, const char *config_path)
{
	struct am_router_config config;
	char config_why[400], why[700];
	long before;
	jv instances, status = am_router_status(answers, &before);

	am_router_config_read(&config, config_path);
	snprintf(config_why, sizeof config_why, "%s", config.why);
	instances = config_why[0] != '\0' ? jv_invalid_with_msg(jv_string(config_why)) : am_router_instances(&config);
	if (!jv_is_valid(status)) {
		struct am_check c = check_of("H0", "the router reports its own health", NULL,
		    "run \"amap-router --config <home>/router.json status --json\" and look at what it says");

		am_check_unknown(out, &c, am_json_why(status));
		jv_free(instances);
		am_router_config_free(&config);
		return;
	}
	snprintf(why, sizeof why, "%s", jv_is_valid(instances) ? "" : am_json_why(jv_copy(instances)));
	if (before > 0) {
		char text[120];

		snprintf(text, sizeof text, "%ld line%s stood before the router's status document", before,
		    before == 1 ? "" : "s");
		am_check_warning(out, SECTION, text);
	}
	check_polled(out, status);
	check_fresh(out, status);
	check_instances(out, status, instances, why);
	check_markers(out, &config, instances, why);
	check_discovery(out, answers);
	check_errors(out, status);
	warn_held(out, status);
	jv_free(status);
	jv_free(instances);
	am_router_config_free(&config);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct am_checks out = { .fp = stdout };
	const char *config = NULL;
	jv answers;
	int ch;

	am_prog = "amap-probe-health";
	while ((ch = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (ch) {
		case 'c': config = optarg; break;
		default: am_std_option(ch, usage);
		}
	}
	if (config == NULL || argc - optind > 1)
		am_usage(usage);
	answers = am_answers_read(argc > optind ? argv[optind] : "-");
	if (!jv_is_valid(answers))
		am_diex("%s", am_json_why(answers));
	check_all(&out, answers, config);
	jv_free(answers);
	return am_finish(am_check_end(&out));
}
