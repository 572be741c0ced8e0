/*
 * amap-probe-mounts - is exactly what was rendered mounted in each member?
 *
 * Checks M4 and M5 of spec verify, section 7. Reads the answers "ps" and
 * "inspect" (one each a member), or a docker inspect array as it is, whose
 * entries find their member by their labels. Page: amap-probe-mounts(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "check.h"
#include "diag.h"
#include "file.h"
#include "members.h"
#include "mounts.h"

#define LABEL "openshell.ai/"
#define INPUT_MAX (256u << 20)

static const char usage[] =
"usage: amap-probe-mounts --members FILE [FILE ...]\n"
"\n"
"Reads answers (amap-answers(5)) or a docker inspect array, and prints two\n"
"checks a member: its mounts are the rendered ones; it shares no directory.\n"
"\n"
"  --members FILE  the fleet's members (amap-lanes)\n";

/* What is known of one member. */
struct seen {
	jv rows, shared;	/* invalid: not known */
	char why[700];
};

static const char *
label(jv entry, const char *key)
{
	jv config = am_get(entry, "Config", JV_KIND_OBJECT), labels = am_get(config, "Labels", JV_KIND_OBJECT);
	const char *value = am_str(labels, key);

	jv_free(config);
	jv_free(labels);	/* the entry keeps its own reference */
	return value;
}

/* Owns: a member's entries of a whole array. */
static jv
labelled(jv all, const struct am_member *m)
{
	jv found = jv_array();

	jv_array_foreach(all, i, e) {
		const char *name = label(e, LABEL "sandbox-name"), *workspace = label(e, LABEL "sandbox-workspace");

		if (name != NULL && strcmp(name, m->name) == 0 &&
		    (workspace == NULL || strcmp(workspace, m->workspace) == 0))
			found = jv_array_append(found, jv_copy(e));
		jv_free(e);
	}
	return found;
}

/* Owns: a member's entries; invalid with why set when they cannot be had. */
static jv
entries_of(jv input, const struct am_member *m, char *why, size_t size)
{
	struct am_asked a;
	jv found;

	if (jv_get_kind(input) == JV_KIND_ARRAY) {
		found = labelled(input, m);
	} else if (!am_asked(input, "ps", m->name, &a)) {
		snprintf(why, size, "%s", a.why);
		return jv_invalid();
	} else if (a.out[strspn(a.out, " \t\r\n")] == '\0') {
		found = jv_array();
	} else if (!am_asked(input, "inspect", m->name, &a)) {
		snprintf(why, size, "%s", a.why);
		return jv_invalid();
	} else {
		found = am_json_parse(a.out, strlen(a.out));
		if (jv_get_kind(found) != JV_KIND_ARRAY) {
			snprintf(why, size, "docker inspect printed no JSON array%s%s", jv_is_valid(found) ? "" : ": ",
			    jv_is_valid(found) ? "" : am_json_why(jv_copy(found)));
			jv_free(found);
			return jv_invalid();
		}
	}
	if (jv_array_length(jv_copy(found)) > 0)
		return found;
	jv_free(found);
	snprintf(why, size, "no container of it runs");
	return jv_invalid();
}

/* Adds one container's map to another's; a target in both cannot be told apart. */
static int
merge(jv *into, jv from, char *why, size_t size)
{
	int rc = 0;

	jv_object_foreach(from, k, v) {
		if (jv_string_value(k)[0] == '/' && am_has(*into, jv_string_value(k))) {
			snprintf(why, size, "two of its containers have a mount at %s", am_quotes(jv_string_value(k)));
			rc = -1;
		}
		*into = jv_object_set(*into, k, v);
	}
	return rc;
}

