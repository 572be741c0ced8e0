#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
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
#include "say.h"
#include "supervise.h"

#define ENV_ENTRIES 128
#define ENV_VALUE 8192
#define POLICY_MAX 262144
#define DRIVER_MAX 65536
#define LABEL_MAX 63
#define COMMAND_WORDS 256
#define COMMAND_BYTES (256u * 1024)
#define PROVISION_S 300

/* What the words asked for. Every jv is an array or an object. */
struct request {
	const char *name, *image, *policy_path, *restart;
	jv driver;		/* invalid: none given */
	jv env, labels, providers, limits, command;
	int detach, keep, tty, auto_providers;
	char *policy;		/* its text */
	size_t policy_len;
	char root[PATH_MAX];	/* the image as it is bound: "host" or a directory */
	char invented[20];
};

/* ---- words ---- */

static int
valid_env_key(const char *s, size_t n)
{
	if (n == 0 || (s[0] >= '0' && s[0] <= '9'))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", s[i]) == NULL)
			return 0;
	return strncmp(s, "OPENSHELL_", 10) != 0;
}

static int
pair(const char *option, jv *object, const char *arg)
{
	size_t n = strcspn(arg, "=");

	if (arg[n] != '=')
		return ams_cli_usage("%s: not KEY=VALUE: %s", option, am_quotes(arg));
	*object = jv_object_set(*object, jv_string_sized(arg, (int)n), jv_string(arg + n + 1));
	return 0;
}

/* memory, processes, files: the sandbox's own limits, in the words of amap-confine. */
static int
limit(struct request *r, const char *name, const char *arg)
{
	unsigned long long n, unit = 1;
	char *end;

	n = arg[0] >= '1' && arg[0] <= '9' ? strtoull(arg, &end, 10) : 0;
	if (n != 0 && strcmp(name, "memory") == 0 && *end != '\0') {
		unit = strcmp(end, "Ki") == 0 ? 1ull << 10 : strcmp(end, "Mi") == 0 ? 1ull << 20 : strcmp(end, "Gi") == 0 ? 1ull << 30 : 0;
		end += 2;
	}
	if (n == 0 || unit == 0 || *end != '\0' || n > ULLONG_MAX / unit)
		return ams_cli_usage("--%s: not a number above 0: %s", name, am_quotes(arg));
	r->limits = jv_array_append(r->limits, jv_string_fmt("%s=%llu", name, n * unit));
	return 0;
}

enum { NAME = 256, FROM, POLICY, PROVIDER, AUTO, NO_AUTO, DRIVER, ENV, LABEL, TTY, NO_TTY, DETACH, RESTART, NO_KEEP,
    MEMORY, PROCESSES, FILES, TIME };

