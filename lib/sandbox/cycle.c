#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../diag.h"
#include "cli.h"
#include "preflight.h"
#include "say.h"
#include "supervise.h"

#define DELETE_GRACE 2
#define LIFECYCLE_S 300

int
ams_cli_stop(struct ams_cli *cli, int argc, char *argv[])
{
	const char *name = ams_cli_name(argc, argv);
	struct ams_run run;
	int unit;

	if (name == NULL)
		return ams_cli_usage("sandbox stop: needs one NAME");
	if ((unit = ams_cli_open(cli, name)) < 0)
		return 1;
	/* what is being created or started has nothing yet that could be stopped, and would run after all */
	if (ams_unit_claim(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, name), unit) < 0)
		return ams_refuse(AMS_NOT_FOUND, "sandbox not found");
	ams_unit_run(unit, &run);
	if (!ams_phase_is(&run, "Ready") && !ams_phase_is(&run, "Starting") && !ams_phase_is(&run, "Provisioning"))
		return ams_refuse(AMS_FAILED_PRECONDITION, "sandbox must be Ready to stop (current phase: %s)", run.phase);
	ams_unit_halt(unit, AMS_STOP_GRACE + 5);
	close(unit);
	printf("\xe2\x9c\x93 Stopped sandbox %s\n", name);
	return am_finish(0);
}

/*
 * What ended, for whatever reason, may be started like what was stopped: nothing
 * of it runs, and its record and home are whole. OpenShell has an operator delete
 * and create what ended by itself, which empties a member's lanes.
 */
static int
may_start(const struct ams_run *run)
{
	return ams_phase_is(run, "Stopped") || ams_phase_is(run, "Completed") || ams_phase_is(run, "Error");
}

int
ams_cli_start(struct ams_cli *cli, int argc, char *argv[])
{
	struct ams_run run;
	struct ams_launch launch = { 0 };
	int unit, report, claim, cannot;
	const char *name = ams_cli_name(argc, argv), *why;
	jv rec;

	if (name == NULL)
		return ams_cli_usage("sandbox start: needs one NAME");
	if ((unit = ams_cli_open(cli, name)) < 0)
		return 1;
	if ((claim = ams_unit_claim(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, name), unit)) < 0)
		return ams_refuse(AMS_NOT_FOUND, "sandbox not found");
	ams_unit_run(unit, &run);
	if (!may_start(&run))
		return ams_refuse(AMS_FAILED_PRECONDITION, "sandbox must be Stopped to start (current phase: %s)", run.phase);
	rec = ams_unit_read(unit, "record.json");
	cannot = ams_launch_preflight(launch.why) != 0;
	if (cannot || ams_unit_launch(cli->state, unit, rec, &launch) != 0) {
		am_warnx("sandbox %s: %s", name, launch.why);
		ams_launch_free(&launch);
		jv_free(rec);
		return cannot ? AMS_CANNOT : 1;
	}
	jv_free(rec);
	ams_unit_halt(unit, 0);		/* what a killed supervisor may have left */
	if ((report = ams_supervise(&launch, "Starting")) < 0)
		return ams_fail("sandbox '%s': %s", name, strerror(errno));
	ams_launch_free(&launch);
	if ((why = ams_wait_ready(report, LIFECYCLE_S)) != NULL)
		return ams_fail("sandbox '%s' did not start: %s", name, why[0] != '\0' ? why : "timed out");
	close(claim);
	printf("\xe2\x9c\x93 Started sandbox %s\n", name);
	return am_finish(0);
}

static int
delete_one(struct ams_cli *cli, const char *workspace, const char *name)
{
	const char *key = ams_sandbox_key(workspace, name);
	int unit = ams_name_problem(name) == NULL ? ams_unit_open(cli->state, AMS_SANDBOXES, key) : -1, claim, rc = 0;

	if (unit < 0) {
		printf("! Sandbox %s not found\n", am_quotes(name));
		return 0;
	}
	if ((claim = ams_unit_claim(cli->state, AMS_SANDBOXES, key, unit)) >= 0) {
		ams_unit_halt(unit, DELETE_GRACE);
		if (ams_unit_remove(cli->state, AMS_SANDBOXES, key) != 0)
			rc = ams_fail("sandbox '%s': %s", name, strerror(errno));
		close(claim);
	}
	close(unit);
	if (rc != 0)
		return rc;
	printf("\xe2\x9c\x93 Deleted sandbox %s\n", name);
	return 0;
}

struct doomed {
	struct ams_cli *cli;
	int rc;
};

/* By its key, because a crash may have left a sandbox without a record. */
static int
delete_each(int unit, const char *key, void *arg)
{
	struct doomed *d = arg;
	size_t n = strlen(d->cli->workspace);

	(void)unit;
	if (strncmp(key, d->cli->workspace, n) == 0 && strncmp(key + n, "--", 2) == 0)
		d->rc |= delete_one(d->cli, d->cli->workspace, key + n + 2);
	return 0;
}

int
ams_cli_delete(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = { { "all", no_argument, NULL, 'a' }, { NULL, 0, NULL, 0 } };
	struct doomed d = { cli, 0 };
	int c, all = 0;

	optind = 0;
	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (c != 'a')
			return ams_cli_usage("sandbox delete: usage");
		all = 1;
	}
	if (all != (optind == argc))
		return ams_cli_usage("sandbox delete: needs NAME... or --all");
	ams_state_sweep(cli->state);
	for (int i = optind; i < argc; i++)
		d.rc |= delete_one(cli, cli->workspace, argv[i]);
	if (all && ams_unit_each(cli->state, AMS_SANDBOXES, delete_each, &d) < 0)
		return ams_fail("%s: %s", ams_state_path(), strerror(errno));
	return d.rc != 0 ? d.rc : am_finish(0);
}
