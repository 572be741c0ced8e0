/*
 * amap-probe-policy - does the policy in force say what was rendered, and no more?
 *
 * Checks M2 and M3 of spec verify, section 7, from the answer "policy"
 * ("sandbox get NAME --policy-only"), one a member. Page:
 * amap-probe-policy(1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "check.h"
#include "diag.h"
#include "members.h"
#include "mounts.h"
#include "path.h"
#include "yamlread.h"

static const char usage[] =
"usage: amap-probe-policy --members FILE [--profile FILE] [ANSWERS ...]\n"
"\n"
"Prints two checks a member: its policy lists each mount on the rendered side;\n"
"it opens no way out but the provider's.\n"
"\n"
"  --members FILE  the fleet's members (amap-lanes)\n"
"  --profile FILE  the provider profile whose hosts are allowed (default: none)\n";

/* Owns: the hosts of the profile's endpoints; invalid with a message. */
static jv
profile_hosts(const char *path)
{
	jv hosts = jv_array(), doc, endpoints;

	if (path == NULL)
		return hosts;
	doc = am_json_read_regular(path, 0, AM_JSON_MAX);
	endpoints = am_get(doc, "endpoints", JV_KIND_ARRAY);
	if (!jv_is_valid(doc) || !jv_is_valid(endpoints)) {
		jv why = jv_string_fmt("%s: %s", path, jv_is_valid(doc) ? "it has no endpoints" : am_json_why(jv_copy(doc)));

		jv_free(doc);
		jv_free(endpoints);
		jv_free(hosts);
		return jv_invalid_with_msg(why);
	}
	jv_array_foreach(endpoints, i, e) {
		const char *host = am_str(e, "host");

		if (host != NULL)
			hosts = jv_array_append(hosts, jv_string(host));
		jv_free(e);
	}
	jv_free(endpoints);
	jv_free(doc);
	return hosts;
}

static int
lists(const struct am_yaml *list, const char *path)
{
	for (const struct am_yaml *n = list->first; n != NULL; n = n->next)
		if (n->text != NULL && strcmp(n->text, path) == 0)
			return 1;
	return 0;
}

/* A writable path above a read-only one takes its effect away: Landlock only adds (spec bugs, B37). */
static const char *
covering(const struct am_yaml *writable, const char *path)
{
	for (const struct am_yaml *n = writable->first; n != NULL; n = n->next)
		if (n->text != NULL && n->text[0] == '/' && strcmp(n->text, path) != 0 &&
		    (n->text[1] == '\0' || am_path_under(path, n->text)))
			return n->text;
	return NULL;
}

static void
check_sides(struct am_checks *out, const struct am_member *m, const struct am_yaml *policy, const char *why)
{
	char claim[80], remedy[160];
	struct am_check c = { .section = "members", .id = "M2", .subject = m->name, .claim = claim,
	    .provenance = "the rendered policy", .remedy = "make \"sandbox get --policy-only\" work, then verify again" };
	const struct am_yaml *fs = am_yaml_get(policy, "filesystem_policy"), *ro = am_yaml_get(fs, "read_only");
	const struct am_yaml *rw = am_yaml_get(fs, "read_write");

	snprintf(claim, sizeof claim, "%s: its policy lists each mount on the rendered side", m->name);
	if (why == NULL && (ro == NULL || rw == NULL || ro->kind != AM_YAML_LIST || rw->kind != AM_YAML_LIST))
		why = "the policy has no list read_only or no list read_write";
	if (why != NULL) {
		am_check_unknown(out, &c, why);
		return;
	}
	snprintf(remedy, sizeof remedy, "make it anew: amap-openshell deprovision %s --apply, then provision %s --apply",
	    m->name, m->name);
	c.remedy = remedy;
	c.avoid = "do not update the file system policy of a live sandbox: it can only grow";
	c.expected = jv_object();
	c.actual = jv_object();
	for (int i = 0; i < AM_ROWS; i++) {
		const char *target = m->rows[i].target, *above = covering(rw, target);
		int is_ro = lists(ro, target), is_rw = lists(rw, target);
		jv side = jv_string(is_ro && is_rw ? "both" : is_ro ? "read_only" : is_rw ? "read_write" : "neither");

		if (above != NULL && m->rows[i].read_only)
			side = jv_string_append_str(jv_string_append_str(side, ", below the writable "), above);
		c.expected = am_set_str(c.expected, target, m->rows[i].read_only ? "read_only" : "read_write");
		c.actual = am_set(c.actual, target, side);
	}
	am_check_equal(out, &c);
}

