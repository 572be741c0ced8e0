/* amap-probe-gateway - does gateway.toml say what the fleet needs? */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "diag.h"
#include "gateway.h"
#include "path.h"

static const char usage[] =
    "usage: amap-probe-gateway [--home DIR [--embedded]] [FILE]\n"
    "       amap-probe-gateway --rows [FILE]\n"
    "Prints check records about the gateway.toml FILE; no FILE: nobody knows where it is.\n"
    "  --home DIR  the registration of this home's interceptor as well\n"
    "  --embedded  instead, that the embedded gateway decides by this home's fleet\n"
    "  --rows      a line for each driver setting instead, for people\n";

static const char section[] = "gateway";

static int
print_rows(const struct am_gateway *g)
{
	static const char *const words[] = { "PRESENT", "ABSENT", "UNKNOWN" };
	int rc = AM_OK;

	for (int i = 0; i < AM_DRIVER_SETTINGS; i++) {
		enum am_verdict v = am_gateway_setting(g, i);
		const struct am_setting *s = &am_driver_settings[i];

		printf("%-8s %s = %s (%s)\n", words[v], s->key, s->value, v == AM_UNSURE ? g->why : s->why);
		if (v != AM_PRESENT)
			rc = AM_PROBLEM;
	}
	return rc;
}

static const char *
outcome(enum am_verdict v)
{
	return v == AM_PRESENT ? AM_PASS : v == AM_ABSENT ? AM_FAIL : AM_UNKNOWN;
}

static void
check_setting(struct am_checks *out, const struct am_gateway *g, int i, const char *path)
{
	const struct am_setting *s = &am_driver_settings[i];
	enum am_verdict v = am_gateway_setting(g, i);
	char id[16], *claim, *remedy;

	snprintf(id, sizeof id, "G%d", i + 1);
	if (asprintf(&claim, "the gateway's file sets %s = %s", s->key, s->value) < 0 ||
	    asprintf(&remedy, "put %s = %s below [%s] in %s and restart the gateway", s->key, s->value, s->table,
	    path == NULL ? "gateway.toml" : path) < 0)
		abort();
	am_check_put(out, &(struct am_check){ .section = section, .id = id, .claim = claim,
	    .expected = jv_string("set"),
	    .actual = v == AM_UNSURE ? jv_null() : jv_string(v == AM_PRESENT ? "set" : "not set"),
	    .provenance = "what bind mounts need of the Docker driver",
	    .reason = v == AM_UNSURE ? g->why : NULL, .remedy = remedy }, outcome(v));
	free(claim);
	free(remedy);
}

static void
check_registration(struct am_checks *out, const struct am_gateway *g, const char *home)
{
	struct am_registration r;
	enum am_verdict v = am_gateway_registration(g, home, &r);
	jv unmet = jv_array();

	for (int i = 0; i < AM_REGISTRATION_ROWS; i++)
		if (!r.met[i])
			unmet = jv_array_append(unmet, jv_string(r.row[i]));
	if (v == AM_UNSURE) {
		jv_free(unmet);
		unmet = jv_null();
	}
	am_check_put(out, &(struct am_check){ .section = section, .id = "V1",
	    .claim = "the interceptor is registered with the gateway as rendered", .expected = jv_array(),
	    .actual = unmet, .provenance = "the fragment that amap-render-gateway prints",
	    .reason = v == AM_UNSURE ? g->why : NULL,
	    .remedy = "merge the interceptor's fragment (amap-openshell gateway-config) and restart the gateway",
	    .avoid = "set failure_policy to fail_open" }, outcome(v));
	am_registration_free(&r);
}

/* The embedded gateway has no interceptor to register: it decides itself, by the fleet of one home. */
static void
check_embedded(struct am_checks *out, const struct am_gateway *g, const char *home)
{
	enum am_verdict v = am_gateway_embedded(g, home);
	jv unmet = jv_array();
	char *row;

	if (asprintf(&row, "[amap.embedded] home = \"%s\"", home) < 0)
		abort();
	if (v != AM_PRESENT)
		unmet = jv_array_append(unmet, jv_string(row));
	am_check_put(out, &(struct am_check){ .section = section, .id = "V1",
	    .claim = "the embedded gateway decides about mounts by this home's fleet", .expected = jv_array(),
	    .actual = unmet, .provenance = "the home", .reason = v == AM_UNSURE ? g->why : NULL,
	    .remedy = "run amap-openshell bring-up, which makes the embedded gateway's file once" }, outcome(v));
	free(row);
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "home", required_argument, NULL, 'd' },
		{ "embedded", no_argument, NULL, 'e' },
		{ "rows", no_argument, NULL, 'r' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *home = NULL, *problem, *path;
	struct am_checks out = { .fp = stdout };
	struct am_gateway g;
	int c, rows = 0, embedded = 0, rc = AM_OK;

	am_prog = "amap-probe-gateway";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'd': home = optarg; break;
		case 'e': embedded = 1; break;
		case 'r': rows = 1; break;
		default: am_std_option(c, usage);
		}
	}
	if (argc - optind > 1 || (rows && home != NULL) || (embedded && home == NULL))
		am_usage(usage);
	if (home != NULL && (problem = am_path_problem(home)) != NULL)
		am_diex("--home \"%s\": %s", am_quotes(home), problem);
	path = argv[optind];
	am_gateway_read(&g, path);
	if (rows) {
		rc = print_rows(&g);
	} else {
		for (int i = 0; i < AM_DRIVER_SETTINGS; i++)
			check_setting(&out, &g, i, path);
		if (home != NULL)
			(embedded ? check_embedded : check_registration)(&out, &g, home);
		rc = am_check_end(&out);
	}
	am_gateway_free(&g);
	return am_finish(rc);
}
