#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../path.h"
#include "cli.h"
#include "policy.h"
#include "say.h"

/* Roots that OpenShell keeps for itself, and ours. A target may be at none, below none, above none. */
static const char *const reserved[] = {
	"/opt/openshell", "/etc/openshell", "/etc/openshell-tls", "/run/openshell", "/run/openshell-sidecar",
	"/run/netns", "/var/run/netns", "/.openshell", AMS_INSIDE, "/proc", "/dev", "/sys", NULL
};

static int
bad(const char *fmt, const char *object, const char *more)
{
	char text[1024];

	snprintf(text, sizeof text, fmt, object, more);
	return ams_refuse(AMS_INVALID_ARGUMENT, "%s", text);
}

static int
check_target(const char *target)
{
	const char *problem = am_path_problem(target);

	if (problem != NULL)
		return bad("mount target '%s' must be an absolute, normalised path: %s", target, problem);
	for (size_t i = 0; reserved[i] != NULL; i++)
		if (am_path_under(target, reserved[i]) || am_path_under(reserved[i], target))
			return bad("mount target '%s' conflicts with reserved OpenShell path '%s'", target, reserved[i]);
	if (am_path_under(AMS_WORKDIR, target))
		return bad("mount target '%s' is reserved for the OpenShell workspace%s", target, "");
	return 0;
}

static int
check_source(const char *source)
{
	struct stat st;
	size_t n = strlen(source);

	if (n > 0 && (strchr(" \t\n", source[0]) != NULL || strchr(" \t\n", source[n - 1]) != NULL))
		return ams_refuse(AMS_INVALID_ARGUMENT, "bind source must not contain surrounding whitespace");
	if (source[0] != '/')
		return ams_refuse(AMS_INVALID_ARGUMENT, "bind source must be an absolute host path");
	if (am_path_problem(source) != NULL)
		return bad("bind source '%s': %s", source, am_path_problem(source));
	if (lstat(source, &st) != 0)
		return bad(errno == ENOENT || errno == ENOTDIR ? "bind source path does not exist: %s" :
		    "bind source path cannot be reached: %s: %s", source, strerror(errno));
	return 0;
}

/* Consumes row; the checked mount, or invalid after the refusal. */
static jv
check_mount(jv row, int index)
{
	static const char *const known[] = { "type", "source", "target", "read_only", "selinux_label", NULL };
	const char *type = am_str(row, "type"), *source = am_str(row, "source"), *target = am_str(row, "target"), *key;
	jv ro = jv_get_kind(row) == JV_KIND_OBJECT ? jv_object_get(jv_copy(row), jv_string("read_only")) : jv_invalid();
	jv_kind kind = jv_get_kind(ro);
	jv out = jv_invalid();
	char where[32];

	jv_free(ro);
	snprintf(where, sizeof where, "mounts[%d]", index);
	if (type == NULL)
		bad("invalid docker driver_config: %s: missing field `type`%s", where, "");
	else if (strcmp(type, "volume") == 0 || strcmp(type, "tmpfs") == 0)
		bad("invalid docker driver_config: %s: the embedded sandbox has no mounts of type `%s`", where, type);
	else if (strcmp(type, "bind") != 0)
		bad("invalid docker driver_config: %s: unknown variant `%s`, expected one of `bind`, `volume`, `tmpfs`", where, type);
	else if ((key = am_unknown_key(row, known)) != NULL)
		bad("invalid docker driver_config: unknown field `%s` in %s", key, where);
	else if (am_has(row, "selinux_label"))
		bad("invalid docker driver_config: %s: the embedded sandbox has no `%s`", where, "selinux_label");
	else if (source == NULL || target == NULL)
		bad("invalid docker driver_config: %s: missing field `%s`", where, source == NULL ? "source" : "target");
	else if (kind != JV_KIND_INVALID && kind != JV_KIND_TRUE && kind != JV_KIND_FALSE)
		bad("invalid docker driver_config: %s: `%s` must be a boolean", where, "read_only");
	else if (check_target(target) == 0 && check_source(source) == 0)
		out = am_set(am_set_str(am_set_str(jv_object(), "source", source), "target", target), "read_only",
		    kind == JV_KIND_FALSE ? jv_false() : jv_true());
	jv_free(row);
	return out;
}

/* Two targets must lie apart: a mount inside another would have to be made inside that one's source. */
static int
check_apart(jv mounts)
{
	int n = jv_array_length(jv_copy(mounts)), rc = 0;

	for (int i = 0; i < n && rc == 0; i++) {
		jv a = jv_array_get(jv_copy(mounts), i);

		for (int k = 0; k < n && rc == 0; k++) {
			jv b = jv_array_get(jv_copy(mounts), k);

			if (i < k && strcmp(am_str(a, "target"), am_str(b, "target")) == 0)
				rc = bad("duplicate docker driver_config mount target '%s'%s", am_str(a, "target"), "");
			else if (i != k && am_path_under(am_str(a, "target"), am_str(b, "target")))
				rc = bad("mount target '%s' lies below mount target '%s'", am_str(a, "target"), am_str(b, "target"));
			jv_free(b);
		}
		jv_free(a);
	}
	return rc;
}

jv
ams_driver_mounts(jv config)
{
	static const char *const known[] = { "mounts", "cdi_devices", NULL };
	jv docker = am_get(config, "docker", JV_KIND_OBJECT), list, out = jv_array();
	int present = am_has(config, "docker"), failed = 0;
	const char *key;

	jv_free(config);
	if (!present)
		return out;
	if (!jv_is_valid(docker))
		failed = ams_refuse(AMS_INVALID_ARGUMENT, "invalid docker driver_config: expected an object");
	else if ((key = am_unknown_key(docker, known)) != NULL)
		failed = bad("invalid docker driver_config: unknown field `%s`, expected `%s`", key, "mounts");
	else if (am_has(docker, "cdi_devices"))
		failed = ams_refuse(AMS_INVALID_ARGUMENT, "invalid docker driver_config: the embedded sandbox has no `cdi_devices`");
	list = am_get(docker, "mounts", JV_KIND_ARRAY);
	if (!failed && am_has(docker, "mounts") && !jv_is_valid(list))
		failed = ams_refuse(AMS_INVALID_ARGUMENT, "invalid docker driver_config: `mounts` must be a list");
	for (int i = 0; !failed && jv_is_valid(list) && i < jv_array_length(jv_copy(list)); i++) {
		jv row = check_mount(jv_array_get(jv_copy(list), i), i);

		failed = !jv_is_valid(row);
		if (failed)
			jv_free(row);
		else
			out = jv_array_append(out, row);
	}
	jv_free(list);
	jv_free(docker);
	if (!failed)
		failed = check_apart(out);
	if (!failed)
		return out;
	jv_free(out);
	return jv_invalid();
}
