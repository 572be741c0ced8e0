#include <stdio.h>
#include <string.h>

#include "doc.h"
#include "docrules.h"

jv
am_doc_problem(jv problems, const char *path, const char *text)
{
	return jv_array_append(problems, jv_string_fmt("%s: %s", path, text));
}

#define WORDS(...) ((const char *const []) { __VA_ARGS__, NULL })
#define VERSION { .words = WORDS("2") }
#define TEXT { .is = STRING }
#define SOME_TEXT { .is = STRING | NOT_EMPTY }
#define TEXT_OR_NULL { .is = STRING | OR_NULL }
#define ID { .is = STRING | NOT_EMPTY, .test = am_is_id }
#define ADDR { .is = STRING, .test = am_is_addr }
#define ONE_LINE { .is = STRING, .test = am_is_noctl }
#define SOME_LINE { .is = STRING | NOT_EMPTY, .test = am_is_noctl }

static const struct am_rule text = TEXT, id = ID, address = ADDR;

static const struct am_rule_member submitted_file[] = {
	{ "filename", 1, SOME_LINE },
	{ "media_type", 1, SOME_LINE },
	{ "size_bytes", 1, { .is = SIZE } },
	{ "sha256", 1, { .is = STRING, .test = am_is_sha256 } },
	{ .name = NULL }
};
static const struct am_rule submitted_files = { .is = OBJECT | CLOSED, .members = submitted_file };

static const struct am_rule_member draft[] = {
	{ "to", 1, { .is = ARRAY | NOT_EMPTY, .items = &address } },
	{ "cc", 0, { .is = ARRAY, .items = &address } },
	{ "subject", 1, ONE_LINE },
	{ "body_text", 1, TEXT },
	{ "reply_to_message_id", 0, { .is = STRING | OR_NULL, .test = am_is_noctl } },
	{ "attachments", 0, { .is = ARRAY, .items = &submitted_files } },
	{ .name = NULL }
};

static const struct am_rule_member submit_request[] = {
	{ "contract_version", 1, VERSION },
	{ "req_id", 1, ID },
	{ "agent_id", 0, SOME_LINE },
	{ "ts", 0, SOME_LINE },
	{ "in_reply_to", 0, ONE_LINE },
	{ "draft", 1, { .is = OBJECT | CLOSED, .members = draft } },
	{ .name = NULL }
};

static const struct am_rule_member attestation[] = {
	{ "form", 1, { .is = STRING, .words = WORDS("self-stamp", "verifiable") } },
	{ "token", 0, SOME_TEXT },
	{ "claims", 0, { .is = OBJECT } },
	{ .name = NULL }
};

static const struct am_rule_member verdict_on_file[] = {
	{ "index", 1, { .is = SIZE } },
	{ "outcome", 1, { .is = STRING, .words = WORDS("accepted", "dlp_held", "rejected_type", "too_large") } },
	{ "detail", 0, TEXT_OR_NULL },
	{ .name = NULL }
};
static const struct am_rule verdicts_on_files = { .is = OBJECT, .members = verdict_on_file };

static const struct am_rule_member result[] = {
	{ "contract_version", 1, VERSION },
	{ "req_id", 1, SOME_TEXT },
	{ "outcome", 1, { .is = STRING, .words = WORDS("accepted", "queued_for_human", "rejected") } },
	{ "detail", 0, TEXT_OR_NULL },
	{ "reason_code", 0, SOME_TEXT },
	{ "ts", 0, SOME_TEXT },
	{ "recipients", 0, { .is = ARRAY, .items = &text } },
	{ "message_id", 0, TEXT_OR_NULL },
	{ "job_id", 0, TEXT_OR_NULL },
	{ "attestation", 0, { .is = OBJECT, .members = attestation } },
	{ "attachments", 0, { .is = ARRAY, .items = &verdicts_on_files } },
	{ .name = NULL }
};

static jv
only_clean_bytes(jv problems, const char *path, jv object)
{
	static const char *const grants[] = { "content_ref", "sha256" };
	const char *disposition = am_str(object, "disposition");

	if (!am_has(object, "disposition") || (disposition != NULL && strcmp(disposition, "clean") == 0))
		return problems;
	for (size_t i = 0; i < 2; i++)
		if (am_has(object, grants[i])) {
			char at[600];

			snprintf(at, sizeof at, "%s.%s", path, grants[i]);
			problems = am_doc_problem(problems, at, "stands only where disposition is \"clean\"");
		}
	return problems;
}

