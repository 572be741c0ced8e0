#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "id.h"
#include "router/status.h"

#define STATUS_MAX (256u << 20)
#define DENIED_SHOWN 10

jv
amr_status_read(const char *state_dir)
{
	int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	jv doc = dir < 0 ? jv_invalid() : am_json_object_at(dir, "status.json", STATUS_MAX);

	if (dir >= 0)
		close(dir);
	return doc;
}

static double
number(jv object, const char *key, double otherwise)
{
	jv v = am_get(object, key, JV_KIND_NUMBER);
	double n = jv_is_valid(v) ? jv_number_value(v) : otherwise;

	jv_free(v);
	return n;
}

int
amr_status_health(jv status, char *line, size_t size)
{
	const char *ts = am_str(status, "last_poll_ts");
	double interval = number(status, "interval_s", 0);
	time_t when = ts == NULL ? -1 : am_parse_timestamp(ts);
	long age = (long)(time(NULL) - when);

	if (!jv_is_valid(status))
		snprintf(line, size, "unhealthy: no status document; the router has not polled yet");
	else if (!(interval > 0) || isinf(interval))
		snprintf(line, size, "unhealthy: the status document has no interval");
	else if (when < 0)
		snprintf(line, size, "unhealthy: the status document has no time of the last poll");
	else if ((double)age > 3 * interval)
		snprintf(line, size, "unhealthy: the last poll was %ld s ago, more than three times %g s", age, interval);
	else {
		snprintf(line, size, "healthy: the last poll was %ld s ago, every %g s", age < 0 ? 0 : age, interval);
		return 1;
	}
	return 0;
}

/* ---- for people ---- */

static long
total(jv instance, const char *key)
{
	jv totals = am_get(instance, "totals", JV_KIND_OBJECT);
	double n = number(totals, key, 0);

	jv_free(totals);
	return (long)n;
}

static void
banners(FILE *fp, const char *name, jv instance)
{
	jv denied = am_get(instance, "placed_but_denied", JV_KIND_ARRAY);
	int n = jv_is_valid(denied) ? jv_array_length(jv_copy(denied)) : 0;
	long waiting = (long)number(instance, "held", 0);

	if (total(instance, "first_sight") > 0)
		fprintf(fp, "** FIRST SIGHT of %s in this run: what was staged before is quarantined **\n", name);
	if (waiting > 0)
		fprintf(fp, "** %ld requests of %s wait for you: amap-held list **\n", waiting, name);
	if (total(instance, "peer_held") > 0)
		fprintf(fp, "** the sandbox of %s says that it held %ld messages **\n", name, total(instance, "peer_held"));
	if (total(instance, "peer_refused") > 0)
		fprintf(fp, "** the sandbox of %s says that it refused %ld messages **\n", name, total(instance, "peer_refused"));
	if (total(instance, "peer_ambiguous_target") > 1)
		fprintf(fp, "** the sandbox of %s says that %ld messages had no clear target **\n", name,
		    total(instance, "peer_ambiguous_target"));
	if (n > 0)
		fprintf(fp, "** %d messages were placed with %s, and its sandbox says that they were not delivered **\n", n, name);
	for (int i = 0; i < n && i < DENIED_SHOWN; i++) {
		jv d = jv_array_get(jv_copy(denied), i);
		const char *id = am_str(d, "notice_id"), *sender = am_str(d, "sender"), *outcome = am_str(d, "outcome");

		fprintf(fp, "     %s from %s: %s\n", id != NULL ? am_quotes(id) : "?", sender != NULL ? am_quotes(sender) : "?",
		    outcome != NULL ? am_quotes(outcome) : "?");
		jv_free(d);
	}
	if (n > DENIED_SHOWN)
		fprintf(fp, "     and %d more\n", n - DENIED_SHOWN);
	jv_free(denied);
}

static void
each_instance(FILE *fp, jv status, void (*one)(FILE *, const char *, jv))
{
	jv all = am_get(status, "instances", JV_KIND_OBJECT), keys;
	int n;

	if (!jv_is_valid(all))
		return;
	keys = jv_keys(jv_copy(all));
	n = jv_array_length(jv_copy(keys));
	for (int i = 0; i < n; i++) {
		jv name = jv_array_get(jv_copy(keys), i), v = jv_object_get(jv_copy(all), jv_copy(name));

		if (jv_get_kind(v) == JV_KIND_OBJECT)
			one(fp, am_quotes(jv_string_value(name)), v);
		jv_free(v);
		jv_free(name);
	}
	jv_free(keys);
	jv_free(all);
}

