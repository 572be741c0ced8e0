/*
 * amap-profile - render the provider profile, and compare it with the gateway's copy
 *
 * Checks, rendering and comparison: spec deployment, section 10.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "json.h"
#include "path.h"
#include "utf8.h"

static const char usage[] =
    "usage: amap-profile render TEMPLATE PATH...\n"
    "       amap-profile compare RENDERED [LIST]\n"
    "       amap-profile update RENDERED [LIST]\n"
    "\n"
    "render prints the profile with the programs that may use it. The others read what\n"
    "`provider list-profiles -o json` printed (LIST, or standard input): compare prints\n"
    "absent, equal or differs; update prints the document that brings the copy in line.\n";

static int faults;

static void
fault(const char *what, const char *why)
{
	am_warnx("%s: %s", am_quotes(what), why);
	faults++;
}

static jv
read_document(const char *path)
{
	jv v = am_json_read(path, AM_JSON_MAX);

	if (!jv_is_valid(v))
		am_diex("%s: %s", path == NULL ? "<stdin>" : am_quotes(path), am_json_why(v));
	return v;
}

/* ---- checks, all of them reported ---- */

static int
is_blank(const char *s)
{
	return s == NULL || s[strspn(s, " \t\r\n")] == '\0';
}

static int
is_id(const char *s)
{
	for (;;) {
		size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789");

		if (n == 0)
			return 0;
		if (s[n] == '\0')
			return 1;
		if (s[n] != '-')
			return 0;
		s += n + 1;
	}
}

static int
is_in(const char *s, const char *const *words)
{
	for (; s != NULL && *words != NULL; words++)
		if (strcmp(s, *words) == 0)
			return 1;
	return 0;
}

/* The one object of the array under a key; invalid, and a fault, when there is not exactly one. */
static jv
the_one(jv profile, const char *key)
{
	jv list = am_get(profile, key, JV_KIND_ARRAY), one = jv_invalid();

	if (jv_is_valid(list) && jv_array_length(jv_copy(list)) == 1) {
		jv_free(one);
		one = jv_array_get(jv_copy(list), 0);
	}
	jv_free(list);
	if (jv_get_kind(one) == JV_KIND_OBJECT)
		return one;
	jv_free(one);
	fault(key, "there must be exactly one, an object");
	return jv_invalid();
}

static void
check_credential(jv profile)
{
	jv credential = the_one(profile, "credentials"), vars, discovery, names;
	jv want = JV_ARRAY(jv_string("ANTHROPIC_API_KEY"));
	const char *name = am_str(credential, "name"), *style = am_str(credential, "auth_style");
	int n;

	if (!jv_is_valid(credential)) {
		jv_free(want);
		return;
	}
	vars = am_get(credential, "env_vars", JV_KIND_ARRAY);
	if (!jv_equal(vars, want))
		fault("credentials.env_vars", "must be ANTHROPIC_API_KEY and nothing else");
	if (style != NULL && strcmp(style, "header") == 0 && is_blank(am_str(credential, "header_name")))
		fault("credentials.header_name", "is needed with the auth_style header");
	if (is_blank(name))
		fault("credentials.name", "is needed");
	discovery = am_get(profile, "discovery", JV_KIND_OBJECT);
	names = am_get(discovery, "credentials", JV_KIND_ARRAY);
	n = jv_is_valid(names) ? jv_array_length(jv_copy(names)) : 0;
	if (n == 0)
		fault("discovery.credentials", "must name the credential");
	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(names), i);

		if (jv_get_kind(one) != JV_KIND_STRING || name == NULL || strcmp(jv_string_value(one), name) != 0)
			fault("discovery.credentials", "names a credential that is not declared");
		jv_free(one);
	}
	jv_free(names);
	jv_free(discovery);
	jv_free(credential);
}

