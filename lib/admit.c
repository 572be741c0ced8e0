#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "admit.h"
#include "diag.h"
#include "fleet.h"
#include "lane.h"
#include "path.h"

struct review {
	const char *home;
	struct am_fleet fleet;
	int home_good;
	const char *member;		/* the name asked for, once it is found good */
	struct am_row rows[AM_ROWS];	/* of that member; what may be mounted */
	jv reasons;
};

static void __attribute__((format(printf, 3, 4)))
deny(struct review *r, const char *clause, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	r->reasons = jv_array_append(r->reasons,
	    am_set_str(am_set_str(jv_object(), "clause", clause), "reason", text));
	free(text);
}

/* ---- fields, in both spellings ---- */

/* "driverConfig" is "driver_config" as well. */
static void
snake_case(const char *camel, char *out, size_t size)
{
	size_t n = 0;

	for (; *camel != '\0' && n + 2 < size; camel++) {
		if (*camel >= 'A' && *camel <= 'Z') {
			out[n++] = '_';
			out[n++] = (char)(*camel - 'A' + 'a');
		} else {
			out[n++] = *camel;
		}
	}
	out[n] = '\0';
}

/*
 * Borrows o, owns the result: the member in either spelling, invalid when it
 * is absent. Both spellings are one reason, and the first one counts.
 */
static jv
field(struct review *r, jv o, const char *camel, const char *where)
{
	char snake[64];

	snake_case(camel, snake, sizeof snake);
	if (!am_has(o, camel))
		return jv_object_get(jv_copy(o), jv_string(snake));
	if (am_has(o, snake))
		deny(r, "BOTH", "%s: %s and %s are both there", where, camel, snake);
	return jv_object_get(jv_copy(o), jv_string(camel));
}

static int
is_known(const char *key, size_t len, const char *const *known)
{
	char snake[64];

	for (; *known != NULL; known++) {
		snake_case(*known, snake, sizeof snake);
		if ((strlen(*known) == len && memcmp(*known, key, len) == 0) ||
		    (strlen(snake) == len && memcmp(snake, key, len) == 0))
			return 1;
	}
	return 0;
}

/* Borrows o: one reason for each key that is not known. */
static void
unknown_keys(struct review *r, jv o, const char *const *known, const char *clause, const char *where)
{
	for (int i = jv_object_iter(o); jv_object_iter_valid(o, i); i = jv_object_iter_next(o, i)) {
		jv k = jv_object_iter_key(o, i);
		size_t len = (size_t)jv_string_length_bytes(jv_copy(k));

		if (!is_known(jv_string_value(k), len, known))
			deny(r, clause, "%s.%s: not a field that is known to be harmless", where,
			    am_quote(jv_string_value(k), len));
		jv_free(k);
	}
}

static int
is_empty(jv v)
{
	switch (jv_get_kind(v)) {
	case JV_KIND_INVALID:
	case JV_KIND_NULL:
		return 1;
	case JV_KIND_STRING:
		return jv_string_length_bytes(jv_copy(v)) == 0;
	case JV_KIND_ARRAY:
		return jv_array_length(jv_copy(v)) == 0;
	case JV_KIND_OBJECT:
		return jv_object_length(jv_copy(v)) == 0;
	default:
		return 0;
	}
}

/*
 * Consumes v. An object that may be looked into, or invalid; anything else
 * that is present, null too, is a reason.
 */
static jv
want(struct review *r, jv v, jv_kind kind, const char *clause, const char *where)
{
	jv_kind is = jv_get_kind(v);

	if (is == kind || is == JV_KIND_INVALID)
		return v;
	jv_free(v);
	deny(r, clause, "%s: it is no %s", where, kind == JV_KIND_OBJECT ? "object" : "list");
	return jv_invalid();
}

/* ---- the way down to the mounts ---- */

