/* amap-fleet - check a fleet policy and print the plan that follows from it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "fleet.h"
#include "membership.h"
#include "resolve.h"

static const char usage[] =
    "usage: amap-fleet [--membership FILE] [--no-follow] [--explain FROM TO] [FILE]\n"
    "Checks the fleet policy FILE (default: standard input) and prints the plan.\n"
    "  --membership FILE  resolve over the members that FILE records; the whole fleet must be there\n"
    "  --no-follow        refuse FILE when it is a symbolic link\n"
    "  --explain FROM TO  no plan: say on which lane FROM may reach TO, and which key decides it\n";

static void
print_names(const struct am_names *names, const struct am_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		printf("%s\"%s\"", i == 0 ? "" : ",", names->v[set->v[i]]);
}

static void
print_members(const struct am_fleet *f, const struct am_reach *r)
{
	for (size_t i = 0; i < r->names->n; i++) {
		const struct am_links *l = &r->links[i];
		const char *name = r->names->v[i];

		printf("%s{\"name\":\"%s\",\"address\":\"%s@%s\",\"peers\":[", i == 0 ? "" : ",", name, name,
		    f->domain);
		if (l->any)
			printf("\"" AM_ALLOW_ANY "\"");
		print_names(r->names, &l->peers);
		printf("],\"senders\":[");
		if (r->all)
			printf("\"ALL\"");
		print_names(r->names, &l->senders);
		printf("]}");
	}
}

static void
print_warnings(const struct am_fleet *f, const struct am_reach *r)
{
	struct am_pairs pairs = { 0 };
	const struct am_names *names = r->names;
	const char *sep = "";

	am_one_sided(r, &pairs);
	for (size_t i = 0; i < pairs.n; i++, sep = ",")
		printf("%s{\"kind\":\"one-sided\",\"from\":\"%s\",\"to\":\"%s\"}", sep, names->v[pairs.v[i].from],
		    names->v[pairs.v[i].to]);
	for (size_t i = 0; i < names->n; i++)
		if (am_names_find(&f->members, names->v[i]) < 0) {
			printf("%s{\"kind\":\"not-in-policy\",\"name\":\"%s\"}", sep, names->v[i]);
			sep = ",";
		}
	free(pairs.v);
}

/* Names and domains hold nothing that JSON would escape. */
static void
print_plan(const struct am_fleet *f, const struct am_reach *r)
{
	struct am_pairs both = { 0 };

	printf("{\"workspace\":\"%s\",\"domain\":\"%s\",\"router\":\"amap.router@%s\",\"members\":[", f->workspace,
	    f->domain, f->domain);
	print_members(f, r);
	printf("],%s\"warnings\":[", r->all ? "\"task_graph\":\"all\"," : "");
	print_warnings(f, r);
	printf("],\"overlaps\":[");
	am_both_lanes(r, &both);
	for (size_t i = 0; i < both.n; i++)
		printf("%s[\"%s\",\"%s\"]", i == 0 ? "" : ",", r->names->v[both.v[i].from],
		    r->names->v[both.v[i].to]);
	printf("]}\n");
	free(both.v);
}

static int
has_key(const struct am_fleet *f, const char *member, const char *name)
{
	jv o = am_get(f->policy, member, JV_KIND_OBJECT);
	int found = am_has(o, name);

	jv_free(o);
	return found;
}

/* 1 when task_graph, before task_deny, lets one member task the other. */
static int
is_granted(const struct am_fleet *f, const char *from, const char *to)
{
	jv graph = jv_object_get(jv_copy(f->policy), jv_string("task_graph"));
	jv list = am_get(graph, to, JV_KIND_ARRAY);
	int granted = jv_get_kind(graph) == JV_KIND_STRING, n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

	for (int i = 0; i < n && !granted; i++)
		granted = jv_equal(jv_array_get(jv_copy(list), i), jv_string(from));
	jv_free(list);
	jv_free(graph);
	return granted;
}