static const struct am_rule_member delivered_file[] = {
	{ "filename", 1, SOME_TEXT },
	{ "media_type", 1, SOME_TEXT },
	{ "size_bytes", 1, { .is = SIZE } },
	{ "sha256", 0, { .is = STRING, .test = am_is_sha256 } },
	{ "disposition", 1, { .is = STRING, .words = WORDS("clean", "stripped", "quarantined", "unscanned") } },
	{ "content_ref", 0, { .is = STRING, .test = am_is_cref } },
	{ .name = NULL }
};
static const struct am_rule delivered_files = { .is = OBJECT, .members = delivered_file, .also = only_clean_bytes };

static const struct am_rule_member verdict[] = {
	{ "auth", 0, TEXT },
	{ "screen", 0, TEXT },
	{ "entitlement", 0, TEXT },
	{ .name = NULL }
};

static const struct am_rule_member mail[] = {
	{ "id", 1, SOME_TEXT },
	{ "from", 1, SOME_TEXT },
	{ "subject", 1, TEXT },
	{ "preview", 1, TEXT },
	{ "mailbox", 1, SOME_TEXT },
	{ "task_id", 0, SOME_TEXT },
	{ "thread_id", 0, TEXT },
	{ "in_reply_to", 0, TEXT },
	{ "references", 0, { .is = ARRAY, .items = &text } },
	{ "sender_standing", 0, TEXT },
	{ "provenance", 0, TEXT },
	{ "verdict", 0, { .is = OBJECT, .members = verdict } },
	{ "attachments", 0, { .is = ARRAY, .items = &delivered_files } },
	{ .name = NULL }
};

static const struct am_rule_member deliver_notice[] = {
	{ "contract_version", 1, VERSION },
	{ "notice_id", 1, ID },
	{ "ts", 1, SOME_TEXT },
	{ "kind", 1, { .words = WORDS("deliver") } },
	{ "message", 1, { .is = OBJECT, .members = mail } },
	{ .name = NULL }
};

static jv
dated_when_exposed(jv problems, const char *path, jv object)
{
	jv delivered = am_get(object, "external_mail_delivered", JV_KIND_TRUE);

	if (jv_is_valid(delivered) && !am_has(object, "last_external_delivery_ts")) {
		char at[600];

		snprintf(at, sizeof at, "%s.last_external_delivery_ts", path);
		problems = am_doc_problem(problems, at, "required where external_mail_delivered is true");
	}
	jv_free(delivered);
	return problems;
}

static const struct am_rule_member exposure[] = {
	{ "asserted_by", 1, { .is = STRING | NOT_EMPTY, .test = am_is_addr } },
	{ "external_mail_delivered", 1, { .is = BOOLEAN } },
	{ "window_start", 1, SOME_TEXT },
	{ "window_end", 1, SOME_TEXT },
	{ "last_external_delivery_ts", 0, SOME_TEXT },
	{ "derived_from", 0, { .is = ARRAY, .items = &id } },
	{ .name = NULL }
};

static const struct am_rule_member peer[] = {
	{ "id", 1, ID },
	{ "from", 1, { .is = STRING | NOT_EMPTY, .test = am_is_addr } },
	{ "subject", 1, TEXT },
	{ "preview", 1, TEXT },
	{ "mailbox", 1, { .words = WORDS("peer") } },
	{ "task_id", 0, SOME_TEXT },
	{ "thread_id", 0, TEXT },
	{ "in_reply_to", 0, ID },
	{ "references", 0, { .is = ARRAY, .items = &id } },
	{ "sender_standing", 0, TEXT },
	{ "provenance", 0, TEXT },
	{ "verdict", 0, { .is = OBJECT, .members = verdict } },
	{ "sender_exposure", 0, { .is = OBJECT, .members = exposure, .also = dated_when_exposed } },
	{ "attachments", 0, { .is = ARRAY, .items = &delivered_files } },
	{ .name = NULL }
};

static const struct am_rule_member peer_notice[] = {
	{ "contract_version", 1, VERSION },
	{ "notice_id", 1, ID },
	{ "ts", 1, SOME_TEXT },
	{ "kind", 1, { .words = WORDS("peer") } },
	{ "message", 1, { .is = OBJECT, .members = peer } },
	{ .name = NULL }
};

static const struct am_rule_member inbound_message[] = {
	{ "contract_version", 1, VERSION },
	{ "notice_id", 1, ID },
	{ "body_text", 1, TEXT },
	{ "id", 0, TEXT },
	{ "date", 0, TEXT },
	{ "from", 0, TEXT },
	{ "to", 0, TEXT },
	{ "cc", 0, TEXT },
	{ "subject", 0, TEXT },
	{ "attachments", 0, { .is = ARRAY, .items = &delivered_files } },
	{ .name = NULL }
};

