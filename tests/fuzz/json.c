/*
 * What the strict reader takes, libjq's own parser takes as well, with the
 * same value; and it reads back the same from each style of the writer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must_equal(jv a, jv b)
{
	if (!jv_is_valid(b) || !jv_equal(jv_copy(a), b))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum am_json_style styles[] = { AM_COMPACT, AM_SORTED, AM_DOCUMENT };
	char *text = malloc(size + 1), *again;
	size_t len;
	jv v;

	if (text == NULL)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	v = am_json_parse(text, size);
	if (!jv_is_valid(v)) {
		if (strlen(am_json_why(v)) == 0)
			abort();
		free(text);
		return 0;
	}
	must_equal(v, jv_parse_sized(text, (int)size));
	for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++) {
		again = am_json_text(v, styles[i], &len);
		must_equal(v, am_json_parse(again, len));
		free(again);
	}
	free(text);
	jv_free(v);
	return 0;
}
