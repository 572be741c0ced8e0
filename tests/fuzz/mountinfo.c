/*
 * A mount table, whatever it says, is read to an answer: a mount that is there
 * and can be walked to, or why not. A row of a container is told or refused.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mountinfo.h"
#include "mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = { "/", "/opt/amap/lanes/inbox", "/proc/self" };
	char *text = strndup((const char *)data, size);
	struct am_mountinfo mi;
	struct am_mounts m;
	jv entry, wanted = am_set_str(jv_object(), "/opt/amap/lanes/inbox", "/");

	if (text == NULL)
		abort();
	if (am_mountinfo_parse(&mi, text) == 0) {
		if (mi.n == 0)
			abort();
		for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
			if (am_mountinfo_at(&mi, paths[i]) == NULL && mi.why[0] == '\0')
				abort();
	} else if (mi.why[0] == '\0') {
		abort();
	}
	am_mountinfo_free(&mi);

	entry = am_set_str(jv_object(), "Mountinfo", text);
	entry = am_set(entry, "State", am_set(jv_object(), "Pid", jv_number(1)));
	if (am_mounts_read(&m, entry, wanted, 1) != 0 && m.why[0] == '\0')
		abort();
	am_mounts_free(&m);
	jv_free(entry);

	entry = am_json_parse(text, strlen(text));
	if (jv_is_valid(entry) && am_mounts_read(&m, entry, wanted, 0) != 0 && m.why[0] == '\0')
		abort();
	if (jv_is_valid(entry))
		am_mounts_free(&m);
	jv_free(entry);
	jv_free(wanted);
	free(text);
	return 0;
}
