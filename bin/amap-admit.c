/* amap-admit - say whether a sandbox may be created, and why not */
#include <stdio.h>

#include "admit.h"
#include "diag.h"

static const char usage[] =
    "usage: amap-admit --home DIR [REQUEST]\n"
    "Reads a create request as JSON (default: standard input) and prints the decision.\n"
    "  --home DIR  the fleet's directory; its fleet.json says who the members are\n";

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "home", required_argument, NULL, 'd' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *home = NULL, *path;
	jv request, reasons;
	int c, allowed;

	am_prog = "amap-admit";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'd': home = optarg; break;
		default: am_std_option(c, usage);
		}
	}
	if (home == NULL || argc - optind > 1)
		am_usage(usage);
	path = argv[optind];
	request = am_json_read(path, AM_JSON_MAX);
	if (!jv_is_valid(request))
		am_diex("%s: %s", path == NULL ? "<stdin>" : path, am_json_why(request));
	reasons = am_admit(home, request);
	allowed = jv_array_length(jv_copy(reasons)) == 0;
	am_put(stdout, am_set(am_set(jv_object(), "allowed", jv_bool(allowed)), "reasons", reasons));
	jv_free(request);
	return am_finish(allowed ? AM_OK : AM_PROBLEM);
}
