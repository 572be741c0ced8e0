/*
 * amap-render-fleet - print a fleet policy for a new home on this host
 *
 * The template with its domain replaced by one derived from the host's name
 * (spec deployment, section 2); every other key and the order stay.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "json.h"
#include "names.h"

static const char usage[] =
    "usage: amap-render-fleet --host NAME [--base DOMAIN] [TEMPLATE]\n"
    "\n"
    "Prints the policy TEMPLATE (or standard input) with the fleet_domain openshell.NAME.DOMAIN,\n"
    "NAME made fit to be a label of it.\n"
    "\n"
    "  --host NAME    the host's name; only what precedes its first dot counts\n"
    "  --base DOMAIN  the end of the domain (internal)\n";

/* The host's label: lower case, other characters to one "-", at most 63; "" when nothing is left. */
static void
make_label(const char *host, char label[64])
{
	size_t n = 0;

	for (; *host != '\0' && *host != '.' && n < 63; host++) {
		int c = tolower((unsigned char)*host);

		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			label[n++] = (char)c;
		else if (n == 0 || label[n - 1] != '-')
			label[n++] = '-';
	}
	while (n > 0 && label[n - 1] == '-')
		n--;
	label[n] = '\0';
	if (label[0] == '-')
		memmove(label, label + 1, n);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "base", required_argument, NULL, 'b' },
		{ "host", required_argument, NULL, 'H' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *host = NULL, *base = "internal", *problem;
	char label[64], *text;
	jv policy;
	int c;

	am_prog = "amap-render-fleet";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'b': base = optarg; break;
		case 'H': host = optarg; break;
		default: am_std_option(c, usage);
		}
	}
	if (host == NULL || argc - optind > 1)
		am_usage(usage);
	if ((problem = am_domain_problem(base)) != NULL) {
		am_warnx("--base \"%s\": %s", am_quotes(base), problem);
		return AM_PROBLEM;
	}
	policy = am_json_read(argv[optind], AM_JSON_MAX);
	if (!jv_is_valid(policy))
		am_diex("%s: %s", argc > optind ? am_quotes(argv[optind]) : "<stdin>", am_json_why(policy));
	if (jv_get_kind(policy) != JV_KIND_OBJECT)
		am_diex("the template is no object");
	make_label(host, label);
	policy = am_set(policy, "fleet_domain", label[0] == '\0' ? jv_string_fmt("openshell.%s", base) :
	    jv_string_fmt("openshell.%s.%s", label, base));
	text = am_json_text(policy, AM_DOCUMENT, NULL);
	fputs(text, stdout);
	free(text);
	jv_free(policy);
	return am_finish(AM_OK);
}
