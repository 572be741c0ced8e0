#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connector/clean.h"
#include "connector/spool.h"
#include "diag.h"
#include "doc.h"
#include "file.h"
#include "json.h"
#include "utf8.h"

#define MESSAGE_MAX 8388608

int
am_spool_id(jv v)
{
	size_t len;

	if (jv_get_kind(v) != JV_KIND_STRING)
		return 0;
	len = (size_t)jv_string_length_bytes(jv_copy(v));
	return len <= 200 && am_is_id(jv_string_value(v), len) && strstr(jv_string_value(v), "..") == NULL;
}

/* ---- loading ---- */

/* Borrows. The member cleaned, from malloc; otherwise when it is empty or no string. */
static char *
text(jv object, const char *key, enum am_clean how, size_t max, const char *otherwise)
{
	jv v = am_get(object, key, JV_KIND_STRING);
	char *s;

	if (jv_is_valid(v))
		s = am_clean(how, jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)), max);
	else
		s = strdup("");
	jv_free(v);
	if (s[0] == '\0') {
		free(s);
		s = strdup(otherwise);
	}
	return s;
}

static void
describe(struct am_descriptor *d, jv item, const char *nid, size_t index)
{
	const char *sha = am_str(item, "sha256"), *ref = am_str(item, "content_ref"), *disposition = am_str(item, "disposition");
	jv size = jv_object_get(jv_copy(item), jv_string("size_bytes"));
	char own[240];

	d->filename = text(item, "filename", AM_CLEAN_LINE, 300, "(unnamed)");
	d->media_type = text(item, "media_type", AM_CLEAN_LINE, 200, "application/octet-stream");
	d->disposition = text(item, "disposition", AM_CLEAN_LINE, 50, "unscanned");
	d->size = am_is_size(size) ? jv_number_value(size) : 0;
	jv_free(size);
	/* What grants the bytes is compared with what it must be, and never used as a path. */
	snprintf(own, sizeof own, "%s.attachments/%zu", nid, index);
	d->readable = disposition != NULL && strcmp(disposition, "clean") == 0 && ref != NULL && strcmp(ref, own) == 0 &&
	    sha != NULL && am_is_sha256(sha, strlen(sha));
	if (d->readable)
		strlcpy(d->sha256, sha, sizeof d->sha256);
}

static void
describe_all(struct am_spooled *m, jv doc)
{
	jv list = am_get(doc, "attachments", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0, objects = 1;

	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i);

		objects &= jv_get_kind(item) == JV_KIND_OBJECT;
		jv_free(item);
	}
	if (n > 0 && objects) {
		if ((m->files = calloc((size_t)n, sizeof m->files[0])) == NULL)
			abort();
		for (m->count = 0; m->count < (size_t)n; m->count++) {
			jv item = jv_array_get(jv_copy(list), (int)m->count);

			describe(&m->files[m->count], item, m->nid, m->count);
			jv_free(item);
		}
	}
	jv_free(list);
}

int
am_spool_load(int dir, const char *name, struct am_spooled *m, char why[300])
{
	size_t len, stem = strlen(name) - 5;
	char *bytes = am_read_regular(dir, name, MESSAGE_MAX, &len);
	const char *version;
	jv doc;

	*m = (struct am_spooled){ 0 };
	if (strncmp(name, "notice-", 7) == 0) {
		name += 7;
		stem -= 7;
	}
	snprintf(m->nid, sizeof m->nid, "%.*s", (int)stem, name);
	if (bytes == NULL) {
		snprintf(why, 300, "%s", errno == EFBIG ? "too large" : errno == ELOOP ? "a symbolic link" : strerror(errno));
		return -1;
	}
	doc = am_json_parse(bytes, len);
	free(bytes);
	if (!jv_is_valid(doc)) {
		snprintf(why, 300, "not JSON: %s", am_json_why(doc));
		return -1;
	}
	if (jv_get_kind(doc) != JV_KIND_OBJECT) {
		snprintf(why, 300, "not an object");
		jv_free(doc);
		return -1;
	}
	if (am_doc_version_refused("inbound-message", doc)) {
		version = am_str(doc, "contract_version");
		snprintf(why, 300, "contract_version '%s' refused", version == NULL ? "" : am_quotes(version));
		jv_free(doc);
		return -1;
	}
	m->id = text(doc, "id", AM_CLEAN_LINE, 200, "");
	m->date = text(doc, "date", AM_CLEAN_LINE, 200, "");
	m->from = text(doc, "from", AM_CLEAN_LINE, 300, "");
	m->to = text(doc, "to", AM_CLEAN_LINE, 300, "");
	m->cc = text(doc, "cc", AM_CLEAN_LINE, 300, "");
	m->subject = text(doc, "subject", AM_CLEAN_LINE, 500, "(no subject)");
	m->body = text(doc, "body_text", AM_CLEAN_BODY, AM_CLEAN_BODY_MAX, "(no plain-text body)");
	describe_all(m, doc);
	jv_free(doc);
	return 0;
}

