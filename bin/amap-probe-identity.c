/*
 * amap-probe-identity - is each member's sandbox the one that was recorded?
 *
 * Check M1 of spec verify, section 7: what "sandbox get" says, against
 * membership.json. Reads the answers "get" (one a member) and "list". Page:
 * amap-probe-identity(1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "check.h"
#include "diag.h"
#include "members.h"
#include "membership.h"

static const char usage[] =
"usage: amap-probe-identity --members FILE --membership FILE [--list-may-be-cut] [ANSWERS ...]\n"
"\n"
"Prints one check a member: the sandbox is the one that was recorded.\n"
"\n"
"  --members FILE     the fleet's members (amap-lanes)\n"
"  --membership FILE  membership.json\n"
"  --list-may-be-cut  a list of exactly 100 sandboxes proves nothing\n";

static jv
triple(const char *workspace, const char *name, const char *id)
{
	jv t = jv_object();

	t = am_set_str(t, "workspace", workspace);
	t = am_set_str(t, "name", name);
	return am_set_str(t, "id", id);
}

static void
check(struct am_checks *out, const struct am_member *m, const struct am_membership *record, int record_rc,
    jv answers, int may_be_cut)
{
	char claim[80], provision[200], again[200], why[600];
	struct am_check c = { .section = "members", .id = "M1", .subject = m->name, .claim = claim,
	    .provenance = "membership.json" };
	struct am_record *r = record_rc == 0 ? am_membership_find(record, m->name) : NULL;
	const char *name, *workspace, *id;
	jv doc = jv_invalid();
	enum am_presence there;

	snprintf(claim, sizeof claim, "%s: its sandbox is the one that was recorded", m->name);
	snprintf(provision, sizeof provision, "record it: amap-openshell provision %s --apply", m->name);
	snprintf(again, sizeof again, "an ID does not come back: amap-openshell deprovision %s --apply, then"
	    " provision %s --apply", m->name, m->name);
	c.remedy = "make openshell answer, then verify again";
	if (record_rc != 0 || record->absent) {
		c.remedy = "membership.json must be readable; provision the members if nothing was recorded yet";
		am_check_unknown(out, &c, record_rc != 0 ? record->why : "membership.json is absent");
		return;
	}
	if (r == NULL) {
		c.expected = jv_string("a record");
		c.actual = jv_null();
		c.remedy = provision;
		am_check_put(out, &c, AM_FAIL);
		return;
	}
	there = am_sandbox(answers, m->workspace, m->name, may_be_cut, &doc, why);
	if (there == AM_UNSURE) {
		am_check_unknown(out, &c, why);
		return;
	}
	c.expected = triple(r->workspace, r->name, r->id);
	c.remedy = again;
	c.avoid = "do not edit membership.json to make the two agree";
	if (there == AM_ABSENT) {
		c.actual = jv_null();
		am_check_put(out, &c, AM_FAIL);
		return;
	}
	name = am_str(doc, "name");
	workspace = am_str(doc, "workspace");
	id = am_str(doc, "id");
	c.actual = triple(workspace, name, id);
	am_check_put(out, &c, name != NULL && workspace != NULL && id != NULL && am_id_problem(id) == NULL &&
	    strcmp(name, m->name) == 0 && strcmp(workspace, m->workspace) == 0 && strcmp(r->name, name) == 0 &&
	    strcmp(r->workspace, workspace) == 0 && strcmp(r->id, id) == 0 ? AM_PASS : AM_FAIL);
	jv_free(doc);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "members", required_argument, NULL, 'm' },
		{ "membership", required_argument, NULL, 'r' },
		{ "list-may-be-cut", no_argument, NULL, 'l' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *members_path = NULL, *record_path = NULL;
	struct am_checks out = { .fp = stdout };
	struct am_members members;
	struct am_membership record;
	int ch, record_rc, may_be_cut = 0;
	jv answers;

	am_prog = "amap-probe-identity";
	while ((ch = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (ch) {
		case 'm': members_path = optarg; break;
		case 'r': record_path = optarg; break;
		case 'l': may_be_cut = 1; break;
		default: am_std_option(ch, usage);
		}
	}
	if (members_path == NULL || record_path == NULL)
		am_usage(usage);
	answers = am_answers_read(argv + optind, argc - optind);
	if (!jv_is_valid(answers))
		am_diex("%s", am_json_why(answers));
	record_rc = am_membership_read(&record, record_path);
	if (am_members_read(&members, members_path) != 0) {
		struct am_check c = { .section = "members", .id = "M1", .claim = "each member is what was recorded",
		    .remedy = "fleet.json must be sound: amap-fleet says what is wrong with it" };

		am_check_unknown(&out, &c, members.why);
	}
	for (size_t i = 0; i < members.n; i++)
		check(&out, &members.v[i], &record, record_rc, answers, may_be_cut);
	am_members_free(&members);
	am_membership_free(&record);
	jv_free(answers);
	return am_finish(am_check_end(&out));
}