/* Every host in the tree that is not allowed, and every endpoint that names none. */
static jv
strange_hosts(jv found, const struct am_yaml *node, jv hosts)
{
	for (const struct am_yaml *n = node->first; n != NULL; n = n->next) {
		if (n->key != NULL && strcmp(n->key, "host") == 0 && n->text != NULL) {
			int allowed = 0;

			jv_array_foreach(hosts, i, h) {
				allowed |= strcmp(jv_string_value(h), n->text) == 0;
				jv_free(h);
			}
			if (!allowed)
				found = jv_array_append(found, jv_string_fmt("host %s", n->text));
		}
		if (n->key != NULL && strcmp(n->key, "endpoints") == 0)
			for (const struct am_yaml *e = n->first; e != NULL; e = e->next)
				if (am_yaml_get(e, "host") == NULL)
					found = jv_array_append(found, jv_string("an endpoint without a host"));
		found = strange_hosts(found, n, hosts);
	}
	return found;
}

/* What an embedded sandbox's own process has of the network; NULL, or why that cannot be told. */
static const char *
interfaces(jv *found, jv answers, const char *name)
{
	const char *why = NULL;
	struct am_asked a;
	char seen[200];
	jv entries;

	if (!am_asked(answers, "inspect", name, &a))
		return NULL;		/* of docker and of what does not run only the policy can be read */
	entries = am_json_parse(a.out, strlen(a.out));
	if (jv_get_kind(entries) == JV_KIND_ARRAY) {
		jv_array_foreach(entries, i, e) {
			const char *names = am_is_embedded(e) ? am_networks(e, seen, sizeof seen) : "none";

			if (names == NULL)
				why = "the network of its process cannot be looked at";
			else if (strcmp(names, "none") != 0)
				*found = jv_array_append(*found, jv_string_fmt("interface %s", names));
			jv_free(e);
		}
	}
	jv_free(entries);
	return why;
}

static void
check_egress(struct am_checks *out, const struct am_member *m, const struct am_yaml *policy, const char *why, jv hosts,
    jv answers)
{
	static const char *const known[] = { "version", "filesystem_policy", "landlock", "process", "network_policies" };
	char claim[80];
	struct am_check c = { .section = "members", .id = "M3", .subject = m->name, .claim = claim,
	    .provenance = "the provider profile", .remedy = "make \"sandbox get --policy-only\" work, then verify again" };

	snprintf(claim, sizeof claim, "%s: it has no way out but its provider's", m->name);
	if (why == NULL && policy->kind != AM_YAML_MAP)
		why = "the policy is no map";
	if (why == NULL && !jv_is_valid(hosts)) {
		c.remedy = "the provider profile must be readable";
		why = am_json_why(jv_copy(hosts));
	}
	c.actual = jv_array();
	if (why == NULL)
		why = interfaces(&c.actual, answers, m->name);
	if (why != NULL) {
		am_check_unknown(out, &c, why);
		return;
	}
	c.remedy = "find out who gave the sandbox the named keys, hosts or interfaces, and take them away";
	c.expected = jv_array();
	for (const struct am_yaml *n = policy->first; n != NULL; n = n->next) {
		int ours = 0;

		for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
			ours |= strcmp(known[i], n->key) == 0;
		if (!ours)
			c.actual = jv_array_append(c.actual, jv_string_fmt("key %s", n->key));
	}
	c.actual = strange_hosts(c.actual, policy, hosts);
	am_check_equal(out, &c);
}

static void
check(struct am_checks *out, const struct am_member *m, jv answers, jv hosts)
{
	struct am_yaml *policy = NULL;
	const char *why = NULL;
	struct am_asked a;
	char fault[256];

	if (!am_asked(answers, "policy", m->name, &a))
		why = a.why;
	else if ((policy = am_yaml_parse(a.out, strlen(a.out), fault)) == NULL)
		why = fault;
	check_sides(out, m, policy, why);
	check_egress(out, m, policy, why, hosts, answers);
	if (policy != NULL)
		am_yaml_free(policy);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "members", required_argument, NULL, 'm' },
		{ "profile", required_argument, NULL, 'p' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *members_path = NULL, *profile = NULL;
	struct am_checks out = { .fp = stdout };
	struct am_members members;
	jv answers, hosts;
	int ch;

	am_prog = "amap-probe-policy";
	while ((ch = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (ch) {
		case 'm': members_path = optarg; break;
		case 'p': profile = optarg; break;
		default: am_std_option(ch, usage);
		}
	}
	if (members_path == NULL)
		am_usage(usage);
	answers = am_answers_read(argv + optind, argc - optind);
	if (!jv_is_valid(answers))
		am_diex("%s", am_json_why(answers));
	hosts = profile_hosts(profile);
	am_members_read(&members, members_path);	/* not known: amap-probe-identity says so, once */
	for (size_t i = 0; i < members.n; i++)
		check(&out, &members.v[i], answers, hosts);
	am_members_free(&members);
	jv_free(hosts);
	jv_free(answers);
	return am_finish(am_check_end(&out));
}