static int
read_words(struct request *r, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "name", required_argument, NULL, NAME },
		{ "from", required_argument, NULL, FROM },
		{ "policy", required_argument, NULL, POLICY },
		{ "provider", required_argument, NULL, PROVIDER },
		{ "auto-providers", no_argument, NULL, AUTO },
		{ "no-auto-providers", no_argument, NULL, NO_AUTO },
		{ "driver-config-json", required_argument, NULL, DRIVER },
		{ "env", required_argument, NULL, ENV },
		{ "label", required_argument, NULL, LABEL },
		{ "tty", no_argument, NULL, TTY },
		{ "no-tty", no_argument, NULL, NO_TTY },
		{ "detach", no_argument, NULL, DETACH },
		{ "restart-policy", required_argument, NULL, RESTART },
		{ "no-keep", no_argument, NULL, NO_KEEP },
		{ "memory", required_argument, NULL, MEMORY },
		{ "processes", required_argument, NULL, PROCESSES },
		{ "files", required_argument, NULL, FILES },
		{ "time", required_argument, NULL, TIME },
		{ NULL, 0, NULL, 0 }
	};
	int c, rc = 0;

	optind = 0;
	while (rc == 0 && (c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case NAME: r->name = optarg; break;
		case FROM: r->image = optarg; break;
		case POLICY: r->policy_path = optarg; break;
		case PROVIDER: r->providers = jv_array_append(r->providers, jv_string(optarg)); break;
		case AUTO: r->auto_providers = 1; break;
		case NO_AUTO: r->auto_providers = -1; break;
		case DRIVER:
			jv_free(r->driver);
			r->driver = am_json_parse(optarg, strlen(optarg));
			if (!jv_is_valid(r->driver))
				return ams_fail("--driver-config-json must be valid JSON: %s", am_json_why(jv_copy(r->driver)));
			if (jv_get_kind(r->driver) != JV_KIND_OBJECT)
				return ams_fail("--driver-config-json must be a JSON object keyed by driver name");
			if (strlen(optarg) > DRIVER_MAX)
				return ams_refuse(AMS_INVALID_ARGUMENT, "driver_config exceeds maximum size (%zu > %d)", strlen(optarg), DRIVER_MAX);
			break;
		case ENV: rc = pair("--env", &r->env, optarg); break;
		case LABEL: rc = pair("--label", &r->labels, optarg); break;
		case TTY: r->tty = 1; break;
		case NO_TTY: r->tty = -1; break;
		case DETACH: r->detach = 1; break;
		case RESTART: r->restart = optarg; break;
		case NO_KEEP: r->keep = 0; break;
		case MEMORY: rc = limit(r, "memory", optarg); break;
		case PROCESSES: rc = limit(r, "processes", optarg); break;
		case FILES: rc = limit(r, "files", optarg); break;
		case TIME: rc = limit(r, "time", optarg); break;
		default: return ams_cli_usage("sandbox create: usage");
		}
	}
	for (int i = optind; rc == 0 && i < argc; i++)
		r->command = jv_array_append(r->command, jv_string(argv[i]));
	if (rc != 0)
		return rc;
	if (r->detach && !r->keep)
		return ams_cli_usage("--detach: conflicts with --no-keep");
	if (strcmp(r->restart, "never") != 0 && strcmp(r->restart, "on-failure") != 0 && strcmp(r->restart, "always") != 0)
		return ams_cli_usage("--restart-policy: must be never, on-failure or always: %s", am_quotes(r->restart));
	if (r->tty == 0)
		r->tty = isatty(0) && isatty(1) ? 1 : -1;
	return 0;
}

/* ---- checks, in the gateway's order ---- */

static int
check_fields(const struct request *r)
{
	int words = jv_array_length(jv_copy(r->command)), labels_bad = 0;
	size_t bytes = 0;

	if (ams_name_problem(r->name) != NULL)
		return ams_refuse(AMS_INVALID_ARGUMENT, "%s", ams_name_problem(r->name));
	jv_array_foreach(r->command, i, word) {
		bytes += (size_t)jv_string_length_bytes(jv_copy(word)) + 1;
		jv_free(word);
	}
	if (words > COMMAND_WORDS || bytes > COMMAND_BYTES)
		return ams_refuse(AMS_INVALID_ARGUMENT, "command exceeds %d arguments or %u bytes", COMMAND_WORDS, COMMAND_BYTES);
	if (jv_object_length(jv_copy(r->env)) > ENV_ENTRIES)
		return ams_refuse(AMS_INVALID_ARGUMENT, "spec.environment exceeds maximum entries (%d)", ENV_ENTRIES);
	for (int i = jv_object_iter(r->env); jv_object_iter_valid(r->env, i); i = jv_object_iter_next(r->env, i)) {
		jv key = jv_object_iter_key(r->env, i), value = jv_object_iter_value(r->env, i);
		const char *k = jv_string_value(key);
		int good = valid_env_key(k, strlen(k)), fits = jv_string_length_bytes(value) <= ENV_VALUE;

		jv_free(key);
		if (!good)
			return ams_refuse(AMS_INVALID_ARGUMENT, "spec.environment key must match ^[A-Za-z_][A-Za-z0-9_]*$ and not start with OPENSHELL_");
		if (!fits)
			return ams_refuse(AMS_INVALID_ARGUMENT, "spec.environment value exceeds maximum length (%d)", ENV_VALUE);
	}
	jv_object_foreach(r->labels, key, value) {
		labels_bad |= jv_string_length_bytes(key) > LABEL_MAX || jv_string_length_bytes(value) > LABEL_MAX;
	}
	if (labels_bad)
		return ams_refuse(AMS_INVALID_ARGUMENT, "label keys and values must be at most %d characters", LABEL_MAX);
	return 0;
}

/* The text that stands for a sandbox without --policy. */
static const char default_policy[] =
    "version: 1\n"
    "landlock:\n"
    "  compatibility: \"hard_requirement\"\n";

