#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "json.h"
#include "router/conf.h"

/* ---- what lies on disk ---- */

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
real_directory(int dirfd, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return fstatat(dirfd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static void
list_directories(struct amr_found *f, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	size_t cap = 0;

	if (dir == NULL) {
		f->unreadable = 1;
		return;
	}
	while ((errno = 0, d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 || !real_directory(dirfd(dir), d))
			continue;
		if (f->n == cap && (f->names = realloc(f->names, (cap = cap ? cap * 2 : 64) * sizeof *f->names)) == NULL)
			abort();
		if ((f->names[f->n++] = strdup(d->d_name)) == NULL)
			abort();
	}
	f->unreadable = errno != 0;
	closedir(dir);
	if (f->n > 0)
		qsort(f->names, f->n, sizeof *f->names, by_bytes);
}

void
amr_found_gather(struct amr_found *f, const char *instances_dir, const char *state_dir, const char *selected_json)
{
	int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int verdict = open(selected_json, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	memset(f, 0, sizeof *f);
	list_directories(f, instances_dir);
	if ((f->has_state = calloc(f->n + 1, 1)) == NULL)
		abort();
	for (size_t i = 0; i < f->n && state >= 0; i++)
		f->has_state[i] = amr_is_instance_name(f->names[i], strlen(f->names[i])) &&
		    fstatat(state, f->names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
	if (verdict >= 0) {
		f->verdict = am_read_fd(verdict, AM_JSON_MAX, &f->verdict_len);
		close(verdict);
	}
	if (state >= 0)
		close(state);
}

void
amr_found_free(struct amr_found *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->names[i]);
	free(f->names);
	free(f->has_state);
	free(f->verdict);
}

/* ---- what the deployment said ---- */

static jv
slugs(jv doc, const char *key)
{
	jv list = am_get(doc, key, JV_KIND_ARRAY), set = jv_object();
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i);
		jv slug = am_get(item, "slug", JV_KIND_STRING);

		if (jv_is_valid(slug))
			set = jv_object_set(set, jv_copy(slug), jv_true());
		jv_free(slug);
		jv_free(item);
	}
	jv_free(list);
	return set;
}

struct amr_verdict
amr_verdict_read(const struct amr_found *f)
{
	struct amr_verdict v = { 0 };
	jv doc = f->verdict == NULL ? jv_invalid() : am_json_parse(f->verdict, f->verdict_len);

	v.known = jv_get_kind(doc) == JV_KIND_OBJECT;
	v.selected = v.known ? slugs(doc, "selected") : jv_object();
	v.declined = v.known ? slugs(doc, "not_selected") : jv_object();
	jv_free(doc);
	return v;
}

void
amr_verdict_free(struct amr_verdict *v)
{
	jv_free(v->selected);
	jv_free(v->declined);
}

/* ---- who is in ---- */

static jv
say(jv lines, const char *tag, const char *slug, const char *why)
{
	return jv_array_append(lines, jv_string_fmt("%s  %s: %s", tag, am_quotes(slug), why));
}

/*
 * Two directories whose names differ in case only: the incumbent is the one
 * with state. Without one, the first by byte order.
 */
static const char *
shadowed(const struct amr_found *f, size_t i, jv admitted)
{
	int n = jv_array_length(jv_copy(admitted));

	for (int k = 0; k < n; k++) {
		jv name = jv_array_get(jv_copy(admitted), k);
		int same = strcasecmp(jv_string_value(name), f->names[i]) == 0;

		jv_free(name);
		if (same)
			return "another instance has this name in other letter case";
	}
	if (f->has_state[i])
		return NULL;
	for (size_t k = 0; k < f->n; k++)
		if (k != i && f->has_state[k] && strcasecmp(f->names[k], f->names[i]) == 0)
			return "another directory has this name in other letter case, and state of its own";
	return NULL;
}

/* Cheap for a fleet without such names, which is every sound one. */
static int
has_twin(const struct amr_found *f, size_t i)
{
	for (size_t k = 0; k < f->n; k++)
		if (k != i && strcasecmp(f->names[k], f->names[i]) == 0)
			return 1;
	return 0;
}

jv
amr_discover(const struct amr_found *f, const struct amr_verdict *v)
{
	jv admitted = jv_array(), skipped = jv_array(), waiting = jv_array(), homeless = jv_array(), keys;
	size_t k = 0;

	for (size_t i = 0; i < f->n && v->known; i++) {
		const char *name = f->names[i], *why = NULL;

		if (!amr_is_instance_name(name, strlen(name)))
			why = "not a valid instance name";
		else if (strcasecmp(name, AM_ROUTER_NAME) == 0)
			why = "the router's own name";
		else if (has_twin(f, i))
			why = shadowed(f, i, admitted);
		if (why != NULL)
			skipped = say(skipped, "    SKIPPED", name, why);
		else if (!jv_object_has(jv_copy(v->selected), jv_string(name)))
			waiting = say(waiting, "    NO VERDICT", name, "the verdict file does not select it; left alone");
		else
			admitted = jv_array_append(admitted, jv_string(name));
	}
	keys = jv_keys(jv_copy(v->selected));	/* sorted */
	for (int i = 0; i < jv_array_length(jv_copy(keys)) && !f->unreadable; i++) {
		jv slug = jv_array_get(jv_copy(keys), i);

		while (k < f->n && strcmp(f->names[k], jv_string_value(slug)) < 0)
			k++;
		if (k == f->n || strcmp(f->names[k], jv_string_value(slug)) != 0)
			homeless = jv_array_append(homeless, jv_string_fmt("    ** NO DIRECTORY  %s: %s **",
			    am_quotes(jv_string_value(slug)), "selected, but it has no directory"));
		jv_free(slug);
	}
	jv_free(keys);
	return am_set(am_set(am_set(am_set(jv_object(), "admitted", admitted), "skipped", skipped),
	    "waiting", waiting), "homeless", homeless);
}
