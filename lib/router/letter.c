#include <stdlib.h>
#include <string.h>

#include "router/letter.h"
#include "utf8.h"

#define PREVIEW_MAX 200

/* Owns: what is not printable becomes a space; at most max characters. */
static jv
printable_text(jv text, size_t max)
{
	const char *s = jv_string_value(text);
	size_t len = (size_t)jv_string_length_bytes(jv_copy(text)), from = 0, out = 0;
	char *buf = malloc(len + 1);
	jv v;

	if (buf == NULL)
		abort();
	while (from < len && max-- > 0) {
		uint32_t c;
		int n = am_utf8_next(s + from, len - from, &c);

		if (n < 0)
			n = 1;
		if (n < 1 || !am_printable(c)) {
			buf[out++] = ' ';
		} else {
			memcpy(buf + out, s + from, (size_t)n);
			out += (size_t)n;
		}
		from += (size_t)n;
	}
	v = jv_string_sized(buf, (int)out);
	free(buf);
	return v;
}

jv
amr_display_text(jv text, size_t max)
{
	jv clean = printable_text(text, SIZE_MAX), cut, v;
	const char *s = jv_string_value(clean);
	size_t len = strlen(s);

	while (len > 0 && *s == ' ') {
		s++;
		len--;
	}
	while (len > 0 && s[len - 1] == ' ')
		len--;
	cut = jv_string_sized(s, (int)len);
	jv_free(clean);
	v = printable_text(cut, max);
	jv_free(cut);
	return v;
}

/* ---- the documents ---- */

static jv
descriptors(const struct amr_letter *l, const char *nid)
{
	jv list = jv_array();

	for (size_t i = 0; i < l->n_blobs; i++) {
		const struct amr_blob *b = &l->blobs[i];
		jv d = am_set(jv_object(), "filename", jv_copy(b->filename));

		d = am_set(d, "media_type", jv_copy(b->media_type));
		d = am_set(d, "size_bytes", jv_number((double)b->len));
		d = am_set_str(d, "sha256", b->sha256);
		d = am_set_str(d, "disposition", "clean");
		d = am_set(d, "content_ref", jv_string_fmt("%s.attachments/%zu", nid, i));
		list = jv_array_append(list, d);
	}
	return list;
}

jv
amr_letter_message(const struct amr_letter *l, const char *nid, const char *ts, const char *from, const char *to)
{
	jv d = am_set_str(jv_object(), "contract_version", "2");

	d = am_set_str(d, "notice_id", nid);
	d = am_set_str(d, "id", nid);
	d = am_set_str(d, "date", ts);
	d = am_set_str(d, "from", from);
	d = am_set_str(d, "to", to);
	d = am_set(d, "subject", jv_copy(l->subject));
	d = am_set(d, "body_text", jv_copy(l->body));
	return l->n_blobs > 0 ? am_set(d, "attachments", descriptors(l, nid)) : d;
}

jv
amr_letter_notice(const struct amr_letter *l, int peer, const char *nid, const char *ts, const char *from)
{
	jv m = am_set_str(jv_object(), "id", nid), d;

	m = am_set_str(m, "from", from);
	m = am_set(m, "subject", jv_copy(l->subject));
	m = am_set(m, "preview", printable_text(l->body, PREVIEW_MAX));
	m = am_set_str(m, "mailbox", peer ? "peer" : "inbox");
	if (!peer)
		m = am_set_str(m, "provenance", "internal");
	if (l->in_reply_to != NULL)
		m = am_set_str(m, "in_reply_to", l->in_reply_to);
	if (peer && jv_is_valid(l->exposure))
		m = am_set(m, "sender_exposure", jv_copy(l->exposure));
	if (l->n_blobs > 0)
		m = am_set(m, "attachments", descriptors(l, nid));
	d = am_set_str(jv_object(), "contract_version", "2");
	d = am_set_str(d, "notice_id", nid);
	d = am_set_str(d, "ts", ts);
	d = am_set_str(d, "kind", peer ? "peer" : "deliver");
	return am_set(d, "message", m);
}

jv
amr_letter_ledger(const struct amr_letter *l, const char *to, int peer, const char *nid, const char *ts, const char *from)
{
	jv d = am_set_str(jv_object(), "notice_id", nid);

	d = am_set_str(d, "from_instance", l->from);
	d = am_set_str(d, "from_address", from);
	d = am_set_str(d, "to_instance", to);
	d = am_set_str(d, "ts", ts);
	d = am_set_str(d, "req_id", l->req_id);
	d = am_set_str(d, "message_id", nid);
	d = am_set_str(d, "transport", "local");
	d = am_set_str(d, "tree", peer ? "peer" : "inbox");
	return l->from == NULL ? am_set_str(d, "authored_by", "router") : d;
}

jv
amr_letter_audit(const struct amr_letter *l, const char *to, int peer, const char *nid, const char *from, const char *to_address)
{
	jv d = jv_copy(l->audit);

	d = am_set_str(d, "notice_id", nid);
	d = am_set_str(d, "tree", peer ? "peer" : "inbox");
	d = am_set_str(d, "from", from);
	d = am_set_str(d, "to", to_address);
	d = am_set_str(d, "to_instance", to);
	d = am_set_str(d, "in_reply_to", l->in_reply_to);
	if (l->from == NULL)
		return d;
	d = am_set_str(d, "message_id", nid);
	d = am_set_str(d, "from_instance", l->from);
	d = am_set_str(d, "req_id", l->req_id);
	d = am_set(d, "sender_exposure", jv_is_valid(l->exposure) ? jv_copy(l->exposure) : jv_null());
	d = am_set_str(d, "origin", "local");
	d = am_set(d, "signature_verdict", jv_null());
	return am_set(d, "demotion_cause", jv_null());
}
