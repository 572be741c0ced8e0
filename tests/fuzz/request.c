/*
 * A request that is judged sound obeys every rule of its class, is the
 * sender's own, and stays sound when it is written again; what is shown of it
 * is printable. Any other gets a reason that is whole and one line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "doc.h"
#include "json.h"
#include "router/policy.h"
#include "utf8.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct amr_conf conf;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char text[] = "{\"state_dir\":\"/s\",\"fleet_domain\":\"x\",\"instances\":{"
	    "\"a\":{\"handoff_dir\":\"/a\"},\"b\":{\"handoff_dir\":\"/b\",\"peer_senders\":[\"a\"]}}}";
	char why[256];

	(void)argc, (void)argv;
	conf.outcome_ids = jv_invalid();
	conf.report = jv_array();
	if (amr_conf_read(&conf, text, sizeof text - 1, why, sizeof why) != 0)
		abort();
	return 0;
}

static void
check_printable(jv text)
{
	jv shown = amr_display_text(text, 300);
	const char *s = jv_string_value(shown);
	size_t left = (size_t)jv_string_length_bytes(jv_copy(shown));

	while (left > 0) {
		uint32_t c;
		int n = am_utf8_next(s, left, &c);

		if (n < 0 || !am_printable(c))
			abort();
		s += n;
		left -= (size_t)n;
	}
	jv_free(shown);
	jv_free(text);
}

static void
check_sound(const struct amr_request *q)
{
	jv problems = am_doc_problems("submit-request", q->doc), to = amr_recipients(&conf, q->draft), key;
	const char *s = am_str(q->doc, "req_id");
	struct amr_request again;
	size_t len;
	char *text;

	if (jv_array_length(problems) != 0 || s == NULL || strcmp(s, q->id) != 0)
		abort();
	s = am_str(q->doc, "agent_id");
	if (am_has(q->doc, "agent_id") && (s == NULL || strcmp(s, "a") != 0))
		abort();
	if (jv_is_valid(to) && jv_array_length(jv_copy(to)) > 2)
		abort();
	jv_free(to);
	check_printable(am_get(q->draft, "subject", JV_KIND_STRING));
	check_printable(am_get(q->draft, "body_text", JV_KIND_STRING));
	if (jv_is_valid(key = amr_request_key(q)))
		check_printable(key);
	text = am_json_text(q->doc, AM_SORTED, &len);
	amr_request_init(&again, "7");
	if (amr_request_judge(&again, text, len, "a") != 0)
		abort();
	amr_request_free(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct amr_request q;
	char *text = malloc(size + 1);

	if (text == NULL)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	amr_request_init(&q, "7");
	if (amr_request_judge(&q, text, size, "a") == 0)
		check_sound(&q);
	else if (q.answer.outcome == NULL || q.answer.reason == NULL || jv_get_kind(q.answer.detail) != JV_KIND_STRING ||
	    strchr(jv_string_value(q.answer.detail), '\n') != NULL)
		abort();
	amr_request_free(&q);
	return 0;
}
