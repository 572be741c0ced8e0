#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "cli.h"
#include "policy.h"
#include "say.h"

/* ---- one sandbox as a document ---- */

/* The policy in force, in the order in which it is read back. */
static jv
policy_json(const struct ams_policy *p)
{
	jv v = am_set(jv_object(), "version", jv_number(1)), fs = am_set(jv_object(), "include_workdir", p->include_workdir ? jv_true() : jv_false());

	if (p->n_ro > 0)
		fs = am_set(fs, "read_only", am_strings(p->read_only, p->n_ro));
	if (p->n_rw > 0)
		fs = am_set(fs, "read_write", am_strings(p->read_write, p->n_rw));
	v = am_set(v, "filesystem_policy", fs);
	v = am_set(v, "landlock", am_set_str(jv_object(), "compatibility", p->hard ? "hard_requirement" : "best_effort"));
	if (p->user != NULL || p->group != NULL) {
		jv process = jv_object();

		if (p->user != NULL)
			process = am_set_str(process, "run_as_user", p->user);
		if (p->group != NULL)
			process = am_set_str(process, "run_as_group", p->group);
		v = am_set(v, "process", process);
	}
	return v;
}

static int
unit_policy(int unit, struct ams_policy *p)
{
	char why[512], *text;
	size_t len;
	int rc;

	if ((text = am_read_regular(unit, "policy.yaml", AM_YAML_MAX, &len)) == NULL)
		return -1;
	rc = ams_policy_parse(text, len, p, why) == AMS_POLICY_FINE ? 0 : -1;
	free(text);
	return rc;
}

static jv
limits_json(jv rec, const struct ams_run *run)
{
	jv list = am_get(rec, "limits", JV_KIND_ARRAY), v = jv_object();
	struct ams_limits limits = { { 0 } };

	if (jv_is_valid(list)) {
		jv_array_foreach(list, i, word) {
			if (jv_get_kind(word) == JV_KIND_STRING)
				ams_limit_read(&limits, jv_string_value(word));
			jv_free(word);
		}
	}
	jv_free(list);
	for (size_t i = 0; i < AMS_N_LIMITS; i++)
		v = am_set(v, ams_limit_names[i], limits.max[i] == 0 ? jv_null() : jv_number((double)limits.max[i]));
	return am_set_str(v, "by", run->cgroup[0] != '\0' ? "cgroup" : "rlimit");
}

/* Owns; invalid when the record cannot be read. */
static jv
document(int unit, int with_policy)
{
	static const char *const kept[] = { "id", "name", "workspace", "labels", "created_at" };
	jv rec = ams_unit_read(unit, "record.json"), v = jv_object();
	struct ams_policy policy;
	struct ams_run run;

	if (!jv_is_valid(rec)) {
		jv_free(v);
		return rec;
	}
	ams_unit_run(unit, &run);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		v = am_set(v, kept[i], am_get_or_null(rec, kept[i]));
	v = am_set(v, "annotations", jv_object());
	v = am_set(v, "resource_version", jv_number(1));
	v = am_set_str(v, "phase", run.phase);
	v = am_set(v, "current_policy_version", jv_number(1));
	v = am_set_str(v, "policy_source", "sandbox");
	v = am_set(v, "revision", jv_number(1));
	if (with_policy) {
		v = am_set(v, "policy", jv_null());
		if (unit_policy(unit, &policy) == 0) {
			v = am_set(v, "policy", policy_json(&policy));
			ams_policy_free(&policy);
		}
		v = am_set(v, "exit_code", run.exit_code < 0 ? jv_null() : jv_number(run.exit_code));
		v = am_set(v, "limits", limits_json(rec, &run));
		v = am_set(v, "restart_policy", am_get_or_null(rec, "restart_policy"));
		v = am_set(v, "restart_count", jv_number(run.restarts));
		v = am_set(v, "next_restart_at_ms", run.next_restart_ms == 0 ? jv_null() : jv_number((double)run.next_restart_ms));
		v = am_set_str(v, "main_process_instance_id", run.instance[0] != '\0' ? run.instance : NULL);
		v = am_set(v, "main_process_started_at_ms", run.started_ms == 0 ? jv_null() : jv_number((double)run.started_ms));
		jv ready = am_set_str(jv_object(), "type", "Ready");
		ready = am_set_str(ready, "status", ams_phase_is(&run, "Ready") ? "True" : "False");
		ready = am_set_str(ready, "reason", run.reason);
		ready = am_set_str(ready, "message", run.message);
		v = am_set(v, "conditions", jv_array_append(jv_array(), ready));
	}
	jv_free(rec);
	return v;
}

