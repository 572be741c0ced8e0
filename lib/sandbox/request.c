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
#include "request.h"
#include "say.h"

#define ENV_ENTRIES 128
#define ENV_VALUE 8192
#define POLICY_MAX 262144
#define DRIVER_MAX 65536
#define LABEL_MAX 63
#define COMMAND_WORDS 256
#define COMMAND_BYTES (256u * 1024)

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

static int
limit(struct ams_request *r, int which, const char *arg)
{
	const char *name = ams_limit_names[which];
	unsigned long long n, unit = 1;
	char *end;

	if (strcmp(arg, "none") == 0) {
		r->limits.max[which] = 0;
		return 0;
	}
	n = arg[0] >= '1' && arg[0] <= '9' ? strtoull(arg, &end, 10) : 0;
	if (n != 0 && which == AMS_MEMORY && *end != '\0') {
		unit = strcmp(end, "Ki") == 0 ? 1ull << 10 : strcmp(end, "Mi") == 0 ? 1ull << 20 : strcmp(end, "Gi") == 0 ? 1ull << 30 : 0;
		end += 2;
	}
	if (n == 0 || n == ULLONG_MAX || unit == 0 || *end != '\0' || n > ULLONG_MAX / unit)
		return ams_cli_usage("--%s: not a number above 0, nor none: %s", name, am_quotes(arg));
	r->limits.max[which] = n * unit;
	return 0;
}

/* A name and a command for who gave none. */
static void
fill_in(struct ams_request *r)
{
	int bash = access("/bin/bash", X_OK) == 0;

	if (r->name == NULL) {
		memcpy(r->invented, "box-", 4);
		am_random_hex(r->invented + 4, 5);
		r->name = r->invented;
	}
	if (jv_array_length(jv_copy(r->command)) > 0)
		return;
	r->command = jv_array_append(r->command, jv_string(bash ? "/bin/bash" : "/bin/sh"));
	if (bash)
		r->command = jv_array_append(r->command, jv_string("-l"));
}

enum { NAME = 256, FROM, POLICY, PROVIDER, AUTO, NO_AUTO, DRIVER, ENV, LABEL, TTY, NO_TTY, DETACH, RESTART, NO_KEEP,
    MEMORY, PROCESSES, FILES, TIME };

int
ams_request_read(struct ams_request *r, int argc, char *argv[])
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

	*r = (struct ams_request){ .restart = "never", .keep = 1, .driver = jv_invalid(), .env = jv_object(), .labels = jv_object(),
	    .providers = jv_array(), .limits = ams_limits_default, .command = jv_array() };
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
		case MEMORY: rc = limit(r, AMS_MEMORY, optarg); break;
		case PROCESSES: rc = limit(r, AMS_PROCESSES, optarg); break;
		case FILES: rc = limit(r, AMS_FILES, optarg); break;
		case TIME: rc = limit(r, AMS_TIME, optarg); break;
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
	fill_in(r);
	return 0;
}

int
ams_request_fields(const struct ams_request *r)
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

int
ams_request_policy_text(struct ams_request *r)
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
int
ams_request_policy(const struct ams_request *r, int judge, struct ams_policy *p)
{
	char why[512];
	enum ams_policy_fault fault = ams_policy_parse(r->policy, r->policy_len, p, why);

	if (fault == AMS_POLICY_UNREADABLE)
		return ams_fail("failed to parse sandbox policy YAML\n%s", why);
	if (fault == AMS_POLICY_UNSAFE && judge)
		return ams_refuse(AMS_INVALID_ARGUMENT, "policy contains unsafe content: %s", why);
	return 0;
}

int
ams_request_image(struct ams_cli *cli, struct ams_request *r)
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

jv
ams_request_operation(struct ams_cli *cli, const struct ams_request *r, const struct ams_policy *p)
{
	jv fs = am_set(am_set(jv_object(), "readOnly", am_strings(p->read_only, p->n_ro)), "readWrite", am_strings(p->read_write, p->n_rw));
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

void
ams_request_free(struct ams_request *r)
{
	free(r->policy);
	jv_free(r->driver);
	jv_free(r->env);
	jv_free(r->labels);
	jv_free(r->providers);
	jv_free(r->command);
}
