/* amap-render-router - print the router's configuration for a plan */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "fleet.h"
#include "path.h"

static const char usage[] =
    "usage: amap-render-router --home DIR [PLAN]\n"
    "Reads a plan (default: standard input) and prints router.json.\n"
    "  --home DIR  the fleet's directory, absolute and normalised\n";

/* Consumes to: the path of a part of the home. */
static jv
set_path(jv to, const char *key, const char *home, const char *part)
{
	return am_set(to, key, jv_string_fmt("%s/%s", home, part));
}

/* Borrows the plan, which is sound as far as its members are a list. */
static jv
render(jv plan, const char *home)
{
	jv members = am_get(plan, "members", JV_KIND_ARRAY), senders = jv_object(), peers = jv_object(), r = jv_object();
	int n = jv_array_length(jv_copy(members)), all = am_has(plan, "task_graph");

	for (int i = 0; i < n; i++) {
		jv m = jv_array_get(jv_copy(members), i);
		const char *name = am_str(m, "name");
		jv from = am_get(m, "senders", JV_KIND_ARRAY), mail = am_get(m, "peers", JV_KIND_ARRAY);

		if (name == NULL || !jv_is_valid(from) || !jv_is_valid(mail))
			am_diex("the plan has a member without name, peers and senders; give the output of amap-fleet");
		senders = am_set(senders, name, from);
		if (jv_array_length(jv_copy(mail)) > 0)
			peers = am_set(peers, name, mail);
		else
			jv_free(mail);
		jv_free(m);
	}
	r = set_path(r, "state_dir", home, "router-state");
	r = set_path(r, "instances_dir", home, "instances");
	r = set_path(r, "selected_json", home, "selected.json");
	r = am_set_str(r, "fleet_domain", am_str(plan, "domain"));
	if (all)
		r = am_set_str(r, "task_graph", "all");
	else
		r = am_set(r, "peer_senders", jv_copy(senders));
	if (jv_object_length(jv_copy(peers)) > 0)
		r = am_set(r, "peers", jv_copy(peers));
	jv_free(senders);
	jv_free(peers);
	jv_free(members);
	return r;
}

/* Names every pair on both lanes; the router could not tell which lane a message belongs to. */
static int
refuse_overlaps(jv plan)
{
	jv overlaps = am_get(plan, "overlaps", JV_KIND_ARRAY);
	int n = jv_is_valid(overlaps) ? jv_array_length(jv_copy(overlaps)) : 0;

	for (int i = 0; i < n; i++) {
		jv pair = jv_array_get(jv_copy(overlaps), i);
		jv from = jv_array_get(jv_copy(pair), 0), to = jv_array_get(pair, 1);

		if (jv_get_kind(from) != JV_KIND_STRING || jv_get_kind(to) != JV_KIND_STRING)
			am_diex("the plan's overlaps are no pairs of names; give the output of amap-fleet");
		am_warnx("%s -> %s: on both lanes, mail and delegation; take the pair out of peers or of task_graph",
		    am_quotes(jv_string_value(from)), am_quotes(jv_string_value(to)));
		jv_free(from);
		jv_free(to);
	}
	jv_free(overlaps);
	return n > 0 ? AM_PROBLEM : AM_OK;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "home", required_argument, NULL, 'd' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *home = NULL, *problem;
	jv plan, config;
	char *text;
	int c, rc;

	am_prog = "amap-render-router";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'd': home = optarg; break;
		default: am_std_option(c, usage);
		}
	}
	if (home == NULL || argc - optind > 1)
		am_usage(usage);
	if ((problem = am_path_problem(home)) != NULL)
		am_diex("--home \"%s\": %s", am_quotes(home), problem);
	plan = am_plan_read(argv[optind]);
	if (!jv_is_valid(plan))
		am_diex("%s", am_json_why(plan));
	if ((rc = refuse_overlaps(plan)) == AM_OK) {
		config = render(plan, home);
		text = am_json_text(config, AM_DOCUMENT, NULL);
		fputs(text, stdout);
		free(text);
		jv_free(config);
	}
	jv_free(plan);
	return am_finish(rc);
}