/* One half of a mail edge: what a's list says of b, and where that list stands. */
static void
explain_list(const struct am_fleet *f, const char *a, const char *b, int lists)
{
	if (has_key(f, "peers", a))
		printf("peers.%s", a);
	else
		printf("default_peers of %s", a);
	printf(" %s %s", lists ? "lists" : "does not list", b);
}

static int
explain(const struct am_fleet *f, const struct am_reach *r, const char *from, const char *to)
{
	long a = am_names_find(r->names, from), b = am_names_find(r->names, to);
	int out, in, task, denied;

	if (a < 0 || b < 0)
		am_diex("%s: the policy names no such member", am_quotes(a < 0 ? from : to));
	if (a == b) {
		printf("%s -> %s: mail no, delegation no (a member does not reach itself)\n", from, to);
		return AM_PROBLEM;
	}
	out = am_lists(r, (unsigned)a, (unsigned)b);
	in = am_lists(r, (unsigned)b, (unsigned)a);
	task = am_tasks(r, (unsigned)a, (unsigned)b);
	printf("%s -> %s: mail %s (", from, to, out && in ? "yes" : "no");
	explain_list(f, from, to, out);
	printf(", ");
	explain_list(f, to, from, in);
	denied = !task && is_granted(f, from, to);
	printf("); delegation %s (task_%s", task ? "yes" : "no", denied ? "deny" : "graph");
	if (!denied && has_key(f, "task_graph", to))
		printf(".%s", to);
	printf(")\n");
	return (out && in) || task ? AM_OK : AM_PROBLEM;
}

/* The recorded names; every member of the fleet must be among them. */
static int
recorded(const struct am_fleet *f, struct am_membership *m, const char *path, struct am_names *names)
{
	int rc = am_membership_read(m, path);

	if (rc != 0 || m->absent) {
		am_warnx("%s: %s", path, m->why);
		return rc == -2 ? AM_TROUBLE : AM_PROBLEM;
	}
	if (m->n > 0 && strcmp(m->v[0].workspace, f->workspace) != 0) {
		am_warnx("%s: its members are in workspace \"%s\", the policy's is \"%s\"", path, m->v[0].workspace,
		    f->workspace);
		return AM_PROBLEM;
	}
	rc = AM_OK;
	for (size_t i = 0; i < f->members.n; i++)
		if (am_membership_find(m, f->members.v[i]) == NULL) {
			am_warnx("%s: %s is in the policy and not recorded; provision it first", path,
			    f->members.v[i]);
			rc = AM_PROBLEM;
		}
	am_membership_names(m, names);
	return rc;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "membership", required_argument, NULL, 'm' },
		{ "no-follow", no_argument, NULL, 'P' },
		{ "explain", no_argument, NULL, 'e' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *path = NULL, *membership = NULL;
	int c, rc, nofollow = 0, explaining = 0;
	struct am_membership m = { .doc = jv_invalid() };
	struct am_names names = { 0 };
	struct am_fleet f;
	struct am_reach r;

	am_prog = "amap-fleet";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'm': membership = optarg; break;
		case 'P': nofollow = 1; break;
		case 'e': explaining = 1; break;
		default: am_std_option(c, usage);
		}
	}
	argc -= optind;
	argv += optind;
	if (argc < 2 * explaining || argc > 2 * explaining + 1)
		am_usage(usage);
	if (argc > 2 * explaining)
		path = argv[argc - 1];
	if ((rc = am_fleet_read(&f, path, nofollow)) != 0) {
		am_warnx("%s: %s", path == NULL ? "<stdin>" : path, f.why);
		rc = rc == -2 ? AM_TROUBLE : AM_PROBLEM;
	} else if (membership != NULL) {
		rc = recorded(&f, &m, membership, &names);
	}
	if (rc == AM_OK) {
		am_resolve(&r, &f, membership == NULL ? &f.members : &names);
		if (explaining)
			rc = explain(&f, &r, argv[0], argv[1]);
		else
			print_plan(&f, &r);
		am_reach_free(&r);
	}
	am_names_free(&names);
	am_membership_free(&m);
	am_fleet_free(&f);
	return am_finish(rc);
}
