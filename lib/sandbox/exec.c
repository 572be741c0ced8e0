#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "cli.h"
#include "enter.h"
#include "policy.h"
#include "relay.h"
#include "say.h"

#define EXEC_WORDS 1024
#define EXEC_WORD_MAX (32u * 1024)
#define EXEC_BYTES (256u * 1024)

struct command {
	const char *name, *workdir;
	long timeout;
	int tty, login;
	jv env;
	char **words;
	int n_words;
};

static int
read_exec(struct command *x, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "workdir", required_argument, NULL, 'w' },
		{ "timeout", required_argument, NULL, 'T' },
		{ "tty", no_argument, NULL, 't' },
		{ "no-tty", no_argument, NULL, 'N' },
		{ "env", required_argument, NULL, 'e' },
		{ "no-login-shell", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 }
	};
	size_t bytes = 0;
	char *end;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "+n:", longopts, NULL)) != -1) {
		switch (c) {
		case 'n': x->name = optarg; break;
		case 'w': x->workdir = optarg; break;
		case 'T':
			x->timeout = strtol(optarg, &end, 10);
			if (optarg[0] < '0' || optarg[0] > '9' || *end != '\0' || x->timeout > 1000000000)
				return ams_cli_usage("--timeout: not a number of seconds: %s", am_quotes(optarg));
			break;
		case 't': x->tty = 1; break;
		case 'N': x->tty = -1; break;
		case 'e':
			if (strchr(optarg, '=') == NULL || optarg[0] == '=')
				return ams_cli_usage("--env: not KEY=VALUE: %s", am_quotes(optarg));
			end = strchr(optarg, '=');
			x->env = jv_object_set(x->env, jv_string_sized(optarg, (int)(end - optarg)), jv_string(end + 1));
			break;
		case 'l': x->login = 0; break;
		default: return ams_cli_usage("sandbox exec: usage");
		}
	}
	x->words = argv + optind;
	x->n_words = argc - optind;
	if (x->name == NULL)
		return ams_cli_usage("sandbox exec: --name is required");
	if (x->n_words == 0)
		return ams_cli_usage("sandbox exec: a command is required after --");
	for (int i = 0; i < x->n_words; i++) {
		size_t n = strlen(x->words[i]);

		bytes += n;
		if (n > EXEC_WORD_MAX || bytes > EXEC_BYTES || x->n_words > EXEC_WORDS)
			return ams_refuse(AMS_INVALID_ARGUMENT, "command exceeds %d arguments, %u bytes each or %u bytes in all", EXEC_WORDS,
			    EXEC_WORD_MAX, EXEC_BYTES);
	}
	if (x->workdir != NULL && strchr(x->workdir, '\n') != NULL)
		return ams_refuse(AMS_INVALID_ARGUMENT, "workdir must not contain newlines");
	if (x->tty == 0)
		x->tty = isatty(0) && isatty(1) ? 1 : -1;
	return 0;
}

/* The words of amap-confine for this command; the array, and no word, from malloc. */
static char **
confine_words(const struct command *x, jv rec)
{
	static char status[8], policy[8], env[8], script[] = "exec \"$@\"";
	jv limits = am_get(rec, "limits", JV_KIND_ARRAY);
	int n_limits = jv_is_valid(limits) ? jv_array_length(jv_copy(limits)) : 0;
	char **v = calloc((size_t)x->n_words + (size_t)n_limits * 2 + 24, sizeof *v);
	size_t n = 0;

	if (v == NULL)
		abort();
	snprintf(status, sizeof status, "%d", AMS_FD_STATUS);
	snprintf(policy, sizeof policy, "%d", AMS_FD_POLICY);
	snprintf(env, sizeof env, "%d", AMS_FD_ENV);
	v[n++] = "amap-confine";
	v[n++] = "--entered";
	v[n++] = "--status-fd";
	v[n++] = status;
	v[n++] = "--policy-fd";
	v[n++] = policy;
	v[n++] = "--env-fd";
	v[n++] = env;
	v[n++] = "--chdir";
	v[n++] = x->workdir != NULL ? (char *)(uintptr_t)x->workdir : AMS_WORKDIR;
	if (x->tty > 0)
		v[n++] = (char *)(uintptr_t)ams_tty_word();
	for (int i = 0; i < n_limits; i++) {
		jv s = jv_array_get(jv_copy(limits), i);

		v[n++] = "--limit";
		v[n++] = (char *)(uintptr_t)jv_string_value(s);
		jv_free(s);		/* the record keeps its own */
	}
	v[n++] = "--";
	if (x->login) {
		v[n++] = "/bin/bash";
		v[n++] = "-lc";
		v[n++] = script;
		v[n++] = "bash";
	}
	for (int i = 0; i < x->n_words; i++)
		v[n++] = x->words[i];
	jv_free(limits);
	return v;
}