static void
check_endpoint(jv profile)
{
	jv endpoint = the_one(profile, "endpoints"), port;
	const char *protocol = am_str(endpoint, "protocol"), *tls = am_str(endpoint, "tls");

	if (!jv_is_valid(endpoint))
		return;
	port = am_get(endpoint, "port", JV_KIND_NUMBER);
	if (!jv_is_valid(port) || jv_number_value(port) != 443)
		fault("endpoints.port", "must be 443");
	jv_free(port);
	if (protocol == NULL || strcmp(protocol, "rest") != 0)
		fault("endpoints.protocol", "must be rest");
	if (tls != NULL && strcmp(tls, "skip") == 0)
		fault("endpoints.tls", "must not be skip");
	if (am_has(endpoint, "allow_uninspected_credentials"))
		fault("endpoints.allow_uninspected_credentials", "must not be there");
	jv_free(endpoint);
}

static void
check_template(jv profile)
{
	static const char *const keys[] = { "id", "display_name", "description", "category", "inference_capable",
		"credentials", "discovery", "endpoints", "binaries", NULL };
	static const char *const categories[] = { "other", "inference", "agent", "source_control", "messaging",
		"data", "knowledge", NULL };
	static const char *const texts[] = { "id", "display_name", "description", NULL };
	const char *unknown = am_unknown_key(profile, keys), *id = am_str(profile, "id");

	if (unknown != NULL)
		fault(unknown, "a profile has no such key");
	for (const char *const *t = texts; *t != NULL; t++)
		if (is_blank(am_str(profile, *t)))
			fault(*t, "is needed, and must say something");
	if (id != NULL && (!is_id(id) || strcmp(id, "claude-code") == 0))
		fault("id", "must be words of a-z and 0-9 joined by hyphens, and not claude-code");
	if (!is_in(am_str(profile, "category"), categories))
		fault("category", "not one that OpenShell knows");
	check_credential(profile);
	check_endpoint(profile);
}

/* ---- rendering ---- */

static const char *
binary_problem(const char *path)
{
	uint32_t c;
	const char *why;
	int n;

	for (const char *p = path; *p != '\0'; p += n)
		if ((n = am_utf8_next(p, strlen(p), &c)) < 0 || c == ' ' || !am_printable(c))
			return "it holds white space or an unprintable character";
	why = am_path_problem(path);
	return why != NULL && strcmp(why, "it holds a colon") == 0 ? NULL : why;
}

static int
render(const char *template, char **paths, int n)
{
	jv profile = read_document(template), binaries = jv_array(), seen = jv_object();
	const char *why;
	char *text;

	if (jv_get_kind(profile) != JV_KIND_OBJECT)
		am_diex("%s: not an object", am_quotes(template));
	check_template(profile);
	for (int i = 0; i < n; i++) {
		if ((why = binary_problem(paths[i])) != NULL) {
			fault(paths[i], why);
		} else if (!am_has(seen, paths[i])) {
			seen = am_set(seen, paths[i], jv_true());
			binaries = jv_array_append(binaries, jv_string(paths[i]));
		}
	}
	jv_free(seen);
	profile = am_set(profile, "binaries", binaries);
	if (faults == 0) {
		text = am_json_text(profile, AM_DOCUMENT, NULL);
		fputs(text, stdout);
		free(text);
	}
	jv_free(profile);
	return faults > 0 ? AM_PROBLEM : AM_OK;
}

/* ---- comparison ---- */

/* Borrows; a new object with these keys of it, as far as they are there. */
static jv
part(jv object, const char *const *keys)
{
	jv out = jv_object();

	for (; *keys != NULL; keys++)
		if (am_has(object, *keys))
			out = am_set(out, *keys, jv_object_get(jv_copy(object), jv_string(*keys)));
	return out;
}

/* Borrows the profile: that part of each object in the array under key. */
static jv
parts(jv profile, const char *key, const char *const *keys)
{
	jv list = am_get(profile, key, JV_KIND_ARRAY), out = jv_array();
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(list), i);

		out = jv_array_append(out, part(one, keys));
		jv_free(one);
	}
	jv_free(list);
	return out;
}