static void
line(FILE *fp, const char *name, jv instance)
{
	fprintf(fp, "%s  drained=%ld accepted=%ld rejected=%ld for_human=%ld quarantined=%ld errors=%ld\n", name,
	    total(instance, "drained"), total(instance, "accepted"), total(instance, "rejected"),
	    total(instance, "queued_for_human"), total(instance, "quarantined"),
	    total(instance, "outbound_errored") + total(instance, "instance_errored"));
}

void
amr_status_print(FILE *fp, jv status, const struct amr_conf *c)
{
	const char *started = am_str(status, "started_ts"), *last = am_str(status, "last_poll_ts");
	time_t when = last == NULL ? -1 : am_parse_timestamp(last);
	int n = jv_array_length(jv_copy(c->report));

	if (jv_is_valid(status)) {
		fprintf(fp, "router: last poll %ld s ago, %.0f polls since %s, pid %.0f\n", when < 0 ? -1 : (long)(time(NULL) - when),
		    number(status, "polls", 0), started != NULL ? am_quotes(started) : "?", number(status, "pid", 0));
		each_instance(fp, status, line);
		each_instance(fp, status, banners);
	}
	if (n > 0)
		fprintf(fp, "discovery:\n");
	for (int i = 0; i < n; i++) {
		jv text = jv_array_get(jv_copy(c->report), i);

		fprintf(fp, "%s\n", jv_string_value(text));
		jv_free(text);
	}
}

/* ---- for Prometheus ---- */

static const char *counter;

static void
sample(FILE *fp, const char *name, jv instance)
{
	fprintf(fp, "amap_router_%s_total{instance=\"%s\"} %ld\n", counter, name, total(instance, counter));
}

static void
held(FILE *fp, const char *name, jv instance)
{
	const char *ts = am_str(instance, "held_oldest_ts");

	fprintf(fp, "amap_router_held{instance=\"%s\"} %.0f\n", name, number(instance, "held", 0));
	if (ts != NULL && am_parse_timestamp(ts) >= 0)
		fprintf(fp, "amap_router_held_oldest_timestamp_seconds{instance=\"%s\"} %lld\n", name,
		    (long long)am_parse_timestamp(ts));
}

static void
gauge(FILE *fp, const char *name, const char *help, double n)
{
	char text[32];

	fprintf(fp, "# HELP amap_router_%s %s\n# TYPE amap_router_%s gauge\namap_router_%s %s\n", name, help, name, name,
	    amr_float(n, text));
}

void
amr_status_prometheus(FILE *fp, jv status)
{
	const char *last = am_str(status, "last_poll_ts"), *started = am_str(status, "started_ts");
	jv admitted = am_get(status, "admitted", JV_KIND_ARRAY);

	if (started != NULL)
		gauge(fp, "start_timestamp_seconds", "When this run began.", (double)am_parse_timestamp(started));
	if (last != NULL)
		gauge(fp, "last_poll_timestamp_seconds", "When the last poll ended.", (double)am_parse_timestamp(last));
	if (number(status, "interval_s", 0) > 0)
		gauge(fp, "interval_seconds", "Time between two polls.", number(status, "interval_s", 0));
	if (jv_is_valid(admitted))
		gauge(fp, "admitted", "Members admitted at the last poll.", jv_array_length(jv_copy(admitted)));
	jv_free(admitted);
	fprintf(fp, "# HELP amap_router_polls_total Polls of this run.\n# TYPE amap_router_polls_total counter\n"
	    "amap_router_polls_total %.0f\n", number(status, "polls", 0));
	for (int c = 0; c < AM_COUNTERS; c++) {
		if (c == AM_SEEN)
			continue;
		counter = amr_counter_names[c];
		fprintf(fp, "# HELP amap_router_%s_total The counter %s of status.json.\n# TYPE amap_router_%s_total counter\n",
		    counter, counter, counter);
		each_instance(fp, status, sample);
	}
	fprintf(fp, "# HELP amap_router_held Requests that wait for the operator.\n# TYPE amap_router_held gauge\n");
	each_instance(fp, status, held);
}
