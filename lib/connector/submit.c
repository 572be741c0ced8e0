#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connector/attach.h"
#include "connector/outbox.h"
#include "connector/place.h"
#include "connector/spool.h"
#include "connector/submit.h"
#include "file.h"
#include "json.h"

#define RESULT_MAX (8u << 20)

static const char *outbox;
static char submitted[24];

void
am_submit_into(const char *dir)
{
	outbox = dir;
}

const char *
am_submitted(void)
{
	return submitted;
}

/* ---- submit ---- */

/* Owns the trimmed, non-empty strings of a list; invalid when it is none. Borrows. */
static jv
addresses(jv list)
{
	static const char space[] = " \t\r\n\v\f";
	jv out = jv_array();

	if (jv_get_kind(list) != JV_KIND_ARRAY) {
		jv_free(out);
		return jv_invalid();
	}
	jv_array_foreach(list, i, item) {
		const char *s, *end;

		if (jv_get_kind(item) != JV_KIND_STRING) {
			jv_free(item);
			jv_free(out);
			return jv_invalid();
		}
		s = jv_string_value(item);
		end = s + jv_string_length_bytes(jv_copy(item));
		while (s < end && memchr(space, *s, sizeof space - 1) != NULL)
			s++;
		while (end > s && memchr(space, end[-1], sizeof space - 1) != NULL)
			end--;
		if (end > s)
			out = jv_array_append(out, jv_string_sized(s, (int)(end - s)));
		jv_free(item);
	}
	return out;
}

/* Owns the draft without its attachments; invalid when a member is wrong, and then that is answered. */
static jv
draft_of(jv arguments, struct am_answer *answer)
{
	jv to_given = am_get_or_null(arguments, "to"), cc_given = am_get_or_null(arguments, "cc"), to = addresses(to_given), cc;
	jv subject = am_get_or_null(arguments, "subject"), body = am_get_or_null(arguments, "body_text");
	jv reply = am_get_or_null(arguments, "in_reply_to"), draft = jv_invalid();

	cc = jv_get_kind(cc_given) == JV_KIND_NULL ? jv_array() : addresses(cc_given);
	if (jv_get_kind(subject) == JV_KIND_NULL)
		subject = jv_string("");
	if (!jv_is_valid(to))
		am_answer_error(answer, "submit: 'to' must be a list of addresses");
	else if (jv_array_length(jv_copy(to)) == 0)
		am_answer_error(answer, "submit: 'to' names nobody");
	else if (!jv_is_valid(cc))
		am_answer_error(answer, "submit: 'cc' must be a list of addresses");
	else if (jv_get_kind(subject) != JV_KIND_STRING)
		am_answer_error(answer, "submit: 'subject' must be a string");
	else if (jv_get_kind(body) != JV_KIND_STRING || jv_string_length_bytes(jv_copy(body)) == 0)
		am_answer_error(answer, "submit: 'body_text' must be a string that is not empty");
	else if (jv_get_kind(reply) != JV_KIND_STRING && jv_get_kind(reply) != JV_KIND_NULL)
		am_answer_error(answer, "submit: 'in_reply_to' must be a string");
	else {
		draft = am_set(am_set(jv_object(), "to", jv_copy(to)), "cc", jv_copy(cc));
		draft = am_set(am_set(draft, "subject", jv_copy(subject)), "body_text", jv_copy(body));
		draft = am_set(draft, "reply_to_message_id", jv_copy(reply));
	}
	jv_free(to_given);
	jv_free(cc_given);
	jv_free(to);
	jv_free(cc);
	jv_free(subject);
	jv_free(body);
	jv_free(reply);
	return draft;
}

/* $MAILBOX_AGENT_ID, trimmed; NULL when nothing is left. */
static const char *
agent_id(void)
{
	static char id[256];
	const char *s = getenv("MAILBOX_AGENT_ID");
	size_t n;

	if (s == NULL)
		return NULL;
	s += strspn(s, " \t\r\n\v\f");
	n = strlcpy(id, s, sizeof id) < sizeof id ? strlen(id) : sizeof id - 1;
	while (n > 0 && strchr(" \t\r\n\v\f", id[n - 1]) != NULL)
		id[--n] = '\0';
	return n == 0 ? NULL : id;
}

void
am_submit(jv arguments, struct am_answer *answer)
{
	struct am_attachment files[AM_ATTACHMENTS_MAX];
	size_t max = am_attachment_limit(), count = 0;
	jv draft = draft_of(arguments, answer), list;
	char why[256];

	if (!jv_is_valid(draft))
		return;
	list = am_get_or_null(arguments, "attachments");
	if (am_attachments_open(list, max, files, &count, why) != 0) {
		am_answer_error(answer, "submit: %s", why);
		jv_free(draft);
	} else if (am_outbox_publish(outbox, draft, agent_id(), files, count, max, submitted, why) != 0) {
		am_answer_error(answer, "submit: %s", why);
	} else if (count == 0) {
		am_answer(answer, "{\"req_id\": \"%s\", \"status\": \"queued\"}", submitted);
	} else {
		am_answer(answer, "{\"req_id\": \"%s\", \"status\": \"queued\", \"attachments\": %zu, \"note\": "
		    "\"Copies were taken of the files; the host may still hold or refuse them.\"}", submitted, count);
	}
	am_attachments_close(files, count);
	jv_free(list);
}

/* ---- submit_result ---- */

/* Tells in one line before the result what its identity stamp is worth. Borrows. */
static const char *
attestation_line(jv result, char line[320])
{
	jv stamp = am_get(result, "attestation", JV_KIND_OBJECT);
	const char *form = am_str(stamp, "form");

	line[0] = '\0';
	if (!jv_is_valid(stamp) || jv_object_length(jv_copy(stamp)) == 0)
		line[0] = '\0';
	else if (form != NULL && strcmp(form, "verifiable") == 0)
		strcpy(line, "attestation: verifiable\n");
	else
		snprintf(line, 320, "attestation: %.100s (put on by the runtime; to a stranger it proves nothing)\n",
		    form == NULL ? "self-stamp" : form);
	jv_free(stamp);
	return line;
}

void
am_submit_result(jv arguments, struct am_answer *answer)
{
	jv id = am_get_or_null(arguments, "req_id"), result;
	int dir = -1;
	char path[256], line[320], *text = NULL, *shown;
	size_t len;

	if (!am_spool_id(id)) {
		am_answer_error(answer, "submit_result: 'req_id' must be the number that submit answered");
		jv_free(id);
		return;
	}
	snprintf(path, sizeof path, "results/%s.json", jv_string_value(id));
	if ((dir = open(outbox, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0)
		text = am_read_regular(dir, path, RESULT_MAX, &len);
	if (text == NULL && (errno == ENOENT || errno == ENOTDIR || errno == EINVAL)) {
		am_answer(answer, "pending");	/* EINVAL: something that is no regular file */
	} else if (text == NULL) {
		am_answer_error(answer, "submit_result: %s: %s", path, strerror(errno));
	} else if (!jv_is_valid(result = am_json_parse(text, len))) {
		am_answer_error(answer, "submit_result: %s: %s", path, am_json_why(result));
	} else {
		shown = am_json_text(result, AM_DOCUMENT, &len);
		am_answer(answer, "%s%.*s", attestation_line(result, line), (int)len - 1, shown);
		free(shown);
		jv_free(result);
	}
	free(text);
	jv_free(id);
	if (dir >= 0)
		close(dir);
}
