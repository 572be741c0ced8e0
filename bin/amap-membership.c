/* amap-membership - read membership.json, ask it, and print it changed */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "membership.h"

static const char usage[] =
    "usage: amap-membership check|list|selected [FILE]\n"
    "       amap-membership id NAME [FILE]\n"
    "       amap-membership record --workspace W --name NAME --id ID [FILE]\n"
    "       amap-membership remove NAME [FILE]\n"
    "       amap-membership pending|stray --fleet POLICY [FILE]\n"
    "FILE is membership.json (default: standard input).\n"
    "  check     nothing: is it sound, and is it there\n"
    "  list      one line a member: its name and its ID\n"
    "  selected  selected.json for the recorded members\n"
    "  id        the ID of one member\n"
    "  record    the document with this member; a FILE that is absent is a new one\n"
    "  remove    the document without this member\n"
    "  pending   the members of the policy that are not recorded\n"
    "  stray     the recorded names that the policy does not have\n";

struct job {
	const char *path;		/* as it stands in messages */
	struct am_membership m;
	const char *workspace, *name, *id, *fleet;
};

/* Consumes doc. */
static void
print(jv doc)
{
	char *text = am_json_text(doc, AM_DOCUMENT, NULL);

	fputs(text, stdout);
	free(text);
	jv_free(doc);
}

/* membership.json without the member whose name is given, and with one more record (NULL: none), by name. */
static void
print_membership(const struct am_membership *m, const char *without, const struct am_record *more)
{
	jv members = jv_array(), entry;
	const struct am_record *r;

	for (size_t i = 0; i < m->n || more != NULL; ) {
		if (more != NULL && (i == m->n || strcmp(more->name, m->v[i].name) < 0)) {
			r = more;
			more = NULL;
		} else {
			r = &m->v[i++];
		}
		if (without != NULL && strcmp(r->name, without) == 0)
			continue;
		entry = am_set_str(jv_object(), "workspace", r->workspace);
		entry = am_set_str(entry, "name", r->name);
		members = jv_array_append(members, am_set_str(entry, "id", r->id));
	}
	print(am_set(am_set(jv_object(), "version", jv_number(1)), "members", members));
}

static int
check(struct job *j)
{
	(void)j;
	return AM_OK;
}

static int
list(struct job *j)
{
	for (size_t i = 0; i < j->m.n; i++)
		printf("%s %s\n", j->m.v[i].name, j->m.v[i].id);
	return AM_OK;
}

static int
selected(struct job *j)
{
	jv slugs = jv_array(), doc = am_set(jv_object(), "schema", jv_number(1));

	for (size_t i = 0; i < j->m.n; i++)
		slugs = jv_array_append(slugs, am_set_str(jv_object(), "slug", j->m.v[i].name));
	print(am_set(am_set(doc, "selected", slugs), "not_selected", jv_array()));
	return AM_OK;
}

static int
not_recorded(const struct job *j)
{
	am_warnx("%s: %s is not recorded", j->path, am_quotes(j->name));
	return AM_PROBLEM;
}

static int
id(struct job *j)
{
	const struct am_record *r = am_membership_find(&j->m, j->name);

	if (r == NULL)
		return not_recorded(j);
	printf("%s\n", r->id);
	return AM_OK;
}

static int
record(struct job *j)
{
	const struct am_record more = { j->workspace, j->name, j->id }, *r = am_membership_find(&j->m, j->name);
	const char *problem;

	if ((problem = am_name_problem(j->workspace)) != NULL)
		am_diex("--workspace \"%s\": %s", am_quotes(j->workspace), problem);
	if ((problem = am_name_problem(j->name)) != NULL)
		am_diex("--name \"%s\": %s", am_quotes(j->name), problem);
	if ((problem = am_id_problem(j->id)) != NULL)
		am_diex("--id \"%s\": %s", am_quotes(j->id), problem);
	if (j->m.n > 0 && strcmp(j->m.v[0].workspace, j->workspace) != 0) {
		am_warnx("%s: its members are in workspace \"%s\", not in \"%s\"", j->path, j->m.v[0].workspace,
		    j->workspace);
		return AM_PROBLEM;
	}
	if (r != NULL && strcmp(r->id, j->id) != 0) {
		am_warnx("%s: %s is recorded with the ID %s, not %s; deprovision it first", j->path, j->name,
		    am_quotes(r->id), am_quotes(j->id));
		return AM_PROBLEM;
	}
	for (size_t i = 0; i < j->m.n; i++)
		if (strcmp(j->m.v[i].id, j->id) == 0 && strcmp(j->m.v[i].name, j->name) != 0) {
			am_warnx("%s: the ID %s belongs to %s already", j->path, am_quotes(j->id), j->m.v[i].name);
			return AM_PROBLEM;
		}
	print_membership(&j->m, NULL, r == NULL ? &more : NULL);
	return AM_OK;
}

