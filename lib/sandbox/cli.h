/*
 * cli - the nouns and verbs of amap-sandbox.
 *
 * Each takes its own words, argv[0] being the verb, and returns the exit
 * status: 0 done, 1 refused or failed, 2 usage; exec the command's own.
 */
#ifndef AM_SANDBOX_CLI_H
#define AM_SANDBOX_CLI_H

#include "../json.h"
#include "embedded.h"
#include "launch.h"
#include "state.h"

/* The image name of the deployment, which stands for what gateway.toml says. */
#define AMS_IMAGE_NAME "amap-openshell-agent"

struct ams_cli {
	const char *workspace;
	int state;
	struct ams_embedded gateway;
};

int ams_cli_create(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_get(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_list(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_exec(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_connect(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_stop(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_start(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_delete(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_logs(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_status(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_gateway(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_provider(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_service(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_ps(struct ams_cli *cli, int argc, char *argv[]);
int ams_cli_inspect(struct ams_cli *cli, int argc, char *argv[]);

/* ---- shared by them ---- */

/* One line on standard error that names what was wrong with the words; 2. */
int ams_cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Consumes v. The last word of a verb: prints it, and closes standard output; 0 or 2. */
int ams_cli_print(jv v);

/* The rule for names; NULL when fit, else the gateway's message. Static. */
const char *ams_name_problem(const char *name);

/* The one NAME after a verb, with or without "--" in front; NULL when that is not what stands there. */
const char *ams_cli_name(int argc, char *argv[]);

/* Opens the sandbox NAME of the workspace; -1 after saying that there is none. */
int ams_cli_open(struct ams_cli *cli, const char *name);

/*
 * Mounts of a driver config, as [{"source","target","read_only"}]. Consumes
 * config. Invalid after printing the driver's refusal.
 */
jv ams_driver_mounts(jv config);

/* Borrows record. Builds a launch from what a unit keeps, after ams_launch_preflight; -1 with launch->why. */
int ams_unit_launch(int state, int unit, jv record, struct ams_launch *l);

/* Waits for a supervisor's word. NULL: runs. Else why not (static); "" when time ran out. */
const char *ams_wait_ready(int report, int timeout_s);

/* Asks the supervisor to stop and waits until all is gone, at last by force. */
void ams_unit_halt(int unit, int grace_s);

/* Providers for a create: names, checked and where allowed created. 0, or 1 after saying why. */
int ams_providers_resolve(struct ams_cli *cli, jv names, int may_create);
/* Appends "NAME=placeholder" of each provider's profile to env (an object). Consumes env. */
jv ams_providers_env(struct ams_cli *cli, jv names, jv env);

#endif
