#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "diag.h"
#include "routerview.h"

int
am_router_config_read(struct am_router_config *c, const char *path)
{
	memset(c, 0, sizeof *c);
	c->doc = am_json_read_regular(path, 0, AM_JSON_MAX);
	if (!jv_is_valid(c->doc)) {
		snprintf(c->why, sizeof c->why, "%s: %s", am_quotes(path), am_json_why(c->doc));
		c->doc = jv_invalid();
		return -1;
	}
	if (jv_get_kind(c->doc) != JV_KIND_OBJECT) {
		snprintf(c->why, sizeof c->why, "%s: it is no JSON object", am_quotes(path));
		return -1;
	}
	c->state_dir = am_str(c->doc, "state_dir");
	c->instances_dir = am_str(c->doc, "instances_dir");
	c->selected_json = am_str(c->doc, "selected_json");
	return 0;
}

void
am_router_config_free(struct am_router_config *c)
{
	jv_free(c->doc);
}

static jv
cannot(const char *path, const char *why)
{
	return jv_invalid_with_msg(jv_string_fmt("%s: %s", am_quotes(path), why));
}

static int
is_selected(jv selected, const char *name)
{
	int found = 0;

	jv_array_foreach(selected, i, e) {
		const char *slug = am_str(e, "slug");

		found |= slug != NULL && strcmp(slug, name) == 0;
		jv_free(e);
	}
	return found;
}

jv
am_router_instances(const struct am_router_config *c)
{
	jv verdict, selected, names = jv_array();
	struct dirent *e;
	struct stat st;
	DIR *dir;

	if (c->instances_dir == NULL || c->selected_json == NULL)
		return jv_invalid_with_msg(jv_string("router.json has no instances_dir or no selected_json"));
	verdict = am_json_read_regular(c->selected_json, 0, AM_JSON_MAX);
	if (!jv_is_valid(verdict))
		return cannot(c->selected_json, am_json_why(verdict));
	if (jv_get_kind(verdict) != JV_KIND_OBJECT) {
		jv_free(verdict);
		return cannot(c->selected_json, "it is no JSON object");
	}
	selected = am_get(verdict, "selected", JV_KIND_ARRAY);
	if (!jv_is_valid(selected))
		selected = jv_array();
	jv_free(verdict);
	if ((dir = opendir(c->instances_dir)) == NULL) {
		jv_free(selected);
		return cannot(c->instances_dir, strerror(errno));
	}
	while ((errno = 0, e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.' && fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode) && is_selected(selected, e->d_name))
			names = jv_array_append(names, jv_string(e->d_name));
	if (errno != 0) {
		jv_free(names);
		names = cannot(c->instances_dir, strerror(errno));
	}
	closedir(dir);
	jv_free(selected);
	return jv_is_valid(names) ? jv_sort(names, jv_copy(names)) : names;
}

jv
am_router_status(jv answers, long *before)
{
	struct am_asked a;
	const char *p, *said;
	jv doc;

	*before = 0;
	if (!am_asked(answers, "router-status", NULL, &a))
		return jv_invalid_with_msg(jv_string(a.why));
	doc = am_json_parse(a.out, strlen(a.out));
	if (jv_get_kind(doc) == JV_KIND_OBJECT)
		return doc;
	jv_free(doc);
	for (p = a.out; *p != '\0' && *p != '{'; p += strcspn(p, "\n"), p += *p == '\n')
		(*before)++;
	doc = am_json_parse(p, strlen(p));
	if (jv_get_kind(doc) == JV_KIND_OBJECT)
		return doc;
	jv_free(doc);
	said = a.err != NULL && a.err[0] != '\0' ? a.err : a.out;
	return jv_invalid_with_msg(jv_string_fmt("the router's status printed no document: %s", am_quotes(said)));
}
