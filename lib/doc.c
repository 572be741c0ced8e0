#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "doc.h"
#include "json.h"

/* ---- predicates ---- */

static int
alnum(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static int
one_of(char c, const char *set)
{
	return alnum(c) || (c != '\0' && strchr(set, c) != NULL);
}

static int
all_of(const char *s, size_t len, const char *set)
{
	while (len > 0 && one_of(*s, set)) {
		s++;
		len--;
	}
	return len == 0;
}

int
am_is_id(const char *s, size_t len)
{
	return len > 0 && one_of(s[0], "_") && all_of(s, len, "_.-");
}

int
am_is_addr(const char *s, size_t len)
{
	const char *at = len > 0 ? memchr(s, '@', len) : NULL;
	size_t local = at == NULL ? 0 : (size_t)(at - s);

	return local > 0 && local + 1 < len && all_of(s, local, "!#$%&'*+/=?^_`{|}~.-") &&
	    all_of(at + 1, len - local - 1, ".-");
}

int
am_is_noctl(const char *s, size_t len)
{
	while (len > 0 && (unsigned char)*s >= 0x20 && *s != 0x7f) {
		s++;
		len--;
	}
	return len == 0;
}

int
am_is_sha256(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!(s[i] >= '0' && s[i] <= '9') && !(s[i] >= 'a' && s[i] <= 'f'))
			return 0;
	return len == 64;
}

int
am_is_cref(const char *s, size_t len)
{
	static const char tail[] = ".attachments/";
	const size_t n = sizeof tail - 1;
	const char *slash = len > 0 ? memchr(s, '/', len) : NULL;
	size_t head = slash == NULL ? 0 : (size_t)(slash - s) + 1, digits = len - head, i;

	if (head <= n || memcmp(s + head - n, tail, n) != 0 || !all_of(s, head - 1, "_.-"))
		return 0;
	for (i = head; i < len; i++)
		if (s[i] < '0' || s[i] > '9')
			return 0;
	return digits == 1 || (digits > 1 && s[head] != '0');
}

int
am_is_size(jv v)
{
	double n;

	if (jv_get_kind(v) != JV_KIND_NUMBER)
		return 0;
	n = jv_number_value(v);
	return n >= 0 && n < 1e15 && n == (double)(long long)n;
}

/* ---- the rules, as tables ---- */

enum {
	STRING = 1, OBJECT = 2, ARRAY = 4, BOOLEAN = 8, SIZE = 16, NUMBER = 32, OR_NULL = 64,
	NOT_EMPTY = 128,	/* a string of at least one character, an array of at least one item */
	CLOSED = 256		/* an object that may hold no other members */
};

typedef int test(const char *, size_t);

struct rule {
	unsigned is;
	test *test;			/* of a string */
	const char *const *words;	/* a string must be one of these; NULL ends them */
	const struct member *members;	/* of an object */
	const struct rule *items;	/* of an array */
	/* What ties members of one object together; adds its problems to the list. */
	jv (*also)(jv problems, const char *path, jv object);
};

struct member {
	const char *name;
	int required;
	struct rule rule;
};

static jv
problem(jv problems, const char *path, const char *text)
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

static const struct rule text = TEXT, id = ID, address = ADDR;

static const struct member submitted_file[] = {
	{ "filename", 1, SOME_LINE },
	{ "media_type", 1, SOME_LINE },
	{ "size_bytes", 1, { .is = SIZE } },
	{ "sha256", 1, { .is = STRING, .test = am_is_sha256 } },
	{ .name = NULL }
};
static const struct rule submitted_files = { .is = OBJECT | CLOSED, .members = submitted_file };

static const struct member draft[] = {
	{ "to", 1, { .is = ARRAY | NOT_EMPTY, .items = &address } },
	{ "cc", 0, { .is = ARRAY, .items = &address } },
	{ "subject", 1, ONE_LINE },
	{ "body_text", 1, TEXT },
	{ "reply_to_message_id", 0, { .is = STRING | OR_NULL, .test = am_is_noctl } },
	{ "attachments", 0, { .is = ARRAY, .items = &submitted_files } },
	{ .name = NULL }
};