/* Consumes the template's driver config. Owns: the mounts, invalid when there are none to look at. */
static jv
mounts_of(struct review *r, jv config)
{
	static const char *const drivers[] = { "docker", NULL }, *const keys[] = { "mounts", NULL };
	jv docker, mounts;

	config = want(r, config, JV_KIND_OBJECT, "R3.shape", "spec.template.driverConfig");
	if (!jv_is_valid(config))
		return config;
	unknown_keys(r, config, drivers, "R3.driver", "driverConfig");
	docker = want(r, jv_object_get(config, jv_string("docker")), JV_KIND_OBJECT, "R3.shape", "driverConfig.docker");
	if (!jv_is_valid(docker))
		return docker;
	unknown_keys(r, docker, keys, "R3.key", "driverConfig.docker");
	mounts = jv_object_get(docker, jv_string("mounts"));
	return want(r, mounts, JV_KIND_ARRAY, "R3.list", "driverConfig.docker.mounts");
}

/* Borrows the request. Owns: the mounts that it asks for, invalid when there are none to look at. */
static jv
descend(struct review *r, jv request)
{
	static const char *const request_keys[] = { "workspaceScope", "spec", "name", "labels", "annotations",
	    "awaitMainProcessAttachment", "workloadTemplate", "requestId", "serviceExposures", NULL };
	static const char *const spec_keys[] = { "logLevel", "environment", "template", "policy", "providers",
	    "resourceRequirements", "command", "tty", "providerAttachmentEpoch", NULL };
	static const char *const template_keys[] = { "image", "runtimeClassName", "agentSocket", "labels",
	    "annotations", "environment", "resources", "userNamespaces", "driverConfig", NULL };
	jv workload, spec, template, config;

	workload = field(r, request, "workloadTemplate", "request");
	if (!is_empty(workload))
		deny(r, "R1", "request.workloadTemplate: a template could bring its own mounts");
	jv_free(workload);
	unknown_keys(r, request, request_keys, "R2.unknown", "request");
	spec = want(r, jv_object_get(jv_copy(request), jv_string("spec")), JV_KIND_OBJECT, "R2.shape", "spec");
	if (!jv_is_valid(spec))
		return spec;
	unknown_keys(r, spec, spec_keys, "R2.unknown", "spec");
	template = want(r, jv_object_get(spec, jv_string("template")), JV_KIND_OBJECT, "R2.shape", "spec.template");
	if (!jv_is_valid(template))
		return template;
	unknown_keys(r, template, template_keys, "R2.unknown", "spec.template");
	config = field(r, template, "driverConfig", "spec.template");
	jv_free(template);
	return mounts_of(r, config);
}

/* ---- who asks ---- */

/* Borrows the request. */
static void
check_name(struct review *r, jv request)
{
	const char *name = am_str(request, "name"), *problem;

	if (name == NULL || *name == '\0')
		deny(r, "R5.name", "name: a create with mounts needs one");
	else if ((problem = am_name_problem(name)) != NULL)
		deny(r, "R5.name", "name: \"%s\": %s", am_quotes(name), problem);
	else if (am_names_find(&r->fleet.members, name) < 0)
		deny(r, "R5.member", "name: %s is not a member of the fleet", name);
	else
		r->member = name;
}

static void
check_scope(struct review *r, jv request)
{
	jv scope = field(r, request, "workspaceScope", "request");
	const char *workspace = am_str(scope, "workspace");

	if (jv_get_kind(scope) != JV_KIND_OBJECT)
		deny(r, "R5.scope", "workspaceScope: it is absent or no object");
	else if (jv_object_length(jv_copy(scope)) != 1 || !am_has(scope, "workspace"))
		deny(r, "R5.scope-keys", "workspaceScope: it does not hold \"workspace\" alone");
	else if (workspace == NULL || strcmp(workspace, r->fleet.workspace) != 0)
		deny(r, "R5.workspace", "workspaceScope: it is not the fleet's workspace \"%s\"", r->fleet.workspace);
	jv_free(scope);
}

/* ---- one mount ---- */

/*
 * 1 when a component of an absolute, normalised path is a link, or cannot be
 * looked at. What is not there is none: the engine refuses it on its own.
 */
static int
leads_elsewhere(const char *path)
{
	char *p = strdup(path), *slash = p;
	struct stat st;
	int links = 0, more = 1;

	if (p == NULL)
		abort();
	while (more && !links) {
		slash = strchr(slash + 1, '/');
		more = slash != NULL;
		if (more)
			*slash = '\0';
		if (lstat(p, &st) == 0)
			links = S_ISLNK(st.st_mode);
		else if (errno == ENOENT)
			more = 0;
		else
			links = 1;
		if (slash != NULL)
			*slash = '/';
	}
	free(p);
	return links;
}

