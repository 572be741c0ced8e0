/* Writing status.json: by hand, for a thousand instances a poll should cost little. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "router/status.h"

const char *
amr_float(double n, char out[32])
{
	int huge = n != 0 && (n < 1e-4 || n >= 1e16);

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(out, 32, huge ? "%.*g" : "%.*f", digits, n);
		if (strtod(out, NULL) == n)
			break;
	}
	return out;
}

static void
put_json(FILE *fp, const char *key, jv v, const char *q)
{
	char *text = am_json_text(v, AM_SORTED, NULL);

	fprintf(fp, ", %s%s%s: %s", q, key, q, text);
	free(text);
}

void
amr_summary_print(FILE *fp, const struct amr_router *r, const struct amr_inst *in, int python)
{
	int peer = in->at >= 0 ? amr_conf_has_peer(r->conf, (size_t)in->at) : in->peer_was;
	int failed = in->last[AM_INSTANCE_ERRORED] > 0, from = failed ? AM_INSTANCE_ERRORED : 0;
	const char *q = python ? "'" : "\"", *sep = "";

	putc('{', fp);
	for (int c = from; c < AM_PEER_SEEN || (failed && c == AM_INSTANCE_ERRORED); c++, sep = ", ")
		fprintf(fp, "%s%s%s%s: %ld", sep, q, amr_counter_names[c], q, in->last[c]);
	for (int c = AM_PEER_SEEN; peer && c < AM_INSTANCE_ERRORED; c++)
		fprintf(fp, ", %s%s%s: %ld", q, amr_counter_names[c], q, in->last[c]);
	if (peer && !python) {
		put_json(fp, "peer_alerts", in->pass_alerts, q);
		if (jv_is_valid(in->denied))
			put_json(fp, "peer_placed_denied", in->denied, q);
	}
	putc('}', fp);
}

static void
put_totals(FILE *fp, const long *total)
{
	const char *sep = "";

	putc('{', fp);
	for (int c = 0; c < AM_COUNTERS; c++) {
		if (c == AM_SEEN)
			continue;
		fprintf(fp, "%s\"%s\": %ld", sep, amr_counter_names[c], total[c]);
		sep = ", ";
	}
	putc('}', fp);
}

static void
put_time(FILE *fp, const char *key, time_t t)
{
	char ts[21];

	if (t <= 0) {
		fprintf(fp, "\"%s\": null", key);
		return;
	}
	am_timestamp(t, ts);
	fprintf(fp, "\"%s\": \"%s\"", key, ts);
}

static void
put_instance(FILE *fp, const struct amr_router *r, const struct amr_inst *in)
{
	fprintf(fp, "\"%s\": {\"last_summary\": ", in->name);
	amr_summary_print(fp, r, in, 0);
	fprintf(fp, ", \"totals\": ");
	put_totals(fp, in->total);
	fprintf(fp, ", ");
	put_time(fp, "last_error_ts", in->last_error);
	fprintf(fp, ", \"held\": %ld, ", in->held);
	put_time(fp, "held_oldest_ts", in->held_oldest);
	if (jv_is_valid(in->alerts))
		put_json(fp, "peer_alerts", in->alerts, "\"");
	if (jv_is_valid(in->denied))
		put_json(fp, "placed_but_denied", in->denied, "\"");
	putc('}', fp);
}

static void
put_document(FILE *fp, const struct amr_router *r)
{
	long sums[AM_COUNTERS] = { 0 };
	char number[32];

	fprintf(fp, "{\"schema\": 1, \"pid\": %ld, ", (long)getpid());
	put_time(fp, "started_ts", r->started);
	fprintf(fp, ", ");
	put_time(fp, "last_poll_ts", r->last_poll);
	fprintf(fp, ", \"polls\": %ld", r->polls);
	if (r->interval > 0)
		fprintf(fp, ", \"interval_s\": %s", amr_float(r->interval, number));
	if (jv_is_valid(r->admitted))
		put_json(fp, "admitted", r->admitted, "\"");
	for (size_t i = 0; i < r->n; i++)
		for (int c = 0; c < AM_COUNTERS; c++)
			sums[c] += r->inst[i]->total[c];
	fprintf(fp, ", \"totals\": ");
	put_totals(fp, sums);
	fprintf(fp, ", \"instances\": {");
	for (size_t i = 0; i < r->n; i++) {
		fputs(i > 0 ? ", " : "", fp);
		put_instance(fp, r, r->inst[i]);
	}
	fprintf(fp, "}}");
}

int
amr_status_write(const struct amr_router *r)
{
	char *text = NULL;
	size_t len = 0;
	FILE *fp = open_memstream(&text, &len);
	int rc;

	if (fp == NULL)
		return -1;
	put_document(fp, r);
	if (fclose(fp) != 0) {
		free(text);
		return -1;
	}
	rc = am_publish(r->state, "status.json", text, len, 0600);
	free(text);
	return rc;
}