static const struct member submit_request[] = {
	{ "contract_version", 1, VERSION },
	{ "req_id", 1, ID },
	{ "agent_id", 0, SOME_LINE },
	{ "ts", 0, SOME_LINE },
	{ "in_reply_to", 0, ONE_LINE },
	{ "draft", 1, { .is = OBJECT | CLOSED, .members = draft } },
	{ .name = NULL }
};

static const struct member attestation[] = {
	{ "form", 1, { .is = STRING, .words = WORDS("self-stamp", "verifiable") } },
	{ "token", 0, SOME_TEXT },
	{ "claims", 0, { .is = OBJECT } },
	{ .name = NULL }
};

static const struct member verdict_on_file[] = {
	{ "index", 1, { .is = SIZE } },
	{ "outcome", 1, { .is = STRING, .words = WORDS("accepted", "dlp_held", "rejected_type", "too_large") } },
	{ "detail", 0, TEXT_OR_NULL },
	{ .name = NULL }
};
static const struct rule verdicts_on_files = { .is = OBJECT, .members = verdict_on_file };

static const struct member result[] = {
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
			problems = problem(problems, at, "stands only where disposition is \"clean\"");
		}
	return problems;
}

static const struct member delivered_file[] = {
	{ "filename", 1, SOME_TEXT },
	{ "media_type", 1, SOME_TEXT },
	{ "size_bytes", 1, { .is = SIZE } },
	{ "sha256", 0, { .is = STRING, .test = am_is_sha256 } },
	{ "disposition", 1, { .is = STRING, .words = WORDS("clean", "stripped", "quarantined", "unscanned") } },
	{ "content_ref", 0, { .is = STRING, .test = am_is_cref } },
	{ .name = NULL }
};
static const struct rule delivered_files = { .is = OBJECT, .members = delivered_file, .also = only_clean_bytes };

static const struct member verdict[] = {
	{ "auth", 0, TEXT },
	{ "screen", 0, TEXT },
	{ "entitlement", 0, TEXT },
	{ .name = NULL }
};

static const struct member mail[] = {
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

static const struct member deliver_notice[] = {
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
		problems = problem(problems, at, "required where external_mail_delivered is true");
	}
	jv_free(delivered);
	return problems;
}

static const struct member exposure[] = {
	{ "asserted_by", 1, { .is = STRING | NOT_EMPTY, .test = am_is_addr } },
	{ "external_mail_delivered", 1, { .is = BOOLEAN } },
	{ "window_start", 1, SOME_TEXT },
	{ "window_end", 1, SOME_TEXT },
	{ "last_external_delivery_ts", 0, SOME_TEXT },
	{ "derived_from", 0, { .is = ARRAY, .items = &id } },
	{ .name = NULL }
};

