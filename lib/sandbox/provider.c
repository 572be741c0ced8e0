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
#include "profile.h"
#include "say.h"

/*
 * An embedded sandbox has no network, so a provider is only a record: which
 * variables hold a placeholder. No value is ever read, stored or passed on.
 */
/* "profiles/ID.json". Static. */
static const char *
file_of(const char *id)
{
	static char name[AMS_PROVIDER_NAME_MAX + 8];

	snprintf(name, sizeof name, "%.*s.json", AMS_PROVIDER_NAME_MAX, id);
	return name;
}

static jv
load(struct ams_cli *cli, const char *kind, const char *id)
{
	int dir = ams_profile_id_fits(id) ? am_open_beneath(cli->state, kind, O_RDONLY | O_DIRECTORY, 0) : -1;
	jv v = dir < 0 ? jv_invalid() : ams_unit_read(dir, file_of(id));

	if (dir >= 0)
		close(dir);
	return v;
}

/* Consumes v. */
static int
save(struct ams_cli *cli, const char *kind, const char *id, jv v)
{
	int dir = am_open_beneath(cli->state, kind, O_RDONLY | O_DIRECTORY, 0), rc = -1;

	if (dir >= 0) {
		rc = ams_unit_write(dir, file_of(id), v, 1);
		close(dir);
	} else {
		jv_free(v);
	}
	if (rc != 0)
		am_warn("%s/%s/%s", ams_state_path(), kind, file_of(id));
	return rc != 0;
}

/* ---- profiles ---- */

static int
version_of(jv profile)
{
	jv v = am_get(profile, "resource_version", JV_KIND_NUMBER);
	int n = jv_is_valid(v) ? (int)jv_number_value(v) : 0;

	jv_free(v);
	return n;
}

static int
profile_store(struct ams_cli *cli, const char *verb, const char *path, const char *id)
{
	struct ams_diagnosis d = { .source = path };
	jv v = ams_profile_read(&d), old;
	int now, given, rc;

	if (!jv_is_valid(v))
		return ams_fail("provider profile %s failed", verb);
	if (id != NULL && strcmp(id, am_str(v, "id")) != 0)
		ams_diagnose(&d, am_str(v, "id"), "id", "is not the profile that is updated");
	old = load(cli, "profiles", am_str(v, "id"));
	now = jv_is_valid(old) ? version_of(old) : 0;
	given = version_of(v);
	jv_free(old);
	if (id == NULL && now > 0) {
		char text[AMS_PROVIDER_NAME_MAX + 64];

		snprintf(text, sizeof text, "custom provider profile '%s' already exists", am_str(v, "id"));
		ams_diagnose(&d, am_str(v, "id"), "id", text);
	}
	if (d.faults > 0) {
		jv_free(v);
		return ams_fail("provider profile %s failed", verb);
	}
	if (strcmp(verb, "lint") == 0) {
		jv_free(v);
		puts("Provider profile lint passed.");
		return am_finish(0);
	}
	if (id != NULL && (now == 0 || given != now)) {
		jv_free(v);
		if (now == 0)
			return ams_refuse(AMS_NOT_FOUND, "provider profile '%s' not found", id);
		if (given <= 0)
			return ams_refuse(AMS_INVALID_ARGUMENT, "custom provider profile update requires a non-zero resource_version; "
			    "export the current profile before editing it");
		return ams_refuse(AMS_ABORTED, "provider profile was modified concurrently (current resource_version: %d)", now);
	}
	v = am_set(v, "resource_version", jv_number(now + 1));
	rc = save(cli, "profiles", am_str(v, "id"), jv_copy(v));
	jv_free(v);
	if (rc != 0)
		return 1;
	puts(id == NULL ? "Imported 1 provider profile." : "Updated provider profile.");
	return am_finish(0);
}