/* Paths, whether they are written as strings or as objects with a path. */
static jv
binaries_of(jv profile)
{
	jv list = am_get(profile, "binaries", JV_KIND_ARRAY), out = jv_array();
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(list), i);

		if (jv_get_kind(one) == JV_KIND_OBJECT)
			one = jv_object_get(one, jv_string("path"));
		out = jv_array_append(out, jv_is_valid(one) ? one : jv_null());
	}
	jv_free(list);
	return out;
}

/* Borrows: all that decides whether two profiles are equal. */
static jv
essence(jv profile)
{
	static const char *const top[] = { "id", "display_name", "description", "category", "inference_capable", NULL };
	static const char *const credential[] = { "name", "env_vars", "required", "auth_style", "header_name", NULL };
	static const char *const endpoint[] = { "host", "port", "protocol", "access", "enforcement", NULL };
	jv out = part(profile, top), discovery = am_get(profile, "discovery", JV_KIND_OBJECT);

	out = am_set(out, "credentials", parts(profile, "credentials", credential));
	out = am_set(out, "endpoints", parts(profile, "endpoints", endpoint));
	out = am_set(out, "binaries", binaries_of(profile));
	if (am_has(discovery, "credentials"))
		out = am_set(out, "discovery", jv_object_get(jv_copy(discovery), jv_string("credentials")));
	jv_free(discovery);
	return out;
}

/* The gateway's copy; invalid when there is none. More than one is refused. */
static jv
find_copy(const char *path, const char *id)
{
	jv list = read_document(path), copy = jv_invalid();
	int n, found = 0;

	if (jv_get_kind(list) != JV_KIND_ARRAY)
		am_diex("%s: the list of profiles is no array", path == NULL ? "<stdin>" : am_quotes(path));
	n = jv_array_length(jv_copy(list));
	for (int i = 0; i < n; i++) {
		jv one = jv_array_get(jv_copy(list), i);
		const char *have = am_str(one, "id");

		if (have != NULL && strcmp(have, id) == 0 && found++ == 0)
			copy = one;
		else
			jv_free(one);
	}
	jv_free(list);
	if (found > 1)
		am_diex("%s: the gateway has %d profiles of this id; remove those that are not ours", id, found);
	return copy;
}

static int
compare(jv rendered, jv copy)
{
	printf("%s\n", !jv_is_valid(copy) ? "absent" :
	    jv_equal(essence(rendered), essence(copy)) ? "equal" : "differs");
	return AM_OK;
}

static int
update(jv rendered, jv copy)
{
	jv version = am_get(copy, "resource_version", JV_KIND_NUMBER);
	double v = jv_is_valid(version) ? jv_number_value(version) : 0;
	char *text;

	if (v <= 0 || v > 9e15 || v != (double)(long long)v)
		am_diex("%s: the gateway's copy has no resource_version above 0", am_str(rendered, "id"));
	rendered = am_set(jv_copy(rendered), "resource_version", version);
	text = am_json_text(rendered, AM_DOCUMENT, NULL);
	fputs(text, stdout);
	free(text);
	jv_free(rendered);
	return AM_OK;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	const char *what, *id;
	jv rendered, copy;
	int c, rc;

	am_prog = "amap-profile";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		am_std_option(c, usage);
	argc -= optind;
	argv += optind;
	if (argc < 2)
		am_usage(usage);
	what = argv[0];
	if (strcmp(what, "render") == 0 && argc > 2)
		return am_finish(render(argv[1], argv + 2, argc - 2));
	if ((strcmp(what, "compare") != 0 && strcmp(what, "update") != 0) || argc > 3)
		am_usage(usage);
	rendered = read_document(argv[1]);
	if ((id = am_str(rendered, "id")) == NULL)
		am_diex("%s: no rendered profile", am_quotes(argv[1]));
	copy = find_copy(argv[2], id);
	rc = strcmp(what, "compare") == 0 ? compare(rendered, copy) : update(rendered, copy);
	jv_free(copy);
	jv_free(rendered);
	return am_finish(rc);
}