/* ---- the policy as YAML, as OpenShell reads it back ---- */

static void
print_list(const char *key, const char *const *list, size_t n)
{
	if (n > 0)
		printf("  %s:\n", key);
	for (size_t i = 0; i < n; i++)
		printf("  - %s\n", list[i]);
}

/* Names and paths that passed the policy's rules need no quotes; numbers that are text get them. */
static int
print_policy(int unit)
{
	struct ams_policy p;

	if (unit_policy(unit, &p) != 0)
		return ams_fail("no active policy configured for this sandbox");
	printf("version: 1\nfilesystem_policy:\n  include_workdir: %s\n", p.include_workdir ? "true" : "false");
	print_list("read_only", p.read_only, p.n_ro);
	print_list("read_write", p.read_write, p.n_rw);
	printf("landlock:\n  compatibility: %s\n", p.hard ? "hard_requirement" : "best_effort");
	if (p.user != NULL || p.group != NULL)
		printf("process:\n");
	if (p.user != NULL)
		printf("  run_as_user: '%s'\n", p.user);
	if (p.group != NULL)
		printf("  run_as_group: '%s'\n", p.group);
	ams_policy_free(&p);
	return am_finish(0);
}

/* ---- get, list ---- */

static int
print_table_row(jv v)
{
	printf("%-19s  %-19s  %-12s  %s\n", am_str(v, "name"), am_str(v, "workspace"), am_str(v, "phase"), am_str(v, "created_at"));
	jv_free(v);
	return 0;
}

int
ams_cli_get(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "policy-only", no_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 }
	};
	const char *name = NULL, *output = NULL;
	int c, policy_only = 0, unit, rc;
	jv v;

	optind = 0;
	while ((c = getopt_long(argc, argv, "o:", longopts, NULL)) != -1) {
		switch (c) {
		case 'o': output = optarg; break;
		case 'p': policy_only = 1; break;
		default: return ams_cli_usage("sandbox get: usage");
		}
	}
	if (optind + 1 != argc)
		return ams_cli_usage("sandbox get: needs one NAME");
	name = argv[optind];
	if (policy_only && output != NULL)
		return ams_cli_usage("--policy-only: conflicts with --output");
	if (output != NULL && strcmp(output, "json") != 0 && strcmp(output, "table") != 0)
		return ams_cli_usage("--output: must be json or table: %s", am_quotes(output));
	if ((unit = ams_cli_open(cli, name)) < 0)
		return 1;
	if (policy_only) {
		rc = print_policy(unit);
		close(unit);
		return rc;
	}
	v = document(unit, 1);
	close(unit);
	if (!jv_is_valid(v)) {
		jv_free(v);
		return ams_fail("sandbox '%s': its record cannot be read", name);
	}
	if (output != NULL && strcmp(output, "json") == 0)
		return ams_cli_print(v);
	print_table_row(v);
	return am_finish(0);
}

struct listing {
	const char *workspace;		/* NULL: all */
	char form;			/* n names, i ids, j json, t table */
	jv array;
	int count;
};

static int
list_one(int unit, const char *key, void *arg)
{
	struct listing *l = arg;
	jv v = document(unit, 0);
	const char *workspace = am_str(v, "workspace"), *name = am_str(v, "name"), *id = am_str(v, "id");

	(void)key;
	if (workspace == NULL || name == NULL || id == NULL || (l->workspace != NULL && strcmp(l->workspace, workspace) != 0)) {
		jv_free(v);
		return 0;
	}
	if (l->form == 't' && l->count == 0)
		printf("%-19s  %-19s  %-12s  %s\n", "NAME", "WORKSPACE", "PHASE", "CREATED");
	l->count++;
	if (l->form == 'j') {
		l->array = jv_array_append(l->array, v);
		return 0;
	}
	if (l->form == 't')
		return print_table_row(v);
	if (l->form == 'i')
		printf("%s\n", id);
	else if (l->workspace == NULL)
		printf("%s/%s\n", workspace, name);
	else
		printf("%s\n", name);
	jv_free(v);
	return 0;
}