static int
profile(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "file", required_argument, NULL, 'f' }, { "output", required_argument, NULL, 'o' }, { NULL, 0, NULL, 0 }
	};
	const char *verb = argc > 0 ? argv[0] : "", *file = NULL, *output = "json";
	int c, update = strcmp(verb, "update") == 0, export = strcmp(verb, "export") == 0;
	jv v;

	if (!update && !export && strcmp(verb, "lint") != 0 && strcmp(verb, "import") != 0)
		return ams_cli_usage("provider profile: must be lint, import, update or export");
	optind = 0;
	while ((c = getopt_long(argc, argv, "f:o:", longopts, NULL)) != -1) {
		switch (c) {
		case 'f': file = optarg; break;
		case 'o': output = optarg; break;
		default: return ams_cli_usage("provider profile %s: usage", verb);
		}
	}
	if (optind + (update || export) != argc || (!export && file == NULL) ||
	    (strcmp(output, "json") != 0 && strcmp(output, "yaml") != 0))
		return ams_cli_usage("provider profile %s: needs %s", verb,
		    export ? "one ID and -o json or yaml" : update ? "one ID and -f FILE" : "-f FILE");
	if (!export)
		return profile_store(cli, verb, file, update ? argv[optind] : NULL);
	v = load(cli, "profiles", argv[optind]);
	if (jv_is_valid(v) && strcmp(output, "json") == 0)
		return ams_cli_print(v);
	if (jv_is_valid(v)) {
		ams_profile_yaml(v);
		jv_free(v);
		return am_finish(0);
	}
	jv_free(v);
	return ams_refuse(AMS_NOT_FOUND, "provider profile '%s' not found", am_quotes(argv[optind]));
}

/* ---- providers ---- */

static int
make(struct ams_cli *cli, const char *name, const char *type)
{
	return save(cli, "providers", name, am_set_str(am_set_str(jv_object(), "name", name), "type", type));
}

static int
create(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "type", required_argument, NULL, 't' },
		{ "from-existing", no_argument, NULL, 'x' },
		{ "credential", required_argument, NULL, 'c' },
		{ "runtime-credentials", no_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 }
	};
	const char *name = NULL, *type = NULL;
	int c, how = 0;
	jv v;

	optind = 0;
	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		switch (c) {
		case 'n': name = optarg; break;
		case 't': type = optarg; break;
		case 'x': case 'c': case 'r': how = 1; break;	/* where a value would come from; none is taken */
		default: return ams_cli_usage("provider create: usage");
		}
	}
	if (name == NULL || type == NULL || !how || optind != argc)
		return ams_cli_usage("provider create: needs --name, --type, and one of --from-existing, --credential, --runtime-credentials");
	if (!ams_profile_id_fits(name))
		return ams_refuse(AMS_INVALID_ARGUMENT, "provider name must match ^[a-z0-9]+(-[a-z0-9]+)*$ with at most %d characters",
		    AMS_PROVIDER_NAME_MAX);
	v = load(cli, "profiles", type);
	if (!jv_is_valid(v)) {
		jv_free(v);
		return ams_refuse(AMS_INVALID_ARGUMENT, "unsupported provider type or profile: %s", am_quotes(type));
	}
	jv_free(v);
	v = load(cli, "providers", name);
	c = jv_is_valid(v);
	jv_free(v);
	if (c)
		return ams_fail("provider '%s' already exists", name);
	if (make(cli, name, type) != 0)
		return 1;
	printf("\xe2\x9c\x93 Created provider %s\n", name);
	return am_finish(0);
}

static int
list_profiles(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "output", required_argument, NULL, 'o' }, { "limit", required_argument, NULL, 'l' }, { NULL, 0, NULL, 0 }
	};
	const char *output = "table";
	jv list;
	int c, i;

	optind = 0;
	while ((c = getopt_long(argc, argv, "o:", longopts, NULL)) != -1) {
		switch (c) {
		case 'o': output = optarg; break;
		case 'l': break;
		default: return ams_cli_usage("provider list-profiles: usage");
		}
	}
	if (optind != argc || (strcmp(output, "json") != 0 && strcmp(output, "table") != 0))
		return ams_cli_usage("provider list-profiles: -o must be json or table");
	list = jv_array();
	ams_state_files(cli->state, "profiles", &list);
	if (strcmp(output, "json") == 0)
		return ams_cli_print(list);
	for (i = 0; i < jv_array_length(jv_copy(list)); i++) {
		jv one = jv_array_get(jv_copy(list), i);

		printf("%-30s  %s\n", am_str(one, "id"), am_str(one, "display_name"));
		jv_free(one);
	}
	jv_free(list);
	return am_finish(0);
}

