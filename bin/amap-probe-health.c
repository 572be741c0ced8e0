/*
 * amap-probe-health - is the router alive and well, by what it leaves behind?
 *
 * Checks H1 to H7 of spec verify, section 9. Reads the answers "router-status"
 * (status --json) and "router-report" (plain status), the router's first-sight
 * markers and its held requests. Page: amap-probe-health(1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answer.h"
#include "diag.h"
#include "health/health.h"

static const char usage[] =
"usage: amap-probe-health --config FILE [ANSWERS ...]\n"
"\n"
"Prints seven checks of the router's health, or one when it reports nothing.\n"
"\n"
"  --config FILE  the router's configuration, <home>/router.json\n";

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
	struct am_check c = am_health_check("H1", "the router has polled", "its status document",
	    "look at the router's log: it has not come through one poll");

	c.expected = jv_true();
	c.actual = number_or(status, "polls", 0) > 0 ? jv_true() : jv_false();
	am_check_equal(out, &c);
}

static void
check_fresh(struct am_checks *out, jv status)
{
	struct am_check c = am_health_check("H2", "its last poll is at most three intervals old (seconds)",
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
	struct am_check c = am_health_check("H3", "it has served exactly the selected instances",
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
	struct am_check c = am_health_check("H7", "no request and no instance ended in an error", "its counters",
	    "the router's log names each error; the counters begin anew when it restarts");

	c.expected = jv_number(0);
	c.actual = jv_number(counted(status, "outbound_errored") + counted(status, "instance_errored"));
	am_check_equal(out, &c);
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
	am_check_warning(out, AM_HEALTH, text);
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
		struct am_check c = am_health_check("H0", "the router reports its own health", NULL,
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
		am_check_warning(out, AM_HEALTH, text);
	}
	check_polled(out, status);
	check_fresh(out, status);
	check_instances(out, status, instances, why);
	am_health_markers(out, &config, instances, why);
	am_health_discovery(out, answers);
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
	if (config == NULL)
		am_usage(usage);
	answers = am_answers_read(argv + optind, argc - optind);
	if (!jv_is_valid(answers))
		am_diex("%s", am_json_why(answers));
	check_all(&out, answers, config);
	jv_free(answers);
	return am_finish(am_check_end(&out));
}
