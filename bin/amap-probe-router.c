/*
 * amap-probe-router - does the router run, walled in as it should be?
 *
 * Checks K1 to K6 of spec verify, section 8. Reads the answers "router-ps",
 * "router-inspect" (docker's, or an embedded service's in the same form),
 * "router-mounts" (the mount emitter) and "router-status". Page:
 * amap-probe-router(1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "check.h"
#include "diag.h"
#include "mounts.h"
#include "path.h"
#include "routerview.h"

#define SECTION "router-container"
#define PROGRAM_DIR "/opt/amap/bin"	/* in an embedded router's root */

static const char usage[] =
"usage: amap-probe-router --config FILE --name NAME [--program-dir DIR] [ANSWERS ...]\n"
"       amap-probe-router --problem TEXT\n"
"\n"
"Prints up to six checks of the router's container.\n"
"\n"
"  --config FILE      the router's configuration, <home>/router.json\n"
"  --name NAME        the container's name\n"
"  --program-dir DIR  where its program lies, mounted read-only at " PROGRAM_DIR "\n"
"  --problem TEXT     there is no router to ask about, and why\n";

/* The evidence of a router that is there. */
struct scene {
	jv entry;			/* what docker inspect shows of it */
	jv rows;			/* the emitter's: [path, writable]; invalid with rows_why set */
	char doubt_text[700], rows_why[700];
};

static const struct am_check running = { .section = SECTION, .id = "K1", .claim = "the router runs" };
static const struct am_check posture = { .section = SECTION, .id = "K2",
    .claim = "it has no network and starts again by itself" };
static const struct am_check mounts = { .section = SECTION, .id = "K3",
    .claim = "exactly the directories of its configuration are mounted in it" };
static const struct am_check verdict = { .section = SECTION, .id = "K4",
    .claim = "the verdict is mounted by its directory" };
static const struct am_check shadows = { .section = SECTION, .id = "K5",
    .claim = "no read-only mount shadows a writable one" };
static const struct am_check view = { .section = SECTION, .id = "K6",
    .claim = "the router serves exactly the selected instances" };

/* ---- evidence ---- */

static int
is_listed(const char *names, const char *name)
{
	size_t n;

	for (const char *p = names; *p != '\0'; p += n + (p[n] == '\n')) {
		n = strcspn(p, "\n");
		if (n == strlen(name) && strncmp(p, name, n) == 0)
			return 1;
	}
	return 0;
}

/* Owns: the one entry of docker inspect; invalid with why set. */
static jv
inspected(jv answers, char *why, size_t size)
{
	struct am_asked a;
	jv all, entry = jv_invalid();

	if (!am_asked(answers, "router-inspect", NULL, &a)) {
		snprintf(why, size, "%s", a.why);
		return entry;
	}
	all = am_json_parse(a.out, strlen(a.out));
	if (jv_get_kind(all) == JV_KIND_ARRAY && jv_array_length(jv_copy(all)) == 1)
		entry = jv_array_get(jv_copy(all), 0);
	jv_free(all);
	if (jv_get_kind(entry) == JV_KIND_OBJECT)
		return entry;
	jv_free(entry);
	snprintf(why, size, "docker inspect did not print an array with one object");
	return jv_invalid();
}

