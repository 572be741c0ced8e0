/*
 * An outcome file that is taken has a known outcome, and nothing but the
 * members that the spec gives it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "router/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char nid[] = "00000000000000000000000000000000";
	enum amr_outcome outcome = AM_OUTCOMES;
	char *text = malloc(size + 1);
	const char *s;
	jv doc;

	if (text == NULL)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	doc = am_json_parse(text, size);
	if (amr_outcome_judge(doc, nid, &outcome) == 0) {
		if (outcome >= AM_OUTCOMES || (s = am_str(doc, "outcome")) == NULL || strcmp(s, amr_outcome_names[outcome]) != 0 ||
		    (s = am_str(doc, "notice_id")) == NULL || strcmp(s, nid) != 0 ||
		    jv_object_length(jv_copy(doc)) != (am_has(doc, "detail") ? 5 : 4))
			abort();
	}
	jv_free(doc);
	free(text);
	return 0;
}