static const struct member peer[] = {
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

static const struct member peer_notice[] = {
	{ "contract_version", 1, VERSION },
	{ "notice_id", 1, ID },
	{ "ts", 1, SOME_TEXT },
	{ "kind", 1, { .words = WORDS("peer") } },
	{ "message", 1, { .is = OBJECT, .members = peer } },
	{ .name = NULL }
};

static const struct member inbound_message[] = {
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

static const struct member binding_record[] = {
	{ "agent_id", 1, SOME_TEXT },
	{ "address", 1, SOME_TEXT },
	{ "provisioned_ts", 1, SOME_TEXT },
	{ "label", 0, TEXT },
	{ "contract_version", 0, VERSION },
	{ .name = NULL }
};

static const struct member directory[] = {
	{ "router", 1, ADDR },
	{ "written_at", 1, SOME_LINE },
	{ "delegate_to", 1, { .is = ARRAY, .items = &address } },
	{ "mail_to", 1, { .is = ARRAY, .items = &address } },
	{ "contract_version", 0, VERSION },
	{ .name = NULL }
};

static const struct member roster_member[] = {
	{ "address", 1, ADDR },
	{ "state", 1, SOME_LINE },
	{ .name = NULL }
};
static const struct rule roster_members = { .is = OBJECT, .members = roster_member };

static const struct member roster[] = {
	{ "contract_version", 1, VERSION },
	{ "router", 1, ADDR },
	{ "written_at", 1, SOME_LINE },
	{ "interval_s", 0, { .is = NUMBER } },
	{ "members", 1, { .is = ARRAY, .items = &roster_members } },
	{ .name = NULL }
};

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

static const struct rule rules[] = {
	{ .is = OBJECT | CLOSED, .members = submit_request },
	{ .is = OBJECT, .members = result },
	{ .is = OBJECT, .members = deliver_notice },
	{ .is = OBJECT, .members = peer_notice },
	{ .is = OBJECT, .members = inbound_message },
	{ .is = OBJECT, .members = roster },
	{ .is = OBJECT, .members = directory },
	{ .is = OBJECT | CLOSED, .members = binding_record }
};

/* ---- applying them ---- */

static jv check(jv problems, const char *path, jv v, const struct rule *r);

static const char *
what(const struct rule *r)
{
	if (r->test == am_is_id)
		return "no id: letters, digits, \"_\", \".\" and \"-\", not beginning with \".\" or \"-\"";
	if (r->test == am_is_addr)
		return "no bare address LOCAL@DOMAIN";
	if (r->test == am_is_noctl)
		return "holds a control character";
	if (r->test == am_is_sha256)
		return "not 64 lower-case hexadecimal digits";
	return "not NOTICE.attachments/INDEX";
}

static int
is_word(const char *s, size_t len, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strlen(*words) == len && memcmp(*words, s, len) == 0)
			return 1;
	return 0;
}

static jv
check_string(jv problems, const char *path, jv v, const struct rule *r)
{
	const char *s = jv_string_value(v);
	size_t len = (size_t)jv_string_length_bytes(jv_copy(v));

	if (len == 0 && r->is & NOT_EMPTY)
		return problem(problems, path, "empty");
	if (r->test != NULL && !r->test(s, len))
		return problem(problems, path, what(r));
	return problems;
}

static jv
check_words(jv problems, const char *path, jv v, const struct rule *r)
{
	char list[256] = "not ";
	size_t n = strlen(list);

	if (jv_get_kind(v) == JV_KIND_STRING &&
	    is_word(jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)), r->words))
		return problems;
	for (const char *const *w = r->words; *w != NULL && n < sizeof list; w++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s\"%s\"", w == r->words ? "" : " or ", *w);
	return problem(problems, path, list);
}

static jv
check_object(jv problems, const char *path, jv v, const struct rule *r)
{
	const struct member *m;
	const char *names[16];
	char at[512];
	size_t n = 0;

	for (m = r->members; m != NULL && m->name != NULL; m++) {
		jv child = jv_object_get(jv_copy(v), jv_string(m->name));

		names[n++] = m->name;
		snprintf(at, sizeof at, "%s.%s", path, m->name);
		if (jv_is_valid(child))
			problems = check(problems, at, child, &m->rule);
		else if (m->required)
			problems = problem(problems, at, "missing");
		jv_free(child);
	}
	names[n] = NULL;
	if (r->is & CLOSED && am_unknown_key(v, names) != NULL) {
		snprintf(at, sizeof at, "%s.%.300s", path, am_quotes(am_unknown_key(v, names)));
		problems = problem(problems, at, "a member that this class does not know");
	}
	return r->also != NULL ? r->also(problems, path, v) : problems;
}

static jv
check_array(jv problems, const char *path, jv v, const struct rule *r)
{
	int n = jv_array_length(jv_copy(v));
	char at[512];

	if (n == 0 && r->is & NOT_EMPTY)
		return problem(problems, path, "empty");
	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(v), i);

		snprintf(at, sizeof at, "%s[%d]", path, i);
		problems = check(problems, at, item, r->items);
		jv_free(item);
	}
	return problems;
}

