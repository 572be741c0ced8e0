#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "../id.h"
#include "cli.h"
#include "policy.h"
#include "preflight.h"
#include "request.h"
#include "say.h"
#include "supervise.h"

#define PROVISION_S 300

static jv
record(struct ams_cli *cli, struct ams_request *r, jv mounts)
{
	char id[37], stamp[21];
	jv v = jv_object(), env = jv_object(), limits = jv_array();

	for (size_t i = 0; i < AMS_N_LIMITS; i++)
		if (r->limits.max[i] != 0)
			limits = jv_array_append(limits, jv_string_fmt("%s=%llu", ams_limit_names[i], r->limits.max[i]));
	am_random_uuid(id);
	am_timestamp(time(NULL), stamp);
	stamp[10] = ' ';
	stamp[19] = '\0';
	env = am_set_str(env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	env = am_set_str(env, "HOME", AMS_WORKDIR);
	env = am_set_str(env, "USER", "sandbox");
	env = am_set_str(env, "LANG", "C.UTF-8");
	if (r->tty > 0)
		env = am_set_str(env, "TERM", getenv("TERM") != NULL ? getenv("TERM") : "xterm");
	env = ams_providers_env(cli, jv_copy(r->providers), env);
	env = jv_object_merge(env, jv_copy(r->env));
	v = am_set_str(v, "kind", "sandbox");
	v = am_set_str(v, "id", id);
	v = am_set_str(v, "name", r->name);
	v = am_set_str(v, "workspace", cli->workspace);
	v = am_set(v, "labels", jv_copy(r->labels));
	v = am_set_str(v, "created_at", stamp);
	v = am_set_str(v, "image", r->root);
	v = am_set(v, "command", jv_copy(r->command));
	v = am_set(v, "tty", r->tty > 0 ? jv_true() : jv_false());
	v = am_set(v, "env", env);
	v = am_set(v, "mounts", mounts);
	v = am_set(v, "limits", limits);
	v = am_set(v, "providers", jv_copy(r->providers));
	return am_set_str(v, "restart_policy", r->restart);
}

static int
provision_limit(void)
{
	const char *s = getenv("OPENSHELL_PROVISION_TIMEOUT");
	int n = s != NULL ? atoi(s) : 0;

	return n > 0 ? n : PROVISION_S;
}

/* Everything is in place below a temporary name before the sandbox's name is taken. */
static int
store(struct ams_cli *cli, const struct ams_request *r, jv rec, char temp[32])
{
	int unit = ams_unit_new(cli->state, temp), failed;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct ams_policy p;
	char why[512], *text;
	size_t len;

	if (unit < 0) {
		am_warn("%s: a new sandbox", ams_state_path());
		jv_free(rec);
		return -1;
	}
	if (geteuid() == 0 && ams_policy_parse(r->policy, r->policy_len, &p, why) == AMS_POLICY_FINE) {
		uid = ams_policy_uid(&p, AMS_DEFAULT_ID);
		gid = ams_policy_gid(&p, AMS_DEFAULT_ID);
		ams_policy_free(&p);
	}
	text = am_json_text(rec, AM_COMPACT, &len);
	jv_free(rec);
	failed = ams_unit_put(unit, "policy.yaml", r->policy, r->policy_len) != 0 ||
	    ams_unit_put(unit, "record.json", text, len) != 0 ||
	    mkdirat(unit, "home", 0700) != 0 || fchownat(unit, "home", uid, gid, AT_SYMLINK_NOFOLLOW) != 0;
	free(text);
	if (failed) {
		am_warn("%s: a new sandbox", ams_state_path());
		close(unit);
		ams_unit_discard(cli->state, temp);
		return -1;
	}
	return unit;
}

static int
taken(const char *name)
{
	return ams_fail("sandbox '%s' already exists\nhint: delete it first with: %s sandbox delete %s", name, am_prog, name);
}

static int
attach(struct ams_cli *cli, const struct ams_request *r)
{
	char *words[] = { "connect", (char *)(uintptr_t)r->name, NULL };
	int rc = ams_cli_connect(cli, 2, words);

	if (!r->keep) {
		int unit = ams_unit_open(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, r->name));

		if (unit >= 0) {
			ams_unit_halt(unit, AMS_STOP_GRACE);
			close(unit);
			ams_unit_remove(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, r->name));
		}
	}
	return rc;
}

/*
 * A command that cannot run leaves its sandbox in Error, as on OpenShell. A
 * machine that cannot make the sandbox leaves nothing: there never was one.
 */
static int
command_failed(int unit)
{
	struct ams_run run;

	ams_unit_run(unit, &run);
	return run.exit_code == 126 || run.exit_code == 127;
}

static int
never_was(struct ams_cli *cli, const struct ams_request *r, int unit, const char *why)
{
	am_warnx("sandbox %s: %s", r->name, why);
	ams_unit_halt(unit, AMS_STOP_GRACE);
	ams_unit_remove(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, r->name));
	return AMS_CANNOT;
}

/* A crash may have left the name with a record that never reached the disk: nobody's. */
static int
publish(struct ams_cli *cli, const char *temp, const char *key)
{
	struct ams_run run;
	int unit;
	jv rec;

	if (ams_unit_publish(cli->state, temp, AMS_SANDBOXES, key) == 0)
		return 0;
	if ((errno != EEXIST && errno != ENOTEMPTY) || (unit = ams_unit_open(cli->state, AMS_SANDBOXES, key)) < 0)
		return -1;
	rec = ams_unit_read(unit, "record.json");
	ams_unit_run(unit, &run);
	close(unit);
	if (jv_is_valid(rec) || run.supervisor.pid != 0) {
		jv_free(rec);
		errno = EEXIST;
		return -1;
	}
	jv_free(rec);
	ams_unit_remove(cli->state, AMS_SANDBOXES, key);
	return ams_unit_publish(cli->state, temp, AMS_SANDBOXES, key);
}

