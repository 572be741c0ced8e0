#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "doc.h"
#include "router/request.h"

int
amr_is_request_name(const char *name, char out[AM_REQ_ID_MAX + 1])
{
	size_t len = strlen(name), n;

	if (len < 4 + 1 + 5 || strncmp(name, "req-", 4) != 0 || strcmp(name + len - 5, ".json") != 0)
		return 0;
	n = len - 4 - 5;
	if (n > AM_REQ_ID_MAX)
		return 0;
	for (size_t i = 0; i < n; i++) {
		char c = name[4 + i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
			return 0;
	}
	memcpy(out, name + 4, n);
	out[n] = '\0';
	return 1;
}

void
amr_request_init(struct amr_request *q, const char *id)
{
	memset(q, 0, sizeof *q);
	snprintf(q->id, sizeof q->id, "%s", id);
	q->doc = q->draft = jv_invalid();
	q->answer.detail = q->answer.message_id = jv_null();
	q->answer.recipients = q->answer.attachments = jv_invalid();
}

void
amr_request_free(struct amr_request *q)
{
	for (size_t i = 0; i < q->n_blobs; i++) {
		free(q->blobs[i].bytes);
		jv_free(q->blobs[i].filename);
		jv_free(q->blobs[i].media_type);
	}
	free(q->blobs);
	free(q->bytes);
	jv_free(q->doc);
	jv_free(q->draft);
	jv_free(q->answer.detail);
	jv_free(q->answer.message_id);
	jv_free(q->answer.recipients);
	jv_free(q->answer.attachments);
}

void
amr_refuse(struct amr_request *q, const char *outcome, const char *reason, const char *detail)
{
	q->answer.outcome = outcome;
	q->answer.reason = reason;
	jv_free(q->answer.detail);
	q->answer.detail = detail == NULL ? jv_null() : jv_string(detail);
}

static int
malformed(struct amr_request *q, const char *detail)
{
	amr_refuse(q, "rejected", "malformed_request", detail);
	return -1;
}

static int
shape(struct amr_request *q)
{
	static const char *const known[] = { "contract_version", "req_id", "agent_id", "ts", "in_reply_to", "draft", NULL };
	const char *version = am_str(q->doc, "contract_version");
	jv problems, first;
	int rc = 0;

	if (jv_get_kind(q->doc) != JV_KIND_OBJECT)
		return malformed(q, "not an object");
	if (am_unknown_key(q->doc, known) != NULL)
		return malformed(q, "a member that a request does not have");
	if (version == NULL || strcmp(version, "2") != 0) {
		amr_refuse(q, "rejected", "unsupported_contract_version", "contract_version is not \"2\"");
		return -1;
	}
	problems = am_doc_problems("submit-request", q->doc);
	if (jv_array_length(jv_copy(problems)) > 0) {
		first = jv_array_get(jv_copy(problems), 0);
		rc = malformed(q, jv_string_value(first));
		jv_free(first);
	}
	jv_free(problems);
	return rc;
}

int
amr_request_judge(struct amr_request *q, char *bytes, size_t len, const char *instance)
{
	const char *s;

	q->bytes = bytes;
	q->len = len;
	amr_digest(bytes, len, q->digest);
	q->doc = am_json_parse(bytes, len);
	if (!jv_is_valid(q->doc)) {
		const char *why = am_json_why(q->doc);

		q->doc = jv_invalid();
		return malformed(q, am_quotes(why));
	}
	if (shape(q) != 0)
		return -1;
	s = am_str(q->doc, "req_id");
	if (s == NULL || strcmp(s, q->id) != 0) {
		amr_refuse(q, "rejected", "req_id_mismatch", "req_id is not the id of the file's name");
		return -1;
	}
	s = am_str(q->doc, "agent_id");
	if (am_has(q->doc, "agent_id") && (s == NULL || strcmp(s, instance) != 0)) {
		amr_refuse(q, "rejected", "agent_id_mismatch", "agent_id is not the sender");
		return -1;
	}
	q->draft = am_get(q->doc, "draft", JV_KIND_OBJECT);
	return 0;
}

jv
amr_request_key(const struct amr_request *q)
{
	jv key = am_get(q->doc, "in_reply_to", JV_KIND_STRING);

	if (jv_is_valid(key) && jv_string_length_bytes(jv_copy(key)) > 0)
		return key;
	jv_free(key);
	key = am_get(q->draft, "reply_to_message_id", JV_KIND_STRING);
	if (jv_is_valid(key) && jv_string_length_bytes(jv_copy(key)) > 0)
		return key;
	jv_free(key);
	return jv_invalid();
}
