#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "health/health.h"

#define MARKER_MAX (16u << 20)

struct am_check
am_health_check(const char *id, const char *claim, const char *provenance, const char *remedy)
{
	return (struct am_check){ .section = AM_HEALTH, .id = id, .claim = claim, .provenance = provenance,
	    .remedy = remedy };
}

static int
contains(jv names, const char *name)
{
	int found = 0;

	jv_array_foreach(names, i, n) {
		found |= strcmp(jv_string_value(n), name) == 0;
		jv_free(n);
	}
	return found;
}

static void
warn_snapshot(struct am_checks *out, const char *name, jv marker)
{
	jv list = am_get(marker, "outbox_snapshot", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;
	char text[400];

	if (n > 0) {
		jv first = jv_array_get(jv_copy(list), 0);
		const char *file = am_str(first, "filename");

		snprintf(text, sizeof text, "%s: %d file%s lay in its outbox at first sight and went to quarantine (%s%s)",
		    name, n, n == 1 ? "" : "s", file == NULL ? "?" : am_quotes(file), n == 1 ? "" : ", ...");
		am_check_warning(out, AM_HEALTH, text);
		jv_free(first);
	}
	jv_free(list);
}

static void
warn_retired(struct am_checks *out, int state, jv instances)
{
	DIR *dir = fdopendir(dup(state));
	struct dirent *e;
	char text[400];

	if (dir == NULL)
		return;
	while ((e = readdir(dir)) != NULL) {
		char path[300];
		struct stat st;

		snprintf(path, sizeof path, "%s/first-seen.json", e->d_name);
		if (e->d_name[0] != '.' && !contains(instances, e->d_name) && fstatat(state, path, &st, 0) == 0) {
			snprintf(text, sizeof text, "%s: the router still keeps the state of this instance, which is not"
			    " selected", am_quotes(e->d_name));
			am_check_warning(out, AM_HEALTH, text);
		}
	}
	closedir(dir);
}

void
am_health_markers(struct am_checks *out, const struct am_router_config *config, jv instances, const char *why)
{
	struct am_check seen = am_health_check("H4", "each instance has been seen for a first time",
	    "selected.json and the directories of the instances", "wait for one poll, then look at the router's log");
	struct am_check sound = am_health_check("H5", "each mark of a first sight is sound", "the marks that are there",
	    "look at the named first-seen.json: the router writes it anew when it is gone, and then quarantines"
	    " what waits in that outbox");
	int state = config->state_dir == NULL ? -1 : open(config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[300];

	if (!jv_is_valid(instances) || state < 0) {
		snprintf(text, sizeof text, "the router's state: %s",
		    config->state_dir == NULL ? "router.json has no state_dir" : strerror(errno));
		am_check_unknown(out, &seen, jv_is_valid(instances) ? text : why);
		if (state >= 0)
			close(state);
		return;
	}
	seen.expected = jv_copy(instances);
	seen.actual = jv_array();
	sound.actual = jv_array();
	jv_array_foreach(instances, i, n) {
		const char *name = jv_string_value(n), *mine, *when;
		size_t len;
		char path[300], *bytes;
		int fd;

		snprintf(path, sizeof path, "%s/first-seen.json", name);
		if ((fd = am_open_regular(state, path, MARKER_MAX)) >= 0) {
			jv marker = jv_invalid();

			seen.actual = jv_array_append(seen.actual, jv_copy(n));
			if ((bytes = am_read_fd(fd, MARKER_MAX, &len)) != NULL)
				marker = am_json_parse(bytes, len);
			mine = am_str(marker, "instance");
			when = am_str(marker, "first_seen_ts");
			if (mine != NULL && strcmp(mine, name) == 0 && when != NULL && *when != '\0')
				sound.actual = jv_array_append(sound.actual, jv_copy(n));
			warn_snapshot(out, name, marker);
			jv_free(marker);
			free(bytes);
			close(fd);
		}
		jv_free(n);
	}
	sound.expected = jv_copy(seen.actual);
	am_check_equal(out, &seen);
	am_check_equal(out, &sound);
	warn_retired(out, state, instances);
	close(state);
}