static const struct am_rule_member binding_record[] = {
	{ "agent_id", 1, SOME_TEXT },
	{ "address", 1, SOME_TEXT },
	{ "provisioned_ts", 1, SOME_TEXT },
	{ "label", 0, TEXT },
	{ "contract_version", 0, VERSION },
	{ .name = NULL }
};

static const struct am_rule_member directory[] = {
	{ "router", 1, ADDR },
	{ "written_at", 1, SOME_LINE },
	{ "delegate_to", 1, { .is = ARRAY, .items = &address } },
	{ "mail_to", 1, { .is = ARRAY, .items = &address } },
	{ "contract_version", 0, VERSION },
	{ .name = NULL }
};

static const struct am_rule_member roster_member[] = {
	{ "address", 1, ADDR },
	{ "state", 1, SOME_LINE },
	{ .name = NULL }
};
static const struct am_rule roster_members = { .is = OBJECT, .members = roster_member };

static const struct am_rule_member roster[] = {
	{ "contract_version", 1, VERSION },
	{ "router", 1, ADDR },
	{ "written_at", 1, SOME_LINE },
	{ "interval_s", 0, { .is = NUMBER } },
	{ "members", 1, { .is = ARRAY, .items = &roster_members } },
	{ .name = NULL }
};

/* ---- what ties a whole document together (spec protocol, section 13.3) ---- */

static jv
indexes_in_order(jv problems, const char *path, jv doc)
{
	jv list = am_get(doc, "attachments", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;
	char at[96];

	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i);
		jv index = am_get(item, "index", JV_KIND_NUMBER);

		snprintf(at, sizeof at, "%s.attachments[%d].index", path, i);
		if (jv_is_valid(index) && jv_number_value(index) != i)
			problems = am_doc_problem(problems, at, "not the position in the array");
		jv_free(index);
		jv_free(item);
	}
	jv_free(list);
	return problems;
}

static jv
grants_of_its_own(jv problems, const char *path, jv doc)
{
	jv message = am_get(doc, "message", JV_KIND_OBJECT);
	int nested = jv_is_valid(message);
	jv list = am_get(nested ? message : doc, "attachments", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;
	jv notice_id = am_get(doc, "notice_id", JV_KIND_STRING);
	char at[96];

	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i), ref, want;

		if (am_has(item, "content_ref")) {
			ref = jv_object_get(jv_copy(item), jv_string("content_ref"));
			want = jv_string_concat(jv_is_valid(notice_id) ? jv_copy(notice_id) : jv_string("?"),
			    jv_string_fmt(".attachments/%d", i));
			snprintf(at, sizeof at, "%s%s.attachments[%d].content_ref", path, nested ? ".message" : "", i);
			if (!jv_equal(ref, want))
				problems = am_doc_problem(problems, at, "not notice_id.attachments/INDEX of this entry");
		}
		jv_free(item);
	}
	jv_free(notice_id);
	jv_free(list);
	jv_free(message);
	return problems;
}

/* ---- the classes ---- */

const struct am_doc_class am_doc_classes[] = {
	{ "submit-request", "request", "what an agent asks, in its outbox" },
	{ "result", "result", "the runtime's answer to a request" },
	{ "deliver-notice", "notice", "mail that arrived, or the runtime's own word" },
	{ "peer-notice", "peer", "a task or a reply from a member of the fleet" },
	{ "inbound-message", "message", "the body that belongs to a notice" },
	{ "roster", "roster", "who is in the fleet" },
	{ "directory", "directory", "whom one agent may address" },
	{ "binding-record", "identity", "which mailbox a volume belongs to" },
	{ NULL, NULL, NULL }
};

const struct am_rule am_doc_rules[] = {
	{ .is = OBJECT | CLOSED, .members = submit_request },
	{ .is = OBJECT, .members = result, .also = indexes_in_order },
	{ .is = OBJECT, .members = deliver_notice, .also = grants_of_its_own },
	{ .is = OBJECT, .members = peer_notice, .also = grants_of_its_own },
	{ .is = OBJECT, .members = inbound_message, .also = grants_of_its_own },
	{ .is = OBJECT, .members = roster },
	{ .is = OBJECT, .members = directory },
	{ .is = OBJECT | CLOSED, .members = binding_record }
};