/* Borrows the mount; 1 when its shape is sound. */
static int
check_shape(struct review *r, jv mount, int i)
{
	static const char *const keys[] = { "type", "source", "target", "read_only", NULL };
	const char *type;
	jv_kind flag;
	jv v;
	int before = jv_array_length(jv_copy(r->reasons));
	char where[40];

	snprintf(where, sizeof where, "mounts[%d]", i);
	if (jv_get_kind(mount) != JV_KIND_OBJECT) {
		deny(r, "R6.object", "%s: it is no object", where);
		return 0;
	}
	type = am_str(mount, "type");
	if (type == NULL || strcmp(type, "bind") != 0)
		deny(r, "R6.type", "%s.type: it is not \"bind\"", where);
	unknown_keys(r, mount, keys, "R6.key", where);
	v = jv_object_get(jv_copy(mount), jv_string("read_only"));
	flag = jv_get_kind(v);
	jv_free(v);
	if (flag != JV_KIND_INVALID && flag != JV_KIND_TRUE && flag != JV_KIND_FALSE)
		deny(r, "R6.bool", "%s.read_only: it is neither true nor false", where);
	return jv_array_length(jv_copy(r->reasons)) == before;
}

static void
check_source(struct review *r, jv mount, int i)
{
	const char *source = am_str(mount, "source"), *problem = am_path_problem(source);
	const struct am_row *row = NULL;
	jv flag;
	int read_only;

	/* "/" is a sound path, though no home: the next rule has it. */
	if (problem != NULL && (source == NULL || strcmp(source, "/") != 0)) {
		deny(r, "R7a", "mounts[%d].source: \"%s\": %s", i, source == NULL ? "" : am_quotes(source), problem);
		return;
	}
	for (int n = 0; n < AM_ROWS && r->member != NULL && r->home_good; n++)
		if (strcmp(source, r->rows[n].source) == 0)
			row = &r->rows[n];
	if (row == NULL) {
		deny(r, "R7b", "mounts[%d].source: %s is not one of the member's own", i, source);
		return;
	}
	flag = jv_object_get(jv_copy(mount), jv_string("read_only"));
	read_only = jv_get_kind(flag) != JV_KIND_FALSE;
	jv_free(flag);
	if (read_only != row->read_only)
		deny(r, "R7c", "mounts[%d]: %s is to be mounted %s", i, source,
		    row->read_only ? "read-only" : "read-write");
	if (leads_elsewhere(source))
		deny(r, "R7d", "mounts[%d].source: %s leads elsewhere, through a link", i, source);
}

/* ---- the rule ---- */

/* Borrows the mounts, a list that is not empty, and the request. */
static void
check_mounts(struct review *r, jv mounts, jv request)
{
	int n = jv_array_length(jv_copy(mounts));

	check_name(r, request);
	check_scope(r, request);
	if (r->member != NULL)
		am_rows_make(r->rows, r->home, r->member);
	for (int i = 0; i < n; i++) {
		jv mount = jv_array_get(jv_copy(mounts), i);

		if (check_shape(r, mount, i))
			check_source(r, mount, i);
		jv_free(mount);
	}
	am_rows_free(r->rows);
}

jv
am_admit(const char *home, jv operation)
{
	struct review r = { .home = home, .reasons = jv_array() };
	char *path = am_path_join(home, "fleet.json");
	const char *problem = am_path_problem(home);
	jv mounts;

	r.home_good = problem == NULL;
	if (am_fleet_read(&r.fleet, path, 1) != 0) {
		deny(&r, "R9.fleet", "%s: %s", am_quotes(path), r.fleet.why);
	} else {
		if (!r.home_good)
			deny(&r, "HOME", "the home \"%s\": %s", am_quotes(home), problem);
		if (jv_get_kind(operation) != JV_KIND_OBJECT) {
			deny(&r, "R9.operation", "the request is no object");
		} else {
			mounts = descend(&r, operation);
			if (!is_empty(mounts))
				check_mounts(&r, mounts, operation);
			jv_free(mounts);
		}
	}
	am_fleet_free(&r.fleet);
	free(path);
	return r.reasons;
}
