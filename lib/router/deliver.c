#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "id.h"
#include "router/deliver.h"
#include "router/log.h"
#include "utf8.h"

#define PREVIEW_MAX 200

jv
amr_printable_text(jv text, size_t max)
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
	jv clean = amr_printable_text(text, SIZE_MAX), cut, v;
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
	v = amr_printable_text(cut, max);
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

static jv
message_document(const struct amr_letter *l, const char *nid, const char *ts, const char *from, const char *to)
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

static jv
notice_document(const struct amr_letter *l, int peer, const char *nid, const char *ts, const char *from)
{
	jv m = am_set_str(jv_object(), "id", nid), d;

	m = am_set_str(m, "from", from);
	m = am_set(m, "subject", jv_copy(l->subject));
	m = am_set(m, "preview", amr_printable_text(l->body, PREVIEW_MAX));
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

static jv
ledger_record(const struct amr_letter *l, const char *to, int peer, const char *nid, const char *ts, const char *from)
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

static jv
audit_line(const struct amr_letter *l, const char *to, int peer, const char *nid, const char *from, const char *to_address)
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

/* ---- the writes ---- */

static const char *
tree_path(const struct amr_router *r, const struct amr_inst *to, int peer, const char *leaf, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", amr_lane(&r->conf->members[to->at], peer ? 'p' : 'i'), leaf);
	return out;
}

static int
open_leaf(const struct amr_router *r, const struct amr_inst *to, int root, int peer, const char *leaf)
{
	char path[128];

	return amr_dir(root, tree_path(r, to, peer, leaf, path, sizeof path));
}

static int
write_blobs(const struct amr_letter *l, int notices, const char *nid)
{
	char name[64];
	int dir, rc = 0, saved;

	if (l->n_blobs == 0)
		return 0;
	snprintf(name, sizeof name, "%s.attachments", nid);
	amr_remove_tree(notices, name);		/* of an attempt that was cut short */
	if ((dir = amr_dir(notices, name)) < 0)
		return -1;
	for (size_t i = 0; i < l->n_blobs && rc == 0; i++) {
		snprintf(name, sizeof name, "%zu", i);
		rc = am_publish(dir, name, l->blobs[i].bytes, l->blobs[i].len, 0600);
	}
	saved = errno;
	close(dir);
	errno = saved;
	return rc;
}

/* The commit. A failure after the rename leaves it visible: written once more, then in doubt. */
static enum amr_placed
write_notice(int notices, const char *name, jv doc)
{
	struct stat st;

	if (amr_publish_json(notices, name, jv_copy(doc), 0600) == 0) {
		jv_free(doc);
		return AM_PLACED;
	}
	int saved = errno, visible = fstatat(notices, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);

	if (visible && amr_publish_json(notices, name, jv_copy(doc), 0600) == 0) {
		jv_free(doc);
		return AM_PLACED;
	}
	jv_free(doc);
	errno = saved;
	return visible ? AM_DOUBT : AM_FAILED;
}

enum amr_placed
amr_place(const struct amr_router *r, const struct amr_letter *l, struct amr_inst *to, int peer, const char *nid, const char *ts)
{
	char from[AM_ADDRESS_MAX], address[AM_ADDRESS_MAX], name[64];
	int root = -1, messages = -1, notices = -1;
	enum amr_placed placed = AM_FAILED;
	const char *step = "its root";

	amr_conf_address_of(r->conf, l->from, from);
	amr_conf_address_of(r->conf, to->name, address);
	snprintf(name, sizeof name, "notice-%s.json", nid);
	if ((root = amr_root(&r->conf->members[to->at])) < 0)
		goto out;
	step = "its notices";
	if ((notices = open_leaf(r, to, root, peer, "notices")) < 0)
		goto out;
	step = "its messages";
	if ((messages = open_leaf(r, to, root, peer, "messages")) < 0)
		goto out;
	step = "an attachment";
	if (write_blobs(l, notices, nid) != 0)
		goto out;
	step = "the message";
	if (amr_publish_json(messages, name, message_document(l, nid, ts, from, address), 0600) != 0)
		goto out;
	step = "the ledger";
	if (amr_state_publish(r, to->name, "delivered", name, ledger_record(l, to->name, peer, nid, ts, from)) != 0)
		goto out;
	step = "the audit log";
	if (jv_is_valid(l->audit) && amr_audit(r, to->name, ts, audit_line(l, to->name, peer, nid, from, address)) != 0)
		goto out;
	step = "the notice";
	placed = write_notice(notices, name, notice_document(l, peer, nid, ts, from));
out:
	if (placed != AM_PLACED) {
		amr_log(AM_WARNING, ".outbound", "delivery to %s failed at %s: %s%s", to->name, step, strerror(errno),
		    placed == AM_DOUBT ? "; the notice is visible, tried again later" : "");
		if (placed == AM_FAILED)
			amr_unplace(r, to, peer, nid);
	}
	if (messages >= 0)
		close(messages);
	if (notices >= 0)
		close(notices);
	if (root >= 0)
		close(root);
	return placed;
}

/* What is certainly not there, as against what could not be looked at now. */
static enum amr_placed
absent(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? AM_FAILED : AM_DOUBT;
}

enum amr_placed
amr_placed_already(const struct amr_router *r, const struct amr_inst *to, int peer, const char *nid)
{
	int root = amr_root(&r->conf->members[to->at]), dir = -1;
	enum amr_placed placed;
	char path[128], name[64];
	struct stat st;

	snprintf(name, sizeof name, "notice-%s.json", nid);
	if (root >= 0)
		dir = am_open_beneath(root, tree_path(r, to, peer, "notices", path, sizeof path), O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		placed = absent();
	else
		placed = fsync(dir) == 0 ? AM_PLACED : AM_DOUBT;
	if (dir >= 0)
		close(dir);
	if (root >= 0)
		close(root);
	return placed;
}

void
amr_unplace(const struct amr_router *r, const struct amr_inst *to, int peer, const char *nid)
{
	char path[128], name[64], blobs[64];
	int root = amr_root(&r->conf->members[to->at]), dir, ledger;

	snprintf(name, sizeof name, "notice-%s.json", nid);
	snprintf(blobs, sizeof blobs, "%s.attachments", nid);
	if (root >= 0 && (dir = am_open_beneath(root, tree_path(r, to, peer, "messages", path, sizeof path),
	    O_RDONLY | O_DIRECTORY, 0)) >= 0) {
		unlinkat(dir, name, 0);
		close(dir);
	}
	if (root >= 0 && (dir = am_open_beneath(root, tree_path(r, to, peer, "notices", path, sizeof path),
	    O_RDONLY | O_DIRECTORY, 0)) >= 0) {
		amr_remove_tree(dir, blobs);
		close(dir);
	}
	if (root >= 0)
		close(root);
	if ((ledger = amr_state_dir(r, to->name, "delivered")) >= 0) {
		unlinkat(ledger, name, 0);
		close(ledger);
	}
}
