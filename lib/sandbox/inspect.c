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
#include "say.h"

#define MOUNTINFO_MAX (4u << 20)

/* What docker ps and docker inspect would say of the same sandboxes. */

struct search {
	const char *id, *name;		/* label sandbox-id; exact container name */
	char **ids;			/* inspect: wanted, NULL-ended */
	char *found;			/* which of them, each a byte */
	int all, quiet;
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
		s->found[i] = 1;
	}
	jv_free(rec);
	return 0;
}

int
ams_cli_inspect(struct ams_cli *cli, int argc, char *argv[])
{
	struct search s = { .array = jv_array() };
	int missing = 0, rc, first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;

	if (argc <= first || (first == 1 && argv[1][0] == '-')) {
		jv_free(s.array);
		return ams_cli_usage("inspect: needs an id or a name");
	}
	s.ids = argv + first;
	if ((s.found = calloc((size_t)argc, 1)) == NULL)
		abort();
	if (each_unit(cli, inspect_one, &s) != 0)
		return 1;
	rc = ams_cli_print(s.array);
	for (int i = 0; s.ids[i] != NULL; i++) {
		if (!s.found[i]) {
			fprintf(stderr, "Error: No such object: %s\n", am_quotes(s.ids[i]));
			missing = 1;
		}
	}
	free(s.found);
	return rc != 0 ? rc : missing;
}