int
ams_cli_provider(struct ams_cli *cli, int argc, char *argv[])
{
	if (argc > 1 && strcmp(argv[1], "list-profiles") == 0)
		return list_profiles(cli, argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "profile") == 0)
		return profile(cli, argc - 2, argv + 2);
	if (argc > 1 && strcmp(argv[1], "create") == 0)
		return create(cli, argc - 1, argv + 1);
	return ams_cli_usage("provider: must be list-profiles, profile or create");
}

/* ---- for a sandbox ---- */

static int
resolve(struct ams_cli *cli, const char *name, int may_create)
{
	jv v = load(cli, "providers", name);
	int present = jv_is_valid(v);

	jv_free(v);
	if (present)
		return 0;
	if (!ams_profile_id_fits(name))
		return ams_refuse(AMS_INVALID_ARGUMENT, "provider name must match ^[a-z0-9]+(-[a-z0-9]+)*$ with at most %d characters",
		    AMS_PROVIDER_NAME_MAX);
	if (may_create < 0) {
		fprintf(stderr, "! Provider %s is missing: the sandbox is made without it\n", name);
		return 0;
	}
	if (may_create == 0)
		return ams_fail("missing required provider '%s'. Create it first with %s provider create, pass --auto-providers, or use "
		    "--no-auto-providers to go without", name, am_prog);
	fprintf(stderr, "Missing provider: %s\n", name);
	if (make(cli, name, name) != 0)
		return 1;
	fprintf(stderr, "\xe2\x9c\x93 Created provider %s (%s) as a record: an embedded sandbox has no network\n", name, name);
	return 0;
}

int
ams_providers_resolve(struct ams_cli *cli, jv names, int may_create)
{
	int n = jv_array_length(jv_copy(names)), rc = 0;

	for (int i = 0; i < n && rc == 0; i++) {
		jv name = jv_array_get(jv_copy(names), i);

		rc = resolve(cli, jv_string_value(name), may_create);
		jv_free(name);
	}
	jv_free(names);
	return rc;
}

/* One credential's variables; those that OpenShell keeps for itself are left out. */
static jv
placeholders(jv credential, jv env)
{
	jv vars = am_get(credential, "env_vars", JV_KIND_ARRAY);

	if (jv_is_valid(vars)) {
		jv_array_foreach(vars, i, var) {
			if (jv_get_kind(var) == JV_KIND_STRING && strncmp(jv_string_value(var), "OPENSHELL_", 10) != 0)
				env = jv_object_set(env, jv_copy(var), jv_string_fmt("openshell:resolve:env:%s", jv_string_value(var)));
			jv_free(var);
		}
	}
	jv_free(vars);
	return env;
}

jv
ams_providers_env(struct ams_cli *cli, jv names, jv env)
{
	jv_array_foreach(names, i, name) {
		jv provider = load(cli, "providers", jv_string_value(name));
		const char *type = am_str(provider, "type");
		jv doc = type != NULL ? load(cli, "profiles", type) : jv_invalid();
		jv list = am_get(doc, "credentials", JV_KIND_ARRAY);

		if (jv_is_valid(list)) {
			jv_array_foreach(list, k, credential) {
				env = placeholders(credential, env);
				jv_free(credential);
			}
		}
		jv_free(list);
		jv_free(doc);
		jv_free(provider);
		jv_free(name);
	}
	jv_free(names);
	return env;
}
