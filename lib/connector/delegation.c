#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connector/clean.h"
#include "connector/delegation.h"
#include "connector/inject.h"
#include "diag.h"
#include "doc.h"
#include "file.h"
#include "json.h"

#define NOTICE_MAX 262144
#define MESSAGE_MAX (8u << 20)		/* what the read server takes */
#define DESCRIPTORS_MAX 50

/* ---- reading ---- */

static enum am_admission
refuse(char why[500], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, 500, fmt, ap);
	va_end(ap);
	return AM_REFUSED;
}

/* What passes says nothing about a notice, and a refusal is for good. */
static enum am_admission
unread(int errnum, enum am_admission otherwise)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == EIO ? AM_CANNOT_TELL : otherwise;
}

/* Owns the object; invalid with the reason in why when there is none, and errno 0 when it was read all the same. */
static jv
read_object(int dir, const char *id, size_t max, char why[300])
{
	char name[64], *text;
	size_t len;
	jv v;

	snprintf(name, sizeof name, "notice-%s.json", id);
	if ((text = am_read_regular(dir, name, max, &len)) == NULL) {
		int saved = errno;

		snprintf(why, 300, "%s", saved == EFBIG ? "it is too large" : strerror(saved));
		errno = saved;
		return jv_invalid();
	}
	v = am_json_parse(text, len);
	free(text);
	errno = 0;
	if (!jv_is_valid(v)) {
		snprintf(why, 300, "%s", am_json_why(v));
		return jv_invalid();
	}
	if (jv_get_kind(v) != JV_KIND_OBJECT) {
		jv_free(v);
		snprintf(why, 300, "it is no object");
		return jv_invalid();
	}
	return v;
}

/* The version first, then the rules of the class. Borrows. */
static int
unsound(const char *class, jv doc, char why[300])
{
	jv problems, first;
	int n;

	if (am_doc_version_refused(class, doc)) {
		snprintf(why, 300, "its contract_version is not understood: only major 2 is");
		return 1;
	}
	problems = am_doc_problems(class, doc);
	n = jv_array_length(jv_copy(problems));
	if (n > 0) {
		first = jv_array_get(jv_copy(problems), 0);
		snprintf(why, 300, "%s", jv_string_value(first));
		jv_free(first);
	}
	jv_free(problems);
	return n > 0;
}

/* ---- the text of a turn ---- */

/* Owns; bytes and not a C string, because a body may hold a NUL. */
static jv
envelope(const char *from, const char *body, size_t len)
{
	char *name = am_clean(AM_CLEAN_ATTR, from, strlen(from), 200);
	jv text = jv_string_fmt("<cross-session-message from-name=\"%s\">\n", name);

	text = jv_string_append_buf(text, body, (int)len);
	free(name);
	return jv_string_append_str(text, "\n</cross-session-message>");
}

/* Borrows. One value of a descriptor, in quotation marks that it does not hold. */
static void
put_value(FILE *fp, const char *name, jv descriptor)
{
	jv v = jv_object_get(jv_copy(descriptor), jv_string(name));
	jv s = jv_get_kind(v) == JV_KIND_STRING ? v : jv_dump_string(v, 0);
	char *value = am_clean(AM_CLEAN_ATTR, jv_string_value(s), (size_t)jv_string_length_bytes(jv_copy(s)), 120);
	char mark = strchr(value, '\'') == NULL ? '\'' : '"';

	fprintf(fp, " %s=%c%s%c", name, mark, value, mark);
	free(value);
	jv_free(s);
}