/* Owns: the emitter's rows in their order. A line that is none spoils them all. */
static jv
emitted(jv answers, char *why, size_t size)
{
	struct am_asked a;
	jv rows = jv_array(), row;
	size_t n;

	if (!am_asked(answers, "router-mounts", NULL, &a)) {
		snprintf(why, size, "%s", a.why);
		jv_free(rows);
		return jv_invalid();
	}
	for (const char *p = a.out; *p != '\0'; p += n + (p[n] == '\n')) {
		const char *tab = memchr(p, '\t', n = strcspn(p, "\n"));

		if (p[0] != '/' || tab == NULL || n - (size_t)(tab - p) != 3 ||
		    (strncmp(tab, "\trw", 3) != 0 && strncmp(tab, "\tro", 3) != 0)) {
			snprintf(why, size, "the router's list of mounts has a line that is none: %s", am_quote(p, n));
			jv_free(rows);
			return jv_invalid();
		}
		row = jv_array_append(jv_array(), jv_string_sized(p, (int)(tab - p)));
		row = jv_array_append(row, tab[2] == 'w' ? jv_true() : jv_false());
		rows = jv_array_append(rows, row);
	}
	if (jv_array_length(jv_copy(rows)) > 0)
		return rows;
	jv_free(rows);
	snprintf(why, size, "the router's list of mounts is empty");
	return jv_invalid();
}

static const char *
row_path(jv rows, int i, int *writable)
{
	jv row = jv_array_get(jv_copy(rows), i), path = jv_array_get(jv_copy(row), 0);
	jv flag = jv_array_get(row, 1);
	const char *text = jv_string_value(path);

	*writable = jv_get_kind(flag) == JV_KIND_TRUE;
	jv_free(flag);
	jv_free(path);		/* rows keep it */
	return text;
}

/* ---- checks ---- */

static void
check_running(struct am_checks *out, const struct scene *s, const char *name)
{
	struct am_check c = running;
	jv state, flag;
	char remedy[200];

	snprintf(remedy, sizeof remedy, "start it: \"docker start %s\" for a container, \"amap-sandbox service start\""
	    " for an embedded one", name);
	c.remedy = remedy;
	c.avoid = "do not run the start script while a stopped container has the name";
	state = am_get(s->entry, "State", JV_KIND_OBJECT);
	flag = jv_is_valid(state) ? jv_object_get(jv_copy(state), jv_string("Running")) : jv_invalid();
	jv_free(state);
	if (jv_get_kind(flag) != JV_KIND_TRUE && jv_get_kind(flag) != JV_KIND_FALSE) {
		jv_free(flag);
		am_check_unknown(out, &c, "docker inspect does not say whether it runs");
		return;
	}
	c.provenance = "the deployment: the router always runs";
	c.expected = jv_true();
	c.actual = flag;
	am_check_equal(out, &c);
}

static void
check_posture(struct am_checks *out, const struct scene *s)
{
	struct am_check c = posture;
	jv host = am_get(s->entry, "HostConfig", JV_KIND_OBJECT), policy = am_get(host, "RestartPolicy", JV_KIND_OBJECT);
	const char *network = am_str(host, "NetworkMode"), *restart = am_str(policy, "Name");
	char seen[200];

	c.remedy = "remove the container and start it with the router's own start script";
	if (am_is_embedded(s->entry))		/* no docker: look for ourselves */
		network = am_networks(s->entry, seen, sizeof seen);
	if (network == NULL || restart == NULL) {
		am_check_unknown(out, &c, "docker inspect shows no network mode or no restart policy");
	} else {
		c.provenance = "the router's start script";
		c.expected = jv_array_append(jv_array_append(jv_array(), jv_string("none")), jv_string("unless-stopped"));
		c.actual = jv_array_append(jv_array_append(jv_array(), jv_string(network)), jv_string(restart));
		am_check_equal(out, &c);
	}
	jv_free(policy);
	jv_free(host);
}

static int
lies_below(jv rows, const char *path)
{
	int writable, below = 0;

	for (int i = 0; i < jv_array_length(jv_copy(rows)); i++)
		below |= am_path_under(path, row_path(rows, i, &writable));
	return below;
}