static int
read_policy(struct request *r)
{
	int fd;

	if (r->policy_path == NULL) {
		r->policy = strdup(default_policy);
		r->policy_len = strlen(default_policy);
		return 0;
	}
	if ((fd = open(r->policy_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) >= 0)
		r->policy = am_read_fd(fd, POLICY_MAX, &r->policy_len);
	if (r->policy == NULL)
		return ams_fail("failed to read sandbox policy from %s\n%s", r->policy_path, strerror(errno));
	close(fd);
	return 0;
}

/* Parsed before anything is asked of the gateway, judged by the gateway: two steps of one reading. */
static int
check_policy(const struct request *r, int judge, struct ams_policy *p)
{
	char why[512];
	enum ams_policy_fault fault = ams_policy_parse(r->policy, r->policy_len, p, why);

	if (fault == AMS_POLICY_UNREADABLE)
		return ams_fail("failed to parse sandbox policy YAML\n%s", why);
	if (fault == AMS_POLICY_UNSAFE && judge)
		return ams_refuse(AMS_INVALID_ARGUMENT, "policy contains unsafe content: %s", why);
	return 0;
}

static int
check_image(struct ams_cli *cli, struct request *r)
{
	const char *alias = cli->gateway.image != NULL ? cli->gateway.image : "host";
	struct stat st;

	if (r->image == NULL || strcmp(r->image, AMS_IMAGE_NAME) == 0 ||
	    strncmp(r->image, AMS_IMAGE_NAME ":", sizeof AMS_IMAGE_NAME) == 0)
		r->image = alias;
	if (strcmp(r->image, "host") == 0) {
		strcpy(r->root, "host");
		return 0;
	}
	if (r->image[0] != '/' && r->image[0] != '.')
		return ams_fail("image '%s' is not known here\nthe embedded sandbox takes --from host or --from DIR, a root "
		    "file system tree", r->image);
	if (realpath(r->image, r->root) == NULL || stat(r->root, &st) != 0)
		return ams_fail("image '%s': %s", r->image, strerror(errno));
	if (!S_ISDIR(st.st_mode) || strcmp(r->root, "/") == 0)
		return ams_fail("image '%s': must be a directory, and not the root of this host", r->image);
	return 0;
}

static jv
strings(const char *const *list, size_t n)
{
	jv out = jv_array();

	for (size_t i = 0; i < n; i++)
		out = jv_array_append(out, jv_string(list[i]));
	return out;
}

/* The CreateSandboxRequest as the gateway shows it to an interceptor. */
static jv
operation(struct ams_cli *cli, const struct request *r, const struct ams_policy *p)
{
	jv fs = am_set(am_set(jv_object(), "readOnly", strings(p->read_only, p->n_ro)), "readWrite", strings(p->read_write, p->n_rw));
	jv policy = am_set(am_set(jv_object(), "version", jv_number(1)), "filesystem", fs);
	jv template = am_set_str(jv_object(), "image", r->image != NULL ? r->image : "");
	jv spec = jv_object();

	policy = am_set(policy, "landlock", am_set_str(jv_object(), "compatibility", p->hard ? "hard_requirement" : "best_effort"));
	if (p->user != NULL || p->group != NULL)
		policy = am_set(policy, "process", am_set_str(am_set_str(jv_object(), "runAsUser", p->user), "runAsGroup", p->group));
	template = am_set(template, "driverConfig", jv_copy(r->driver));
	spec = am_set(spec, "environment", jv_copy(r->env));
	spec = am_set(spec, "template", template);
	spec = am_set(spec, "policy", policy);
	spec = am_set(spec, "providers", jv_copy(r->providers));
	spec = am_set(spec, "command", jv_copy(r->command));
	if (r->tty > 0)
		spec = am_set(spec, "tty", jv_true());
	spec = am_set(am_set(jv_object(), "spec", spec), "name", jv_string(r->name));
	return am_set(spec, "workspaceScope", am_set_str(jv_object(), "workspace", cli->workspace));
}

/* ---- storing and starting ---- */

static jv
record(struct ams_cli *cli, struct request *r, jv mounts)
{
	char id[37], stamp[21];
	jv v = jv_object(), env = jv_object();

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
	v = am_set(v, "limits", jv_copy(r->limits));
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
store(struct ams_cli *cli, const struct request *r, jv rec, char temp[32])
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
attach(struct ams_cli *cli, const struct request *r)
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
never_was(struct ams_cli *cli, const struct request *r, int unit, const char *why)
{
	am_warnx("sandbox %s: %s", r->name, why);
	ams_unit_halt(unit, AMS_STOP_GRACE);
	ams_unit_remove(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, r->name));
	return 1;
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
provision(struct ams_cli *cli, struct request *r, jv mounts)
{
	const char *key = ams_sandbox_key(cli->workspace, r->name), *why;
	jv rec = record(cli, r, mounts);
	static struct ams_launch launch;	/* one for the life of the program */
	char temp[32];
	int unit, report, claim;

	if (ams_launch_preflight(launch.why) != 0) {
		am_warnx("sandbox %s: %s", r->name, launch.why);
		jv_free(rec);
		return 1;
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
	why = ams_wait_ready(report, provision_limit());
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
	ams_unit_discard(cli->state, temp);
	return 1;
}

/* The gateway's own order: what an interceptor denies is never even looked at by the driver. */
static int
decide(struct ams_cli *cli, struct request *r)
{
	struct ams_policy policy;
	jv mounts = jv_array(), request;
	int rc, unit;

	if ((rc = ams_providers_resolve(cli, jv_copy(r->providers), r->auto_providers)) != 0)
		return rc;
	if ((rc = read_policy(r)) != 0 || (rc = check_policy(r, 0, &policy)) != 0)
		return rc;
	if (jv_is_valid(r->driver)) {
		request = operation(cli, r, &policy);
		rc = ams_embedded_admit(&cli->gateway, request);
		jv_free(request);
	}
	ams_policy_free(&policy);
	if (rc != 0 || (rc = check_fields(r)) != 0)
		return rc;
	if (ams_name_problem(cli->workspace) != NULL || !ams_embedded_knows(&cli->gateway, cli->workspace))
		return ams_refuse(AMS_NOT_FOUND, "workspace '%s' not found", cli->workspace);
	if ((rc = check_policy(r, 1, &policy)) != 0)
		return rc;
	ams_policy_free(&policy);
	if (jv_is_valid(r->driver)) {
		if (!cli->gateway.allow_driver_config)
			return ams_refuse(AMS_FAILED_PRECONDITION, "caller driver config is disabled; a gateway administrator must enable "
			    "allow_driver_config");
		jv_free(mounts);
		mounts = ams_driver_mounts(jv_copy(r->driver));
		if (!jv_is_valid(mounts))
			return 1;
		if (jv_array_length(jv_copy(mounts)) > 0 && !cli->gateway.enable_bind_mounts) {
			jv_free(mounts);
			return ams_refuse(AMS_FAILED_PRECONDITION, "docker bind mounts require enable_bind_mounts = true in "
			    "[openshell.drivers.docker]");
		}
	}
	if ((unit = ams_unit_open(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, r->name))) >= 0) {
		close(unit);
		jv_free(mounts);
		return taken(r->name);
	}
	if ((rc = check_image(cli, r)) != 0) {
		jv_free(mounts);
		return rc;
	}
	return provision(cli, r, mounts);
}

int
ams_cli_create(struct ams_cli *cli, int argc, char *argv[])
{
	struct request r = { .restart = "never", .keep = 1, .driver = jv_invalid(), .env = jv_object(), .labels = jv_object(),
	    .providers = jv_array(), .limits = jv_array(), .command = jv_array() };
	int rc = read_words(&r, argc, argv);

	if (rc == 0 && r.name == NULL) {
		am_random_hex(r.invented, 5);
		memmove(r.invented + 4, r.invented, 11);
		memcpy(r.invented, "box-", 4);
		r.name = r.invented;
	}
	if (rc == 0 && jv_array_length(jv_copy(r.command)) == 0) {
		int bash = access("/bin/bash", X_OK) == 0;

		r.command = jv_array_append(r.command, jv_string(bash ? "/bin/bash" : "/bin/sh"));
		if (bash)
			r.command = jv_array_append(r.command, jv_string("-l"));
	}
	if (rc == 0)
		rc = decide(cli, &r);
	free(r.policy);
	jv_free(r.driver);
	jv_free(r.env);
	jv_free(r.labels);
	jv_free(r.providers);
	jv_free(r.limits);
	jv_free(r.command);
	return rc;
}