void
am_spool_free(struct am_spooled *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->files[i].filename);
		free(m->files[i].media_type);
		free(m->files[i].disposition);
	}
	free(m->files);
	free(m->id);
	free(m->date);
	free(m->from);
	free(m->to);
	free(m->cc);
	free(m->subject);
	free(m->body);
	*m = (struct am_spooled){ 0 };
}

int
am_spool_find(int dir, const char *id, char name[224])
{
	static const char *const form[] = { "notice-%s.json", "%s.json" };
	struct stat st;

	for (size_t i = 0; i < 2; i++) {
		snprintf(name, 224, i == 0 ? form[0] : form[1], id);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
			return 0;
	}
	return -1;
}

/* ---- attachments ---- */

static int
is_utf8(const char *s, size_t len)
{
	uint32_t c;

	for (size_t i = 0; i < len; ) {
		int n = am_utf8_next(s + i, len - i, &c);

		if (n < 0)
			return 0;
		i += (size_t)n;
	}
	return 1;
}

/* Reads to the end, or one byte further than there should be; the first bytes stay in head. */
static int
digest(int fd, size_t want, char sha[65], char *head)
{
	char block[65536];
	size_t total = 0;
	SHA2_CTX hash;
	ssize_t n;

	SHA256Init(&hash);
	while ((n = read(fd, block, sizeof block)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (total + (size_t)n > want) {
			errno = EFBIG;
			return -1;
		}
		if (total + (size_t)n <= AM_ATTACHMENT_TEXT_MAX)
			memcpy(head + total, block, (size_t)n);
		SHA256Update(&hash, (const uint8_t *)block, (size_t)n);
		total += (size_t)n;
	}
	SHA256End(&hash, sha);
	errno = EIO;
	return total == want ? 0 : -1;
}

int
am_spool_attachment(int parent, const struct am_spooled *m, size_t index, char **shown, char why[300])
{
	const struct am_descriptor *d = &m->files[index];
	char path[260], sha[65], *head = malloc(AM_ATTACHMENT_TEXT_MAX + 1);
	size_t want = (size_t)d->size;
	struct stat st;
	int fd;

	if (head == NULL)
		abort();
	*shown = NULL;
	snprintf(path, sizeof path, "notices/%s.attachments/%zu", m->nid, index);
	fd = am_open_regular(parent, path, SIZE_MAX);
	if (fd < 0)
		snprintf(why, 300, "its bytes cannot be read: %s", strerror(errno));
	else if (fstat(fd, &st) != 0 || (unsigned long long)st.st_size != want)
		snprintf(why, 300, "its bytes do not have the size that was stated");
	else if (digest(fd, want, sha, head) != 0)
		snprintf(why, 300, "its bytes cannot be read whole: %s", strerror(errno));
	else if (strcmp(sha, d->sha256) != 0)
		snprintf(why, 300, "its bytes do not have the digest that was stated");
	else {
		head[want <= AM_ATTACHMENT_TEXT_MAX ? want : 0] = '\0';
		/* A text with a NUL is no text; it could not be shown whole. */
		if (strncmp(d->media_type, "text/", 5) == 0 && want <= AM_ATTACHMENT_TEXT_MAX &&
		    memchr(head, '\0', want) == NULL && is_utf8(head, want)) {
			*shown = head;
			head = NULL;
		}
		why[0] = '\0';
	}
	if (fd >= 0)
		close(fd);
	free(head);
	return why[0] == '\0' ? 0 : -1;
}