static void
check_mounts(struct am_checks *out, const struct scene *s, const struct am_router_config *config,
    const char *config_path, const char *program_dir)
{
	struct am_check c = mounts, v = verdict;
	jv wanted = jv_object(), expected = jv_object();
	struct am_mounts found;
	int known = jv_is_valid(s->rows), rc, writable;

	for (int i = 0; known && i < jv_array_length(jv_copy(s->rows)); i++) {
		const char *path = row_path(s->rows, i, &writable);

		wanted = am_set_str(wanted, path, path);
		expected = am_set(expected, path, am_mount_row(path, writable));
	}
	if (program_dir != NULL) {
		wanted = am_set_str(wanted, PROGRAM_DIR, program_dir);
		expected = am_set(expected, PROGRAM_DIR, am_mount_row(program_dir, 0));
	}
	if (!am_has(wanted, config_path))
		wanted = am_set_str(wanted, config_path, config_path);
	if (config->selected_json != NULL)
		wanted = am_set_str(wanted, config->selected_json, config->selected_json);
	rc = am_mounts_read(&found, s->entry, wanted, 0);
	c.remedy = v.remedy = "docker and the router's list of mounts must both answer";
	if (!known || rc != 0) {
		am_check_unknown(out, &c, !known ? s->rows_why : found.why);
	} else {
		/* by itself, or with the directory that holds it: a renamed file is seen only there (spec bugs, B28) */
		if (!am_has(expected, config_path) && (am_has(found.rows, config_path) || !lies_below(s->rows, config_path)))
			expected = am_set(expected, config_path, am_mount_row(config_path, 0));
		c.provenance = "the router's own list of mounts for this configuration";
		c.remedy = "remove the container and start it with the router's own start script";
		c.expected = jv_copy(expected);
		c.actual = jv_copy(found.rows);
		am_check_equal(out, &c);
	}
	if (config->selected_json == NULL) {
		am_check_unknown(out, &v, "router.json has no selected_json");
	} else if (rc != 0) {
		am_check_unknown(out, &v, found.why);
	} else {
		char *real = realpath(config->selected_json, NULL);

		v.provenance = "the rule that a renamed verdict must be seen";
		v.remedy = "remove the container and start it with the router's own start script";
		v.avoid = "do not mount the file itself: that pins its first inode for ever";
		v.expected = jv_array();
		v.actual = jv_array();
		jv_object_foreach(found.rows, target, row) {
			const char *source = am_str(row, "source");

			if (source != NULL && strcmp(source, real == NULL ? config->selected_json : real) == 0)
				v.actual = jv_array_append(v.actual, jv_copy(target));
			jv_free(target);
			jv_free(row);
		}
		free(real);
		am_check_equal(out, &v);
	}
	am_mounts_free(&found);
	jv_free(wanted);
	jv_free(expected);
}

static void
check_shadows(struct am_checks *out, const struct scene *s)
{
	struct am_check c = shadows;
	int n, writable, other_writable;

	c.remedy = "the router's list of mounts must be readable";
	if (!jv_is_valid(s->rows)) {
		am_check_unknown(out, &c, s->rows_why);
		return;
	}
	c.remedy = "a parent must be listed before what lies in it: report this to the router's maintainers";
	c.provenance = "the order of the router's list of mounts";
	c.expected = jv_array();
	c.actual = jv_array();
	n = jv_array_length(jv_copy(s->rows));
	for (int i = 0; i < n; i++) {
		const char *path = row_path(s->rows, i, &writable);
		int shadowed = 0;

		for (int k = 0; k < i && !writable; k++) {
			const char *other = row_path(s->rows, k, &other_writable);

			shadowed |= other_writable && am_path_under(other, path);
		}
		if (shadowed)
			c.actual = jv_array_append(c.actual, jv_string(path));
	}
	am_check_equal(out, &c);
}

