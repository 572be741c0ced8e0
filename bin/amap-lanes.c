/* amap-lanes - print the members of a plan with their lane rows */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "fleet.h"
#include "lane.h"
#include "path.h"

static const char usage[] =
    "usage: amap-lanes --home DIR [PLAN]\n"
    "Reads a plan (default: standard input) and prints the members stream.\n"
    "  --home DIR  the fleet's directory, absolute and normalised\n";

static void
add(struct am_buf *out, const char *key, const char *value)
{
	am_buf_strings(out, key);
	am_json_string(out, value, strlen(value), AM_COMPACT);
}

/* Borrows member. */
static void
print_record(struct am_buf *out, jv member, const char *workspace, const char *home)
{
	const char *name = am_str(member, "name"), *address = am_str(member, "address");
	struct am_row rows[AM_ROWS];

	if (name == NULL || am_name_problem(name) != NULL || address == NULL)
		am_diex("the plan has a member without a sound name and address; give the output of amap-fleet");
	out->n = 0;
	add(out, "{\"name\":", name);
	add(out, ",\"workspace\":", workspace);
	add(out, ",\"address\":", address);
	am_rows_make(rows, home, name);
	for (int i = 0; i < AM_ROWS; i++) {
		add(out, i == 0 ? ",\"rows\":[{\"role\":" : "},{\"role\":", rows[i].role);
		add(out, ",\"source\":", rows[i].source);
		add(out, ",\"target\":", rows[i].target);
		am_buf_strings(out, ",\"read_only\":", rows[i].read_only ? "true" : "false");
	}
	am_rows_free(rows);
	am_buf_strings(out, "}]}\n");
	fwrite(out->s, 1, out->n, stdout);
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "home", required_argument, NULL, 'd' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *home = NULL, *workspace, *problem;
	struct am_buf out = { 0 };
	jv plan, members;
	int c, n;

	am_prog = "amap-lanes";
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
	members = am_get(plan, "members", JV_KIND_ARRAY);
	workspace = am_str(plan, "workspace");
	n = jv_array_length(jv_copy(members));
	for (int i = 0; i < n; i++) {
		jv member = jv_array_get(jv_copy(members), i);

		print_record(&out, member, workspace, home);
		jv_free(member);
	}
	am_put_end(stdout, n);
	free(out.s);
	jv_free(members);
	jv_free(plan);
	return am_finish(AM_OK);
}