static void
look(struct seen *s, jv input, const struct am_member *m)
{
	jv entries = entries_of(input, m, s->why, sizeof s->why), wanted = jv_object();
	int rc = jv_is_valid(entries) ? 0 : -1;

	s->rows = jv_object();
	s->shared = jv_object();
	for (int i = 0; i < AM_ROWS; i++)
		wanted = am_set_str(wanted, m->rows[i].target, m->rows[i].source);
	for (int i = 0; rc == 0 && i < jv_array_length(jv_copy(entries)); i++) {
		jv entry = jv_array_get(jv_copy(entries), i);
		struct am_mounts found;

		if ((rc = am_mounts_read(&found, entry, wanted, 1)) != 0)
			snprintf(s->why, sizeof s->why, "%s", found.why);
		else if ((rc = merge(&s->rows, found.rows, s->why, sizeof s->why)) == 0)
			rc = merge(&s->shared, found.shared, s->why, sizeof s->why);
		am_mounts_free(&found);
		jv_free(entry);
	}
	jv_free(wanted);
	jv_free(entries);
	if (rc != 0) {
		jv_free(s->rows);
		jv_free(s->shared);
		s->rows = s->shared = jv_invalid();
	}
}

/* In the group on paper and not in this process: the account must log in again (spec bugs, B31). */
static int
group_came_later(void)
{
	struct group *g = getgrnam("docker");
	struct passwd *user = getpwuid(getuid());
	gid_t mine[256];
	int n = getgroups(256, mine), listed = 0;

	if (g == NULL || user == NULL)
		return 0;
	for (int i = 0; i < n; i++)
		if (mine[i] == g->gr_gid)
			return 0;
	for (char **who = g->gr_mem; *who != NULL; who++)
		listed |= strcmp(*who, user->pw_name) == 0;
	return listed;
}

static const char *
remedy_for(const char *why)
{
	if (strstr(why, "ermission denied") == NULL || strstr(why, "docker") == NULL)
		return "make docker answer and the sandbox run, then verify again";
	if (group_came_later())
		return "this login is older than its membership of the group docker: log in again";
	return "this process may not talk to docker: the account must be in the group docker";
}

static void
check_mounts(struct am_checks *out, const struct am_member *m, const struct seen *s)
{
	char claim[80], remedy[160];
	struct am_check c = { .section = "members", .id = "M4", .subject = m->name, .claim = claim,
	    .provenance = "the rendered lane rows", .remedy = remedy,
	    .avoid = "do not change the mounts of a running container" };

	snprintf(claim, sizeof claim, "%s: exactly the rendered directories are mounted", m->name);
	if (!jv_is_valid(s->rows)) {
		c.remedy = remedy_for(s->why);
		c.avoid = NULL;
		am_check_unknown(out, &c, s->why);
		return;
	}
	snprintf(remedy, sizeof remedy, "make it anew: amap-openshell deprovision %s --apply, then provision %s --apply",
	    m->name, m->name);
	c.expected = jv_object();
	for (int i = 0; i < AM_ROWS; i++)
		c.expected = am_set(c.expected, m->rows[i].target,
		    am_mount_row(m->rows[i].source, !m->rows[i].read_only));
	c.actual = jv_copy(s->rows);
	am_check_equal(out, &c);
}

/* Owns: where-from -> names of the members that have it, the common payload and roster left out. */
static jv
owners(const struct am_members *members, const struct seen *seen)
{
	jv all = jv_object();

	for (size_t i = 0; i < members->n; i++) {
		const struct am_member *m = &members->v[i];
		jv mine = jv_object();

		jv_object_foreach(seen[i].shared, target, source) {
			int common = 0;

			for (int k = 0; k < AM_ROWS; k++)
				common |= strcmp(m->rows[k].target, jv_string_value(target)) == 0 &&
				    (strcmp(m->rows[k].role, "payload") == 0 || strcmp(m->rows[k].role, "roster") == 0);
			if (common)
				jv_free(source);
			else
				mine = jv_object_set(mine, source, jv_true());
			jv_free(target);
		}
		jv_object_foreach(mine, source, yes) {
			jv names = jv_object_get(jv_copy(all), jv_copy(source));

			if (!jv_is_valid(names)) {
				jv_free(names);
				names = jv_array();
			}
			all = jv_object_set(all, source, jv_array_append(names, jv_string(m->name)));
			jv_free(yes);
		}
		jv_free(mine);
	}
	return all;
}