static void
put_descriptors(FILE *fp, jv message)
{
	jv list = am_get(message, "attachments", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

	if (n > 0)
		fputs("\n\nattachments (descriptors only; bytes via read_attachment):", fp);
	for (int i = 0; i < n && i < DESCRIPTORS_MAX; i++) {
		jv d = jv_array_get(jv_copy(list), i);

		fputs("\n-", fp);
		put_value(fp, "filename", d);
		put_value(fp, "media_type", d);
		put_value(fp, "size_bytes", d);
		put_value(fp, "disposition", d);
		jv_free(d);
	}
	jv_free(list);
}

/* Borrows the message of the notice; owns the envelope around the text to show. */
static jv
peer_text(jv message, const char *body, size_t body_len)
{
	const char *from = am_str(message, "from"), *id = am_str(message, "id");
	char *inner;
	size_t len;
	FILE *fp = open_memstream(&inner, &len);
	jv text;

	if (fp == NULL)
		abort();
	fwrite(body, 1, body_len, fp);
	put_descriptors(fp, message);
	fputs("\n\n-- added by inbox-delivery --\n", fp);
	if (id != NULL && strlen(id) <= 200)
		fprintf(fp, "message id: %s\nanswer with the tool submit of inbox-submit, to=[\"%s\"] in_reply_to=\"%s\"; "
		    "SendMessage does not work for this address", id, from, id);
	else
		fprintf(fp, "message id: not available (its form does not allow it to be shown)\nanswer with the tool submit of "
		    "inbox-submit, to=[\"%s\"], and the id that the tool read_message of delegation shows; "
		    "SendMessage does not work for this address", from);
	if (fclose(fp) != 0)
		abort();
	text = envelope(from, inner, len);
	free(inner);
	return text;
}

/* The text of a delegation; one that no turn can hold is announced instead. */
static jv
turn(jv message, jv body, const char *id)
{
	size_t len = (size_t)jv_string_length_bytes(jv_copy(body));
	jv quoted = jv_dump_string(jv_copy(body), 0);
	char notice[200];
	int fits = jv_string_length_bytes(jv_copy(quoted)) < AM_FRAME_MAX;

	jv_free(quoted);
	if (fits)
		return peer_text(message, jv_string_value(body), len);
	snprintf(notice, sizeof notice, "This message has %zu bytes, too many for one turn. Read it with the tool "
	    "read_message of delegation: id %s", len, id);
	return peer_text(message, notice, strlen(notice));
}

/* ---- admission ---- */

static int
is_router(const char *from)
{
	return strcspn(from, "@") == strlen("amap.router") && strncmp(from, "amap.router", 11) == 0;
}

/* Borrows. The checks of the notice itself. */
static enum am_admission
judge_notice(jv notice, const char *id, const char *self, char why[500])
{
	const char *notice_id = am_str(notice, "notice_id"), *kind = am_str(notice, "kind"), *from;
	jv message = am_get(notice, "message", JV_KIND_OBJECT);
	enum am_admission admission = AM_ADMITTED;
	char problem[300];

	from = am_str(message, "from");
	if (notice_id == NULL || strcmp(notice_id, id) != 0)
		admission = refuse(why, "its notice_id is not that of its file name");
	else if (kind == NULL || strcmp(kind, "peer") != 0)
		admission = refuse(why, "its kind is %s, not peer", kind == NULL ? "no string" : am_quotes(kind));
	else if (!jv_is_valid(message))
		admission = refuse(why, "its message is no object");
	else if (from == NULL || !am_is_addr(from, strlen(from)))
		admission = refuse(why, "its message.from is no address");
	else if (self == NULL)
		admission = refuse(why, "the own address is not known: $AMAP_DELIVERY_SELF is not set");
	else if (is_router(from))
		admission = refuse(why, "its sender is the router, which delegates nothing");
	else if (unsound("peer-notice", notice, problem))
		admission = refuse(why, "notice not sound: %s", problem);
	jv_free(message);
	return admission;
}

/* Borrows. */
static enum am_admission
judge_message(jv message, const char *self, char why[500])
{
	const char *to = am_str(message, "to");
	char problem[300];
	jv body = jv_object_get(jv_copy(message), jv_string("body_text"));
	int is_text = jv_get_kind(body) == JV_KIND_STRING;

	jv_free(body);
	if (to == NULL || strcmp(to, self) != 0)
		return refuse(why, "the body spool is for another, not self: %s", to == NULL ? "nobody" : am_quotes(to));
	if (!is_text)
		return refuse(why, "the body spool has no body_text that is a string");
	if (unsound("inbound-message", message, problem))
		return refuse(why, "the body spool is not sound: %s", problem);
	return AM_ADMITTED;
}

enum am_admission
am_peer_admit(int notices, int messages, const char *id, const char *self, jv *text, char why[500])
{
	enum am_admission admission;
	char problem[300];
	jv notice = read_object(notices, id, NOTICE_MAX, problem), spooled, message, body;
	int errnum = errno;

	if (!jv_is_valid(notice))
		return unread(errnum, refuse(why, "notice unreadable: %s", problem));
	if ((admission = judge_notice(notice, id, self, why)) != AM_ADMITTED) {
		jv_free(notice);
		return admission;
	}
	spooled = read_object(messages, id, MESSAGE_MAX, problem);
	if (!jv_is_valid(spooled)) {
		admission = errno == ENOENT ? AM_NOT_YET : unread(errno, AM_REFUSED);
		refuse(why, "the body spool cannot be read: %s", problem);
	} else {
		admission = judge_message(spooled, self, why);
	}
	if (admission == AM_ADMITTED && text != NULL) {
		message = am_get(notice, "message", JV_KIND_OBJECT);
		body = am_get(spooled, "body_text", JV_KIND_STRING);
		*text = turn(message, body, id);
		jv_free(message);
		jv_free(body);
	}
	jv_free(notice);
	jv_free(spooled);
	return admission;
}

enum am_admission
am_mail_admit(int notices, const char *id, const char *self, jv *text, char why[500])
{
	static const char doorbell[] = "you have mail: read it with the tools of the server inbox, list_messages and read_message";
	char problem[300];
	jv notice = read_object(notices, id, NOTICE_MAX, problem);
	int errnum = errno;
	const char *notice_id = am_str(notice, "notice_id");
	enum am_admission admission = AM_ADMITTED;

	if (!jv_is_valid(notice))
		return unread(errnum, refuse(why, "notice unreadable: %s", problem));
	if (unsound("deliver-notice", notice, problem))
		admission = refuse(why, "notice not sound: %s", problem);
	else if (strcmp(notice_id, id) != 0)
		admission = refuse(why, "its notice_id is not that of its file name");
	jv_free(notice);
	if (admission == AM_ADMITTED && text != NULL)
		*text = envelope(self == NULL ? "inbox" : self, doorbell, sizeof doorbell - 1);
	return admission;
}
