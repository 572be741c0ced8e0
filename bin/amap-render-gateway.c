/* amap-render-gateway - print what an operator merges into gateway.toml */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "gateway.h"
#include "path.h"
#include "render.h"

static const char usage[] =
    "usage: amap-render-gateway [--home DIR | --files]\n"
    "Prints the settings that a gateway needs, as TOML.\n"
    "  --home DIR  the registration of this home's interceptor as well\n"
    "  --files     the driver's settings alone, as a files stream\n";

static void
print_files(void)
{
	struct am_buf record = { 0 };
	char *text;
	size_t len;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL)
		abort();
	am_gateway_driver_fragment(fp);
	if (fclose(fp) != 0)
		abort();
	am_file_record(&record, "gateway-fragment.toml", text, len);
	fwrite(record.s, 1, record.n, stdout);
	am_put_end(stdout, 1);
	free(record.s);
	free(text);
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "home", required_argument, NULL, 'd' },
		{ "files", no_argument, NULL, 'f' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *home = NULL, *problem;
	int c, files = 0;

	am_prog = "amap-render-gateway";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'd': home = optarg; break;
		case 'f': files = 1; break;
		default: am_std_option(c, usage);
		}
	}
	if (argc != optind || (files && home != NULL))
		am_usage(usage);
	if (home != NULL && (problem = am_path_problem(home)) != NULL)
		am_diex("--home \"%s\": %s", am_quotes(home), problem);
	if (home != NULL && strlen(home) + strlen(AM_INTERCEPTOR_SOCKET) > AM_SOCKET_PATH_MAX)
		am_diex("%s%s: the path of a socket has at most %d bytes, this one has %zu: choose a shorter --home", am_quotes(home),
		    AM_INTERCEPTOR_SOCKET, AM_SOCKET_PATH_MAX, strlen(home) + strlen(AM_INTERCEPTOR_SOCKET));
	if (files) {
		print_files();
		return am_finish(AM_OK);
	}
	am_gateway_driver_fragment(stdout);
	putchar('\n');
	if (home != NULL)
		am_gateway_interceptor_fragment(stdout, home);
	else
		printf("# The registration of the interceptor names the home: give --home or $AMAP_OPENSHELL_HOME.\n");
	return am_finish(AM_OK);
}
