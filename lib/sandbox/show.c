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

#define MOUNTINFO_MAX (4u << 20)

/* ---- one sandbox as a document ---- */

static jv
strings(const char *const *list, size_t n)
{
	jv out = jv_array();

	for (size_t i = 0; i < n; i++)
		out = jv_array_append(out, jv_string(list[i]));
	return out;
}

/* The policy in force, in the order in which it is read back. */
static jv
policy_json(const struct ams_policy *p)
{
	jv v = am_set(jv_object(), "version", jv_number(1)), fs = am_set(jv_object(), "include_workdir", p->include_workdir ? jv_true() : jv_false());

	if (p->n_ro > 0)
		fs = am_set(fs, "read_only", strings(p->read_only, p->n_ro));
	if (p->n_rw > 0)
		fs = am_set(fs, "read_write", strings(p->read_write, p->n_rw));
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
copy(jv from, const char *key)
{
	jv v = jv_object_get(jv_copy(from), jv_string(key));

	if (jv_is_valid(v))
		return v;
	jv_free(v);
	return jv_null();
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
		v = am_set(v, kept[i], copy(rec, kept[i]));
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
		v = am_set(v, "restart_policy", copy(rec, "restart_policy"));
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
print_document(jv v)
{
	char *text = am_json_text(v, AM_DOCUMENT, NULL);

	fputs(text, stdout);
	free(text);
	jv_free(v);
	return am_finish(0);
}

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
		return print_document(v);
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
	struct listing l = { .workspace = cli->workspace, .form = 't', .array = jv_array() };
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
	if (ams_unit_each(cli->state, AMS_SANDBOXES, list_one, &l) < 0)
		return ams_fail("%s: %s", ams_state_path(), strerror(errno));
	if (l.form == 'j')
		return print_document(l.array);
	if (l.form == 't' && l.count == 0)
		puts("No sandboxes found.");
	jv_free(l.array);
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
	return print_document(am_set_str(v, "version", AM_VERSION));
}

/* Only what is so: admission stands in the list when gateway.toml names whose fleet decides. */
int
ams_cli_gateway(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = { { "output", required_argument, NULL, 'o' }, { NULL, 0, NULL, 0 } };
	jv v, list = jv_array(), one;
	int c;

	if (argc < 2 || strcmp(argv[1], "info") != 0)
		return ams_cli_usage("gateway: the embedded gateway knows only: gateway info");
	optind = 0;
	while ((c = getopt_long(argc - 1, argv + 1, "o:", longopts, NULL)) != -1)
		if (c != 'o' || strcmp(optarg, "json") != 0)
			return ams_cli_usage("gateway info: --output must be json");
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
	return print_document(am_set(v, "extensions", list));
}

/* ---- ps, inspect: what docker would say ---- */

struct search {
	const char *id, *name;		/* label sandbox-id; exact container name */
	char **ids;			/* inspect: wanted, NULL-ended */
	int all, quiet, found;
	jv array;
};

static const char *
unit_name(jv rec)
{
	static char name[128];
	const char *kind = am_str(rec, "kind"), *n = am_str(rec, "name"), *w = am_str(rec, "workspace"), *id = am_str(rec, "id");

	if (kind != NULL && strcmp(kind, "service") == 0)
		snprintf(name, sizeof name, "%s", n != NULL ? n : "");
	else
		snprintf(name, sizeof name, "openshell-%s--%s-%s", w != NULL ? w : "", n != NULL ? n : "", id != NULL ? id : "");
	return name;
}

static int
ps_one(int unit, const char *key, void *arg)
{
	struct search *s = arg;
	jv rec = ams_unit_read(unit, "record.json");
	const char *id = am_str(rec, "id"), *kind = am_str(rec, "kind");
	struct ams_run run;

	(void)key;
	ams_unit_run(unit, &run);
	if (id != NULL && kind != NULL && (s->all || run.main.pid > 0) &&
	    (s->id == NULL || (strcmp(kind, "sandbox") == 0 && strcmp(s->id, id) == 0)) &&
	    (s->name == NULL || strcmp(s->name, unit_name(rec)) == 0))
		puts(s->quiet ? id : unit_name(rec));
	jv_free(rec);
	return 0;
}

static int
each_unit(struct ams_cli *cli, int (*each)(int, const char *, void *), void *arg)
{
	if (ams_unit_each(cli->state, AMS_SANDBOXES, each, arg) < 0 || ams_unit_each(cli->state, AMS_SERVICES, each, arg) < 0)
		return ams_fail("%s: %s", ams_state_path(), strerror(errno));
	return 0;
}

int
ams_cli_ps(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "no-trunc", no_argument, NULL, 't' },
		{ "filter", required_argument, NULL, 'f' },
		{ "format", required_argument, NULL, 'F' },
		{ NULL, 0, NULL, 0 }
	};
	static const char label[] = "label=openshell.ai/sandbox-id=", name[] = "name=^";
	struct search s = { 0 };
	size_t n;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "aqf:", longopts, NULL)) != -1) {
		switch (c) {
		case 'a': s.all = 1; break;
		case 'q': s.quiet = 1; break;
		case 't': break;
		case 'f':
			n = strlen(optarg);
			if (strncmp(optarg, label, sizeof label - 1) == 0) {
				s.id = optarg + sizeof label - 1;
			} else if (strncmp(optarg, name, sizeof name - 1) == 0 && optarg[n - 1] == '$') {
				optarg[n - 1] = '\0';
				s.name = optarg + sizeof name - 1;
			} else {
				return ams_cli_usage("ps: --filter must be %sID or %sNAME$: %s", label, name, am_quotes(optarg));
			}
			break;
		case 'F':
			if (strcmp(optarg, "{{.Names}}") != 0)
				return ams_cli_usage("ps: --format must be {{.Names}}: %s", am_quotes(optarg));
			break;
		default: return ams_cli_usage("ps: usage");
		}
	}
	if (each_unit(cli, ps_one, &s) != 0)
		return 1;
	return am_finish(0);
}

