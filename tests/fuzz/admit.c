/*
 * A create that is allowed mounts nothing but rows of the member that it
 * names, as strict as the table has them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admit.h"
#include "lane.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char home[] = "/tmp/amap-fuzz-XXXXXX";

static char fleet[64];

static void
clean_up(void)
{
	unlink(fleet);
	rmdir(home);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FILE *fp;

	(void)argc, (void)argv;
	if (mkdtemp(home) == NULL)
		abort();
	snprintf(fleet, sizeof fleet, "%s/fleet.json", home);
	atexit(clean_up);
	if ((fp = fopen(fleet, "w")) == NULL)
		abort();
	fputs("{\"workspace\":\"lab\",\"fleet_domain\":\"x\",\"groups\":{\"g\":[\"tom\",\"uma\"]}}", fp);
	fclose(fp);
	return 0;
}

/* Consumes o: the member under the first of two names that is there. */
static jv
either(jv o, const char *a, const char *b)
{
	jv v = jv_invalid();

	if (jv_get_kind(o) == JV_KIND_OBJECT) {
		jv_free(v);
		v = jv_object_get(jv_copy(o), jv_string(am_has(o, a) ? a : b));
	}
	jv_free(o);
	return v;
}

static void
check_mount(jv mount, const char *name)
{
	struct am_row rows[AM_ROWS];
	const char *source = am_str(mount, "source");
	jv flag = jv_object_get(jv_copy(mount), jv_string("read_only"));
	int read_only = jv_get_kind(flag) != JV_KIND_FALSE, found = 0;

	jv_free(flag);
	if (source == NULL || name == NULL)
		abort();
	am_rows_make(rows, home, name);
	for (int i = 0; i < AM_ROWS; i++)
		found |= strcmp(rows[i].source, source) == 0 && rows[i].read_only == read_only;
	am_rows_free(rows);
	if (!found)
		abort();
}

static void
check_allowed(jv request)
{
	jv v = either(jv_copy(request), "spec", "spec");

	v = either(either(v, "template", "template"), "driverConfig", "driver_config");
	v = either(either(v, "docker", "docker"), "mounts", "mounts");
	if (jv_get_kind(v) == JV_KIND_ARRAY)
		for (int i = 0; i < jv_array_length(jv_copy(v)); i++) {
			jv mount = jv_array_get(jv_copy(v), i);

			check_mount(mount, am_str(request, "name"));
			jv_free(mount);
		}
	jv_free(v);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 64), *hole;
	jv request, reasons;

	if (text == NULL)
		abort();
	memcpy(text, data, size);
	memset(text + size, 0, 64);
	/* The home has another name each time: a seed says HOME where it is meant. */
	if ((hole = memmem(text, size, "HOME", 4)) != NULL) {
		memmove(hole + sizeof home - 1, hole + 4, size - (size_t)(hole - text) - 4);
		memcpy(hole, home, sizeof home - 1);
		size += sizeof home - 1 - 4;
	}
	request = am_json_parse(text, size);
	free(text);
	if (jv_is_valid(request)) {
		reasons = am_admit(home, request);
		if (jv_array_length(reasons) == 0)
			check_allowed(request);
	}
	jv_free(request);
	return 0;
}