static int
env_descriptor(jv rec, jv more)
{
	jv env = am_get(rec, "env", JV_KIND_OBJECT);
	char **v;
	int n = 0, fd;

	env = jv_object_merge(jv_is_valid(env) ? env : jv_object(), more);
	if ((v = calloc((size_t)jv_object_length(jv_copy(env)) + 1, sizeof *v)) == NULL)
		abort();
	jv_object_foreach(env, key, value) {
		if (asprintf(&v[n++], "%s=%s", jv_string_value(key), jv_string_value(value)) < 0)
			abort();
		jv_free(key);
		jv_free(value);
	}
	fd = ams_launch_env(v);
	while (n > 0)
		free(v[--n]);
	free(v);
	jv_free(env);
	return fd;
}

/* Who is entered, and as what, from what the unit keeps; -1 with why. */
static int
prepare(struct ams_enter *e, int unit, jv rec, jv env)
{
	struct ams_launch id = { 0 };
	struct ams_policy policy;
	char why[512], *text;
	size_t len;

	if ((text = am_read_regular(unit, "policy.yaml", AM_YAML_MAX, &len)) == NULL) {
		snprintf(e->why, sizeof e->why, "policy.yaml: %s", strerror(errno));
		jv_free(env);
		return -1;
	}
	if (ams_policy_parse(text, len, &policy, why) != AMS_POLICY_FINE)
		snprintf(e->why, sizeof e->why, "policy.yaml: %s", why);
	else if (ams_launch_identity(&id, policy.user, policy.group) != 0)
		snprintf(e->why, sizeof e->why, "%s", id.why);
	ams_policy_free(&policy);
	free(text);
	e->uid = id.uid;
	e->gid = id.gid;
	e->policy = am_open_regular(unit, "policy.yaml", AM_YAML_MAX);
	e->env = env_descriptor(rec, env);
	if (e->why[0] == '\0' && (e->policy < 0 || e->env < 0))
		snprintf(e->why, sizeof e->why, "%s", strerror(errno));
	return e->why[0] == '\0' ? 0 : -1;
}

static int
run_inside(const struct command *x, int unit, const struct ams_run *run)
{
	struct ams_enter e = { .init = run->init, .cgroup = run->cgroup, .tty = x->tty > 0, .timeout = x->timeout };
	jv rec = ams_unit_read(unit, "record.json");
	char **words;
	int rc;

	if ((rc = prepare(&e, unit, rec, jv_copy(x->env))) == 0) {
		e.args = words = confine_words(x, rec);
		rc = ams_enter(&e);
		free(words);
	}
	jv_free(rec);
	if (rc == 0)
		return e.status;
	if (e.status != 126 && e.status != 127)
		return ams_fail("sandbox '%s': exec: %s", x->name, e.why);
	am_warnx("%s", e.why);
	return e.status;
}

int
ams_cli_exec(struct ams_cli *cli, int argc, char *argv[])
{
	struct command x = { .login = 1, .env = jv_object() };
	struct ams_run run;
	int rc = read_exec(&x, argc, argv), unit = -1;

	if (rc == 0 && (unit = ams_cli_open(cli, x.name)) < 0)
		rc = 1;
	if (rc == 0) {
		ams_unit_run(unit, &run);
		rc = ams_phase_is(&run, "Ready") ? run_inside(&x, unit, &run)
		    : ams_fail("sandbox '%s' is not ready (phase: %s); wait for it to reach Ready state", x.name, run.phase);
		close(unit);
	}
	jv_free(x.env);
	return rc;
}
