/*
 * amap-sandbox - sandboxes from bubblewrap, Landlock and seccomp, without a
 * daemon.
 *
 * Answers the part of the openshell command line that the scripts drive (spec
 * openshell, sections 3 to 9 and 15), and of docker ps and docker inspect, so
 * that an embedded fleet and one on OpenShell are driven alike.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/diag.h"
#include "../lib/sandbox/cli.h"

static const char usage[] =
    "usage: amap-sandbox [--workspace NAME] NOUN VERB [option]... [ARG]...\n"
    "\n"
    "  status [-o json]\n"
    "  gateway info -o json\n"
    "  provider list-profiles | profile lint|import|update|export | create\n"
    "  sandbox create --name NAME [--from host|DIR] [--policy FILE] [--provider NAME]\n"
    "          [--auto-providers | --no-auto-providers] [--driver-config-json JSON]\n"
    "          [--env KEY=VALUE] [--label KEY=VALUE] [--restart-policy never|on-failure|always]\n"
    "          [--memory BYTES] [--processes N] [--files N] [--time SECONDS] (or none)\n"
    "          [--detach | --no-keep] [--tty | --no-tty] [-- COMMAND [ARG]...]\n"
    "  sandbox get NAME [-o json | --policy-only]\n"
    "  sandbox list [--all-workspaces] [--names | --ids | -o json]\n"
    "  sandbox exec --name NAME [--workdir DIR] [--timeout SECONDS] [--tty | --no-tty]\n"
    "          [--env KEY=VALUE] [--no-login-shell] -- COMMAND [ARG]...\n"
    "  sandbox connect NAME            detach with Ctrl-P Ctrl-Q\n"
    "  sandbox stop|start NAME\n"
    "  sandbox delete NAME... | --all\n"
    "  logs NAME [-n LINES] [--tail] [--since 5m] [--source gateway|sandbox|all] [--level LEVEL]\n"
    "  service start NAME --mounts FILE [--restart POLICY] [--run-as UID:GID] -- COMMAND [ARG]...\n"
    "  service stop|delete NAME\n"
    "  service list\n"
    "  ps [-a] [-q] [--filter label=openshell.ai/sandbox-id=ID | --filter name=^NAME$]\n"
    "  inspect ID...\n";

struct verb {
	const char *noun, *verb;	/* verb NULL: the noun is all */
	int (*run)(struct ams_cli *, int, char *[]);
};

static const struct verb verbs[] = {
	{ "sandbox", "create", ams_cli_create },
	{ "sandbox", "get", ams_cli_get },
	{ "sandbox", "list", ams_cli_list },
	{ "sandbox", "exec", ams_cli_exec },
	{ "sandbox", "connect", ams_cli_connect },
	{ "sandbox", "stop", ams_cli_stop },
	{ "sandbox", "start", ams_cli_start },
	{ "sandbox", "delete", ams_cli_delete },
	{ "logs", NULL, ams_cli_logs },
	{ "status", NULL, ams_cli_status },
	{ "gateway", NULL, ams_cli_gateway },
	{ "provider", NULL, ams_cli_provider },
	{ "service", NULL, ams_cli_service },
	{ "ps", NULL, ams_cli_ps },
	{ "inspect", NULL, ams_cli_inspect },
};

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "workspace", required_argument, NULL, 'w' },
		{ "gateway", required_argument, NULL, 'g' },
		{ "color", required_argument, NULL, 'c' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct ams_cli cli = { .workspace = "default" };
	const char *env = getenv("OPENSHELL_WORKSPACE");
	int c;

	am_prog = "amap-sandbox";
	signal(SIGPIPE, SIG_IGN);
	if (env != NULL && env[0] != '\0')
		cli.workspace = env;
	while ((c = getopt_long(argc, argv, "+g:vV", longopts, NULL)) != -1) {
		switch (c) {
		case 'w': cli.workspace = optarg; break;
		case 'v': case 'c': break;	/* says no more, and never in colour */
		case 'g':
			if (strcmp(optarg, "embedded") != 0) {
				am_warnx("gateway %s: unknown: this program is the gateway embedded", am_quotes(optarg));
				return 1;
			}
			break;
		default: am_std_option(c, usage);
		}
	}
	argc -= optind;
	argv += optind;
	for (size_t i = 0; argc > 0 && i < sizeof verbs / sizeof verbs[0]; i++) {
		const struct verb *v = &verbs[i];

		if (strcmp(argv[0], v->noun) != 0 || (v->verb != NULL && (argc < 2 || strcmp(argv[1], v->verb) != 0)))
			continue;
		if ((cli.state = ams_state_open()) < 0 || ams_embedded_read(cli.state, &cli.gateway) != 0)
			return 1;
		c = v->run(&cli, argc - (v->verb != NULL), argv + (v->verb != NULL));
		ams_embedded_free(&cli.gateway);
		return c;
	}
	am_usage(usage);
}