int
ams_cli_list(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "all-workspaces", no_argument, NULL, 'a' },
		{ "names", no_argument, NULL, 'n' },
		{ "ids", no_argument, NULL, 'i' },
		{ "output", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 }
	};
	struct listing l = { .workspace = cli->workspace, .form = 't', .array = jv_invalid() };
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "o:", longopts, NULL)) != -1) {
		switch (c) {
		case 'a': l.workspace = NULL; break;
		case 'n': l.form = 'n'; break;
		case 'i': l.form = 'i'; break;
		case 'o':
			if (strcmp(optarg, "json") != 0 && strcmp(optarg, "table") != 0)
				return ams_cli_usage("--output: must be json or table: %s", am_quotes(optarg));
			l.form = optarg[0];
			break;
		default: return ams_cli_usage("sandbox list: usage");
		}
	}
	if (optind != argc)
		return ams_cli_usage("sandbox list: takes no name: %s", am_quotes(argv[optind]));
	if (l.form == 'j')
		l.array = jv_array();
	if (ams_unit_each(cli->state, AMS_SANDBOXES, list_one, &l) < 0)
		return ams_fail("%s: %s", ams_state_path(), strerror(errno));
	if (l.form == 'j')
		return ams_cli_print(l.array);
	if (l.form == 't' && l.count == 0)
		puts("No sandboxes found.");
	return am_finish(0);
}

/* ---- status, gateway info ---- */

int
ams_cli_status(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = { { "output", required_argument, NULL, 'o' }, { NULL, 0, NULL, 0 } };
	const char *output = "table";
	jv v;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "o:", longopts, NULL)) != -1) {
		if (c != 'o' || (strcmp(optarg, "json") != 0 && strcmp(optarg, "table") != 0))
			return ams_cli_usage("status: --output must be json or table");
		output = optarg;
	}
	(void)cli;
	if (strcmp(output, "table") == 0) {
		printf("Gateway: embedded\nServer: %s\nStatus: Connected\nVersion: %s\n", ams_state_path(), AM_VERSION);
		return am_finish(0);
	}
	v = am_set_str(am_set_str(jv_object(), "gateway", "embedded"), "server", ams_state_path());
	v = am_set_str(v, "status", "connected");
	v = am_set(v, "authentication", am_set_str(am_set_str(jv_object(), "status", "not_required"), "mode", "local"));
	return ams_cli_print(am_set_str(v, "version", AM_VERSION));
}

/* Only what is so: admission stands in the list when gateway.toml names whose fleet decides. */
int
ams_cli_gateway(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = { { "output", required_argument, NULL, 'o' }, { NULL, 0, NULL, 0 } };
	jv v, list, one;
	int c;

	if (argc < 2 || strcmp(argv[1], "info") != 0)
		return ams_cli_usage("gateway: the embedded gateway knows only: gateway info");
	optind = 0;
	while ((c = getopt_long(argc - 1, argv + 1, "o:", longopts, NULL)) != -1)
		if (c != 'o' || strcmp(optarg, "json") != 0)
			return ams_cli_usage("gateway info: --output must be json");
	list = jv_array();
	if (cli->gateway.home != NULL) {
		one = am_set_str(jv_object(), "kind", "gateway-interceptor");
		one = am_set_str(one, "configured_name", "amap-openshell-mounts");
		one = am_set_str(one, "name", "amap-openshell-mounts");
		one = am_set_str(one, "implementation_name", "amap-openshell/interceptor");
		one = am_set_str(one, "implementation_version", AM_VERSION);
		one = am_set_str(one, "home", cli->gateway.home);
		list = jv_array_append(list, one);
	}
	v = am_set_str(am_set_str(jv_object(), "gateway", "embedded"), "server", ams_state_path());
	v = am_set_str(am_set_str(v, "status", "connected"), "version", AM_VERSION);
	one = am_set_str(am_set_str(jv_object(), "driver_name", "bubblewrap"), "driver_version", AM_VERSION);
	one = am_set(am_set_str(jv_object(), "name", "docker"), "capabilities", one);
	v = am_set(v, "compute_drivers", jv_array_append(jv_array(), one));
	return ams_cli_print(am_set(v, "extensions", list));
}