static void
check_shared(struct am_checks *out, const struct am_member *m, jv all, const char *doubt)
{
	char claim[80];
	struct am_check c = { .section = "members", .id = "M5", .subject = m->name, .claim = claim,
	    .provenance = "the rule that a lane has one member",
	    .remedy = "make the named members anew: deprovision and provision each" };

	snprintf(claim, sizeof claim, "%s: it shares no directory with another member", m->name);
	if (doubt != NULL) {
		c.remedy = remedy_for(doubt);
		am_check_unknown(out, &c, doubt);
		return;
	}
	c.expected = jv_array();
	c.actual = jv_array();
	jv_object_foreach(all, source, names) {
		int mine = 0, n = jv_array_length(jv_copy(names));

		jv_array_foreach(names, i, name) {
			mine |= strcmp(jv_string_value(name), m->name) == 0;
			jv_free(name);
		}
		if (mine && n > 1) {
			jv row = jv_object_set(jv_object(), jv_string("source"), jv_copy(source));

			row = jv_object_set(row, jv_string("members"), jv_copy(names));
			c.actual = jv_array_append(c.actual, row);
		}
		jv_free(source);
		jv_free(names);
	}
	am_check_equal(out, &c);
}

/* Owns: an object of answers, or the one array. Dies when it is neither. */
static jv
read_input(char *const paths[], int n)
{
	const char *name = n == 0 || strcmp(paths[0], "-") == 0 ? "<stdin>" : paths[0];
	int fd = name[0] == '<' ? STDIN_FILENO : -1;
	char *text;
	size_t len;
	FILE *fp;
	jv v;

	if (n > 1) {
		v = am_answers_read(paths, n);
	} else {
		if ((fd < 0 && (fd = open(name, O_RDONLY | O_CLOEXEC)) < 0) || (text = am_read_fd(fd, INPUT_MAX, &len)) == NULL)
			am_die("%s", name);
		if (text[strspn(text, " \t\r\n")] == '[') {
			v = am_json_parse(text, len);
		} else {		/* fmemopen takes no empty buffer */
			if ((fp = len == 0 ? fopen("/dev/null", "re") : fmemopen(text, len, "r")) == NULL)
				am_die("%s", name);
			v = am_answers_from(jv_object(), fp, name);
			fclose(fp);
		}
		free(text);
		close(fd);
	}
	if (!jv_is_valid(v))
		am_diex("%s", am_json_why(v));
	return v;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "members", required_argument, NULL, 'm' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct am_checks out = { .fp = stdout };
	const char *members_path = NULL;
	char doubt[800] = "";
	struct am_members members;
	struct seen *seen;
	jv input, all;
	int ch;

	am_prog = "amap-probe-mounts";
	while ((ch = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (ch) {
		case 'm': members_path = optarg; break;
		default: am_std_option(ch, usage);
		}
	}
	if (members_path == NULL)
		am_usage(usage);
	input = read_input(argv + optind, argc - optind);
	am_members_read(&members, members_path);	/* not known: amap-probe-identity says so, once */
	if ((seen = calloc(members.n + 1, sizeof *seen)) == NULL)
		abort();
	for (size_t i = 0; i < members.n; i++) {
		look(&seen[i], input, &members.v[i]);
		if (!jv_is_valid(seen[i].rows) && doubt[0] == '\0')
			snprintf(doubt, sizeof doubt, "the mounts of %s are not known: %s", members.v[i].name, seen[i].why);
	}
	all = doubt[0] == '\0' ? owners(&members, seen) : jv_object();
	for (size_t i = 0; i < members.n; i++) {
		check_mounts(&out, &members.v[i], &seen[i]);
		check_shared(&out, &members.v[i], all, doubt[0] == '\0' ? NULL : doubt);
		jv_free(seen[i].rows);
		jv_free(seen[i].shared);
	}
	jv_free(all);
	jv_free(input);
	free(seen);
	am_members_free(&members);
	return am_finish(am_check_end(&out));
}