static jv
check(jv problems, const char *path, jv v, const struct rule *r)
{
	if (r->words != NULL)
		return check_words(problems, path, v, r);
	switch (jv_get_kind(v)) {
	case JV_KIND_NULL:
		if (r->is & OR_NULL)
			return problems;
		break;
	case JV_KIND_STRING:
		if (r->is & STRING)
			return check_string(problems, path, v, r);
		break;
	case JV_KIND_OBJECT:
		if (r->is & OBJECT)
			return check_object(problems, path, v, r);
		break;
	case JV_KIND_ARRAY:
		if (r->is & ARRAY)
			return check_array(problems, path, v, r);
		break;
	case JV_KIND_TRUE:
	case JV_KIND_FALSE:
		if (r->is & BOOLEAN)
			return problems;
		break;
	case JV_KIND_NUMBER:
		if (r->is & SIZE && !am_is_size(v))
			return problem(problems, path, "not a whole number from 0 to 10^15 - 1");
		if (r->is & NUMBER && jv_number_value(v) < 0)
			return problem(problems, path, "less than 0");
		if (r->is & (SIZE | NUMBER))
			return problems;
		break;
	default:
		break;
	}
	return problem(problems, path,
	    r->is & OBJECT ? "not an object" : r->is & ARRAY ? "not an array" :
	    r->is & BOOLEAN ? "not true or false" : r->is & (SIZE | NUMBER) ? "not a number" :
	    r->is & OR_NULL ? "neither a string nor null" : "not a string");
}

/* ---- what no table can say (spec protocol, section 13.3) ---- */

static jv
check_indexes(jv problems, jv doc)
{
	jv list = am_get(doc, "attachments", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;
	char at[64];

	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i);
		jv index = am_get(item, "index", JV_KIND_NUMBER);

		snprintf(at, sizeof at, "$.attachments[%d].index", i);
		if (jv_is_valid(index) && jv_number_value(index) != i)
			problems = problem(problems, at, "not the position in the array");
		jv_free(index);
		jv_free(item);
	}
	jv_free(list);
	return problems;
}

static jv
check_grants(jv problems, jv doc)
{
	jv message = am_get(doc, "message", JV_KIND_OBJECT);
	int nested = jv_is_valid(message);
	jv list = am_get(nested ? message : doc, "attachments", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;
	jv notice_id = am_get(doc, "notice_id", JV_KIND_STRING);
	char at[64];

	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i), ref, want;

		if (am_has(item, "content_ref")) {
			ref = jv_object_get(jv_copy(item), jv_string("content_ref"));
			want = jv_string_concat(jv_is_valid(notice_id) ? jv_copy(notice_id) : jv_string("?"),
			    jv_string_fmt(".attachments/%d", i));
			snprintf(at, sizeof at, "$%s.attachments[%d].content_ref", nested ? ".message" : "", i);
			if (!jv_equal(ref, want))
				problems = problem(problems, at, "not notice_id.attachments/INDEX of this entry");
		}
		jv_free(item);
	}
	jv_free(notice_id);
	jv_free(list);
	jv_free(message);
	return problems;
}

static int
index_of(const char *doc_class)
{
	for (int i = 0; am_doc_classes[i].name != NULL; i++)
		if (strcmp(am_doc_classes[i].name, doc_class) == 0)
			return i;
	abort();	/* a class is ours to name; am_doc_class looks up what others wrote */
}

jv
am_doc_problems(const char *doc_class, jv doc)
{
	const struct rule *r = &rules[index_of(doc_class)];
	jv problems = check(jv_array(), "$", doc, r);

	if (r->members == result)
		return check_indexes(problems, doc);
	if (r->members == deliver_notice || r->members == peer_notice || r->members == inbound_message)
		return check_grants(problems, doc);
	return problems;
}

int
am_doc_version_refused(const char *doc_class, jv doc)
{
	const struct rule *r = &rules[index_of(doc_class)];
	int optional = r->members == binding_record || r->members == directory;
	const char *s;

	if (jv_get_kind(doc) != JV_KIND_OBJECT)
		return 0;
	if (!am_has(doc, "contract_version"))
		return !optional;
	if ((s = am_str(doc, "contract_version")) == NULL || *s == '\0')
		return 1;
	if (s[strspn(s, "0123456789")] != '\0')
		return 1;
	s += strspn(s, "0");
	return strcmp(s, "2") != 0;
}

const char *
am_doc_class(const char *name)
{
	for (const struct am_doc_class *c = am_doc_classes; c->name != NULL; c++)
		if (strcmp(c->name, name) == 0 || strcmp(c->prefix, name) == 0)
			return c->name;
	return NULL;
}

const char *
am_doc_class_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;

	for (const struct am_doc_class *c = am_doc_classes; c->name != NULL; c++) {
		size_t n = strlen(c->prefix);

		if (strncmp(name, c->prefix, n) == 0 && name[n] == '-')
			return c->name;
	}
	return NULL;
}