/* The table of the running main process itself, as the kernel has it now. */
static jv
mountinfo(const struct ams_run *run)
{
	char path[64], *text = NULL;
	size_t len = 0;
	jv v = jv_null();
	int fd;

	if (run->main.pid <= 0)
		return v;
	snprintf(path, sizeof path, "/proc/%d/mountinfo", (int)run->main.pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
		text = am_read_fd(fd, MOUNTINFO_MAX, &len);
		close(fd);
	}
	/* read while the same process still lives, or not at all */
	if (text != NULL && ams_proc_alive(&run->main))
		v = jv_string_sized(text, (int)len);
	free(text);
	return v;
}

static jv
container(int unit, jv rec, const struct ams_run *run)
{
	const char *restart = am_str(rec, "restart_policy"), *kind = am_str(rec, "kind");
	jv state = jv_object(), labels = jv_object(), host = jv_object(), v = jv_object();
	int running = run->main.pid > 0;

	(void)unit;
	state = am_set_str(state, "Status", running ? "running" : ams_phase_is(run, "Starting") ? "restarting" : "exited");
	state = am_set(state, "Running", running ? jv_true() : jv_false());
	state = am_set(state, "Pid", jv_number(running ? run->main.pid : 0));
	state = am_set(state, "ExitCode", jv_number(run->exit_code < 0 ? 0 : run->exit_code));
	labels = am_set_str(labels, "openshell.ai/managed-by", "openshell");
	if (kind != NULL && strcmp(kind, "sandbox") == 0) {
		labels = am_set_str(labels, "openshell.ai/sandbox-id", am_str(rec, "id"));
		labels = am_set_str(labels, "openshell.ai/sandbox-name", am_str(rec, "name"));
		labels = am_set_str(labels, "openshell.ai/sandbox-workspace", am_str(rec, "workspace"));
	}
	host = am_set_str(host, "NetworkMode", "none");
	host = am_set(host, "RestartPolicy", am_set_str(jv_object(), "Name",
	    restart == NULL || strcmp(restart, "never") == 0 ? "no" : restart));
	v = am_set_str(v, "Id", am_str(rec, "id"));
	v = am_set(v, "Name", jv_string_fmt("/%s", unit_name(rec)));
	v = am_set(v, "State", state);
	v = am_set(v, "Config", am_set(jv_object(), "Labels", labels));
	v = am_set(v, "HostConfig", host);
	return am_set(v, "Mountinfo", mountinfo(run));
}

static int
inspect_one(int unit, const char *key, void *arg)
{
	struct search *s = arg;
	jv rec = ams_unit_read(unit, "record.json");
	const char *id = am_str(rec, "id");
	struct ams_run run;

	(void)key;
	for (size_t i = 0; id != NULL && s->ids[i] != NULL; i++) {
		if (strcmp(s->ids[i], id) != 0 && strcmp(s->ids[i], unit_name(rec)) != 0)
			continue;
		ams_unit_run(unit, &run);
		s->array = jv_array_append(s->array, container(unit, rec, &run));
		s->ids[i][0] = '\0';		/* found */
	}
	jv_free(rec);
	return 0;
}

int
ams_cli_inspect(struct ams_cli *cli, int argc, char *argv[])
{
	struct search s = { .ids = argv + 1, .array = jv_array() };
	int missing = 0, rc;
	char **wanted = calloc((size_t)argc, sizeof *wanted);

	if (wanted == NULL)
		abort();
	if (argc < 2 || argv[1][0] == '-') {
		free(wanted);
		jv_free(s.array);
		return ams_cli_usage("inspect: needs an id or a name");
	}
	for (int i = 1; i < argc; i++)
		wanted[i - 1] = strdup(argv[i]);
	if (each_unit(cli, inspect_one, &s) != 0)
		return 1;
	rc = print_document(s.array);
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '\0') {
			fprintf(stderr, "Error: No such object: %s\n", am_quotes(wanted[i - 1]));
			missing = 1;
		}
		free(wanted[i - 1]);
	}
	free(wanted);
	return rc != 0 ? rc : missing;
}