static int
remove_(struct job *j)
{
	if (am_membership_find(&j->m, j->name) == NULL)
		return not_recorded(j);
	print_membership(&j->m, j->name, NULL);
	return AM_OK;
}

/* What stands in the first and not in the second: one a line. The status says whether there is anything. */
static int
difference(const struct am_names *of, const struct am_names *from)
{
	int rc = AM_OK;

	for (size_t i = 0; i < of->n; i++)
		if (am_names_find(from, of->v[i]) < 0) {
			printf("%s\n", of->v[i]);
			rc = AM_PROBLEM;
		}
	return rc;
}

static int
against_fleet(struct job *j, int want_pending)
{
	struct am_names names;
	struct am_fleet f;
	int rc = am_fleet_read(&f, j->fleet, 0);

	if (rc != 0)
		am_diex("%s: %s", j->fleet, f.why);
	am_membership_names(&j->m, &names);
	rc = want_pending ? difference(&f.members, &names) : difference(&names, &f.members);
	am_names_free(&names);
	am_fleet_free(&f);
	return rc;
}

static int
pending(struct job *j)
{
	return against_fleet(j, 1);
}

static int
stray(struct job *j)
{
	return against_fleet(j, 0);
}

/* What each command takes, and what an absent FILE is to it. */
static const struct command {
	const char *word;
	int (*run)(struct job *j);
	int name;		/* an operand NAME */
	int triple, fleet;	/* the options it needs */
	int absent;		/* an absent FILE reads as one without members */
} commands[] = {
	{ "check", check, 0, 0, 0, 0 },
	{ "list", list, 0, 0, 0, 0 },
	{ "selected", selected, 0, 0, 0, 0 },
	{ "id", id, 1, 0, 0, 0 },
	{ "record", record, 0, 1, 0, 1 },
	{ "remove", remove_, 1, 0, 0, 0 },
	{ "pending", pending, 0, 0, 1, 1 },
	{ "stray", stray, 0, 0, 1, 1 },
};

static int
run(const struct command *cmd, struct job *j, const char *path)
{
	int rc = am_membership_read(&j->m, path);

	j->path = path == NULL ? "<stdin>" : path;
	if (rc != 0 || (j->m.absent && !cmd->absent)) {
		am_warnx("%s: %s", j->path, j->m.why);
		rc = rc == -2 ? AM_TROUBLE : AM_PROBLEM;
	} else {
		rc = cmd->run(j);
	}
	am_membership_free(&j->m);
	return rc;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "workspace", required_argument, NULL, 'w' },
		{ "name", required_argument, NULL, 'n' },
		{ "id", required_argument, NULL, 'i' },
		{ "fleet", required_argument, NULL, 'f' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct job j = { 0 };
	const struct command *cmd = NULL;
	int c, given;

	am_prog = "amap-membership";
	if (argc > 1 && argv[1][0] != '-') {
		for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
			if (strcmp(argv[1], commands[i].word) == 0)
				cmd = &commands[i];
		if (cmd == NULL)
			am_usage(usage);
		argc--;
		argv++;
	}
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'w': j.workspace = optarg; break;
		case 'n': j.name = optarg; break;
		case 'i': j.id = optarg; break;
		case 'f': j.fleet = optarg; break;
		default: am_std_option(c, usage);
		}
	}
	argc -= optind;
	argv += optind;
	given = (j.workspace != NULL) + (j.name != NULL) + (j.id != NULL);
	if (cmd == NULL || given != (cmd->triple ? 3 : 0) ||
	    cmd->fleet != (j.fleet != NULL) || argc < cmd->name || argc > cmd->name + 1)
		am_usage(usage);
	if (cmd->name)
		j.name = argv[0];
	return am_finish(run(cmd, &j, argv[cmd->name]));
}