static int
provision(struct ams_cli *cli, struct ams_request *r, jv mounts)
{
	const char *key = ams_sandbox_key(cli->workspace, r->name), *why;
	jv rec = record(cli, r, mounts);
	struct ams_launch launch = { 0 };
	char temp[32];
	int unit, report, claim;

	if (ams_launch_preflight(launch.why) != 0) {
		am_warnx("sandbox %s: %s", r->name, launch.why);
		jv_free(rec);
		return AMS_CANNOT;
	}
	ams_state_sweep(cli->state);
	if ((unit = store(cli, r, jv_copy(rec), temp)) < 0) {
		jv_free(rec);
		return 1;
	}
	if (ams_unit_launch(cli->state, unit, rec, &launch) != 0) {
		am_warnx("sandbox %s: %s", r->name, launch.why);
		goto discard;
	}
	claim = ams_unit_claim(cli->state, NULL, NULL, unit);
	if (publish(cli, temp, key) != 0) {
		if (errno == EEXIST || errno == ENOTEMPTY)
			taken(r->name);
		else
			am_warn("%s/" AMS_SANDBOXES "/%s", ams_state_path(), key);
		goto discard;
	}
	jv_free(rec);
	if ((report = ams_supervise(&launch, "Provisioning")) < 0)
		return ams_fail("sandbox entered error phase while provisioning: ContainerCreateFailed: %s", strerror(errno));
	ams_launch_free(&launch);
	ams_unit_sync(unit);		/* while bubblewrap works; what is told of is on the disk */
	why = ams_wait_ready(report, provision_limit());
	close(report);
	close(claim);
	if (why != NULL && why[0] != '\0' && !command_failed(unit))
		return never_was(cli, r, unit, why);
	printf("Created sandbox: %s\n", r->name);
	fflush(stdout);
	if (why != NULL && why[0] == '\0')
		return ams_fail("sandbox provisioning timed out after %ds. Last reported status: Starting", provision_limit());
	if (why != NULL)
		return ams_fail("sandbox entered error phase while provisioning: ContainerStartFailed: %s", why);
	if (r->detach || (r->keep && r->tty < 0 && !isatty(1)))
		return am_finish(0);
	return attach(cli, r);
discard:
	jv_free(rec);
	ams_launch_free(&launch);
	ams_unit_discard(cli->state, temp);
	return 1;
}

/* The driver's part: whether mounts are allowed at all, and which. 0, or 1 after the refusal. */
static int
read_mounts(struct ams_cli *cli, const struct ams_request *r, jv *mounts)
{
	*mounts = jv_array();
	if (!jv_is_valid(r->driver))
		return 0;
	if (!cli->gateway.allow_driver_config)
		return ams_refuse(AMS_FAILED_PRECONDITION, "caller driver config is disabled; a gateway administrator must enable "
		    "allow_driver_config");
	jv_free(*mounts);
	*mounts = ams_driver_mounts(jv_copy(r->driver));
	if (!jv_is_valid(*mounts))
		return 1;
	if (jv_array_length(jv_copy(*mounts)) > 0 && !cli->gateway.enable_bind_mounts)
		return ams_refuse(AMS_FAILED_PRECONDITION, "docker bind mounts require enable_bind_mounts = true in "
		    "[openshell.drivers.docker]");
	return 0;
}

static int
check_free(struct ams_cli *cli, const char *name)
{
	int unit = ams_unit_open(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, name));

	if (unit < 0)
		return 0;
	close(unit);
	return taken(name);
}

/* The gateway's own order: what an interceptor denies is never even looked at by the driver. */
static int
decide(struct ams_cli *cli, struct ams_request *r)
{
	struct ams_policy policy;
	jv mounts, request;
	int rc;

	if ((rc = ams_providers_resolve(cli, jv_copy(r->providers), r->auto_providers)) != 0)
		return rc;
	if ((rc = ams_request_policy_text(r)) != 0 || (rc = ams_request_policy(r, 0, &policy)) != 0)
		return rc;
	if (jv_is_valid(r->driver)) {
		request = ams_request_operation(cli, r, &policy);
		rc = ams_embedded_admit(&cli->gateway, request);
		jv_free(request);
	}
	ams_policy_free(&policy);
	if (rc != 0 || (rc = ams_request_fields(r)) != 0)
		return rc;
	if (ams_name_problem(cli->workspace) != NULL || !ams_embedded_knows(&cli->gateway, cli->workspace))
		return ams_refuse(AMS_NOT_FOUND, "workspace '%s' not found", cli->workspace);
	if ((rc = ams_request_policy(r, 1, &policy)) != 0)
		return rc;
	ams_policy_free(&policy);
	if ((rc = read_mounts(cli, r, &mounts)) == 0 && (rc = check_free(cli, r->name)) == 0)
		rc = ams_request_image(cli, r);
	if (rc == 0)
		return provision(cli, r, mounts);
	jv_free(mounts);
	return rc;
}

int
ams_cli_create(struct ams_cli *cli, int argc, char *argv[])
{
	struct ams_request r;
	int rc = ams_request_read(&r, argc, argv);

	if (rc == 0)
		rc = decide(cli, &r);
	ams_request_free(&r);
	return rc;
}
