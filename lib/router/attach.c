/* The sidecar files of a request (spec router, section 9). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "router/request.h"

/* Diagnostics stand at the index that they speak of: those before the offender have no fault. */
static void
point_at(struct amr_request *q, int offender, const char *fault)
{
	jv list = jv_array();

	for (int i = 0; i <= offender; i++) {
		jv d = am_set(jv_object(), "index", jv_number(i));

		d = am_set_str(d, "outcome", i == offender ? fault : "accepted");
		list = jv_array_append(list, am_set(d, "detail", jv_null()));
	}
	jv_free(q->answer.attachments);
	q->answer.attachments = list;
}

/* errno when a file could not be had: 1 for a shortage of ours, which passes. */
static int
mismatch(struct amr_request *q, const char *detail)
{
	if (amr_is_shortage(errno))
		return 1;
	amr_refuse(q, "rejected", "attachment_mismatch", detail);
	return -1;
}

static int
hold(struct amr_request *q, const char *reason, const char *detail)
{
	amr_refuse(q, "queued_for_human", reason, detail);
	q->answer.hold = 1;
	return -1;
}

static double
stated_size(jv list, int i)
{
	jv item = jv_array_get(jv_copy(list), i), size = am_get(item, "size_bytes", JV_KIND_NUMBER);
	double n = jv_number_value(size);

	jv_free(size);
	jv_free(item);
	return n;
}

/* Limits come before anything is opened. */
static int
within_limits(struct amr_request *q, jv list, int n, const struct amr_conf *c)
{
	double total = 0;

	if (n > c->files_max)
		return hold(q, "attachment_count_exceeded", "more attachments than the limit allows");
	for (int i = 0; i < n; i++)
		if (stated_size(list, i) > (double)c->file_max) {
			point_at(q, i, "too_large");
			return hold(q, "attachment_too_large", "an attachment is larger than the limit allows");
		}
	for (int i = 0; i < n; i++)
		total += stated_size(list, i);
	if (total > (double)c->total_max)
		return hold(q, "attachment_too_large", "the attachments together are larger than the limit allows");
	return 0;
}

/* The directory holds exactly the names "0" to "n-1". */
static int
exact_names(int dir, int n)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), seen = 0, ok = 1;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	char name[16];

	if (d == NULL) {
		int saved = errno;

		if (copy >= 0)
			close(copy);
		errno = saved;
		return 0;
	}
	while (ok && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof name, "%d", atoi(e->d_name));
		ok = strcmp(name, e->d_name) == 0 && name[0] != '-' && atoi(name) < n;
		seen++;
	}
	closedir(d);
	errno = 0;
	return ok && seen == n;
}

/* Reads a file of exactly this size; the room for it is taken once. */
static char *
read_exactly(int dir, const char *name, size_t size)
{
	int fd = am_open_regular(dir, name, size), saved;
	char *bytes = fd < 0 ? NULL : malloc(size + 1);
	size_t n = 0;
	ssize_t got = 1;

	while (bytes != NULL && got > 0 && n <= size)
		if ((got = read(fd, bytes + n, size + 1 - n)) > 0)
			n += (size_t)got;
		else if (got < 0 && errno == EINTR)
			got = 1;
	saved = bytes == NULL || got < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (bytes != NULL && (got < 0 || n != size)) {
		free(bytes);
		bytes = NULL;
	}
	errno = saved;
	return bytes;
}

static int
read_blob(struct amr_blob *b, int dir, int i, jv item)
{
	jv v = am_get(item, "size_bytes", JV_KIND_NUMBER);
	char name[16];

	b->len = (size_t)jv_number_value(v);
	jv_free(v);
	snprintf(name, sizeof name, "%d", i);
	if ((b->bytes = read_exactly(dir, name, b->len)) == NULL)
		return -1;
	amr_digest(b->bytes, b->len, b->sha256);
	errno = 0;
	return strcmp(b->sha256, am_str(item, "sha256")) == 0 ? 0 : -1;
}

static jv
display(jv item, const char *key, size_t max, jv fallback)
{
	jv text = am_get(item, key, JV_KIND_STRING), v = amr_display_text(text, max);

	jv_free(text);
	if (jv_string_length_bytes(jv_copy(v)) == 0) {
		jv_free(v);
		return fallback;
	}
	jv_free(fallback);
	return v;
}

static int
read_all(struct amr_request *q, int dir, jv list, int n)
{
	if ((q->blobs = calloc((size_t)n, sizeof *q->blobs)) == NULL)
		abort();
	q->n_blobs = (size_t)n;
	for (int i = 0; i < n; i++)
		q->blobs[i].filename = q->blobs[i].media_type = jv_invalid();
	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(list), i);
		int rc = read_blob(&q->blobs[i], dir, i, item), saved = errno;

		if (rc == 0) {
			q->blobs[i].filename = display(item, "filename", 300, jv_string_fmt("attachment-%d", i));
			q->blobs[i].media_type = display(item, "media_type", 200, jv_string("application/octet-stream"));
		}
		jv_free(item);
		if (rc != 0) {
			errno = saved;
			point_at(q, i, "rejected_type");
			return mismatch(q, "an attachment's file is not what its descriptor says");
		}
	}
	return 0;
}

int
amr_request_attach(struct amr_request *q, int outbox, const struct amr_conf *c)
{
	jv list = am_get(q->draft, "attachments", JV_KIND_ARRAY);
	int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0, dir, rc;
	char name[AM_REQ_ID_MAX + 32];
	struct stat st;

	errno = 0;
	snprintf(name, sizeof name, "req-%s.attachments", q->id);
	if (n == 0) {
		jv_free(list);
		return fstatat(outbox, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ?
		    mismatch(q, "attachments without descriptors") : 0;
	}
	if ((rc = within_limits(q, list, n, c)) == 0) {
		dir = am_open_beneath(outbox, name, O_RDONLY | O_DIRECTORY, 0);
		if (dir < 0)
			rc = mismatch(q, "the attachments' directory is not there");
		else if (!exact_names(dir, n))
			rc = mismatch(q, "the attachments' directory does not hold one file for each descriptor");
		else
			rc = read_all(q, dir, list, n);
		if (dir >= 0)
			close(dir);
	}
	jv_free(list);
	return rc;
}