static void
check_view(struct am_checks *out, jv answers, const struct am_router_config *config)
{
	struct am_check c = view;
	jv instances = am_router_instances(config), status, admitted;
	long before;

	c.remedy = "the router's status, selected.json and the instances must be readable";
	if (!jv_is_valid(instances)) {
		am_check_unknown(out, &c, am_json_why(instances));
		return;
	}
	status = am_router_status(answers, &before);
	if (!jv_is_valid(status)) {
		am_check_unknown(out, &c, am_json_why(status));
		jv_free(instances);
		return;
	}
	admitted = am_get(status, "admitted", JV_KIND_ARRAY);
	jv_free(status);
	if (!jv_is_valid(admitted)) {
		am_check_unknown(out, &c, "the router's status has no list of whom it admitted");
		jv_free(instances);
		return;
	}
	c.provenance = "selected.json and the directories of the instances";
	c.remedy = "look at the router's log and its plain status: it says why it does not serve one";
	c.expected = instances;
	c.actual = jv_sort(admitted, jv_copy(admitted));
	am_check_equal(out, &c);
}

/* Everything that could be said of a router that is there, when it is not or nobody knows. */
static void
all_unknown(struct am_checks *out, const char *why, int with_running, int with_config)
{
	const struct am_check *const all[] = { &running, &posture, &mounts, &verdict, &shadows, &view };

	for (size_t i = with_running ? 0 : 1; i < (with_config ? 6 : 2); i++) {
		struct am_check c = *all[i];

		c.remedy = "make docker answer and the router run, then verify again";
		am_check_unknown(out, &c, why);
	}
}

static void
check_all(struct am_checks *out, jv answers, const char *name, const char *config_path, const char *program_dir)
{
	struct scene s = { .entry = jv_invalid(), .rows = jv_invalid() };
	struct am_router_config config;
	int parses = am_router_config_read(&config, config_path) == 0;
	struct am_asked a;

	if (!am_asked(answers, "router-ps", NULL, &a)) {
		all_unknown(out, a.why, 1, parses);
	} else if (!is_listed(a.out, name)) {
		struct am_check c = running;

		c.provenance = "the deployment: the router always runs";
		c.remedy = "start it: amap-openshell bring-up --apply";
		c.expected = jv_true();
		c.actual = jv_string_fmt("there is no %s", name);
		am_check_put(out, &c, AM_FAIL);
		all_unknown(out, "the router is not there", 0, parses);
	} else if (!jv_is_valid(s.entry = inspected(answers, s.doubt_text, sizeof s.doubt_text))) {
		all_unknown(out, s.doubt_text, 1, parses);
	} else {
		check_running(out, &s, name);
		check_posture(out, &s);
		if (parses) {
			s.rows = emitted(answers, s.rows_why, sizeof s.rows_why);
			check_mounts(out, &s, &config, config_path, program_dir);
			check_shadows(out, &s);
			check_view(out, answers, &config);
		}
	}
	jv_free(s.rows);
	jv_free(s.entry);
	am_router_config_free(&config);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "name", required_argument, NULL, 'n' },
		{ "program-dir", required_argument, NULL, 'p' },
		{ "problem", required_argument, NULL, 'x' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *config = NULL, *name = NULL, *program_dir = NULL, *problem = NULL;
	struct am_checks out = { .fp = stdout };
	jv answers;
	int ch;

	am_prog = "amap-probe-router";
	while ((ch = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (ch) {
		case 'c': config = optarg; break;
		case 'n': name = optarg; break;
		case 'p': program_dir = optarg; break;
		case 'x': problem = optarg; break;
		default: am_std_option(ch, usage);
		}
	}
	if ((problem == NULL && (config == NULL || name == NULL)))
		am_usage(usage);
	if (problem != NULL) {
		struct am_check c = running;

		c.remedy = "name the router's checkout, or use --router ours";
		am_check_unknown(&out, &c, am_quotes(problem));
		return am_finish(am_check_end(&out));
	}
	answers = am_answers_read(argv + optind, argc - optind);
	if (!jv_is_valid(answers))
		am_diex("%s", am_json_why(answers));
	check_all(&out, answers, name, config, program_dir);
	jv_free(answers);
	return am_finish(am_check_end(&out));
}
