#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connector/attach.h"
#include "connector/clean.h"
#include "connector/place.h"
#include "diag.h"
#include "json.h"

#define DEFAULT_LIMIT 26214400
#define UNKNOWN_TYPE "application/octet-stream"

size_t
am_attachment_limit(void)
{
	const char *s = am_env("INBOX_ATTACH_MAX_BYTES");
	size_t n;

	if (s == NULL || strspn(s, "0123456789") != strlen(s) || strlen(s) > 15)
		return DEFAULT_LIMIT;
	n = (size_t)strtoull(s, NULL, 10);
	return n == 0 ? DEFAULT_LIMIT : n;
}

static const char *
type_of(const char *name)
{
	static const struct {
		const char *ext, *type;
	} types[] = {
		{ "txt", "text/plain" }, { "c", "text/plain" }, { "h", "text/plain" }, { "md", "text/markdown" },
		{ "csv", "text/csv" }, { "tsv", "text/tab-separated-values" }, { "html", "text/html" },
		{ "htm", "text/html" }, { "css", "text/css" }, { "py", "text/x-python" }, { "xml", "text/xml" },
		{ "json", "application/json" }, { "js", "application/javascript" }, { "pdf", "application/pdf" },
		{ "zip", "application/zip" }, { "tar", "application/x-tar" }, { "tgz", "application/x-tar" },
		{ "sh", "application/x-sh" }, { "png", "image/png" }, { "jpeg", "image/jpeg" },
		{ "jpg", "image/jpeg" }, { "gif", "image/gif" }, { "svg", "image/svg+xml" },
		{ "eml", "message/rfc822" },
	};
	const char *dot = strrchr(name, '.');
	size_t len = strlen(name);

	if (len > 7 && strcasecmp(name + len - 7, ".tar.gz") == 0)
		return "application/x-tar";
	if (dot == NULL || dot == name)
		return UNKNOWN_TYPE;
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcasecmp(dot + 1, types[i].ext) == 0)
			return types[i].type;
	return UNKNOWN_TYPE;
}

/* Borrows. The string member; "" where it is absent; NULL where it is something else. */
static const char *
text_member(jv item, const char *key)
{
	return am_has(item, key) ? am_str(item, key) : "";
}

/* Borrows the item. The reason why it cannot be attached, or NULL. */
static const char *
open_one(jv item, size_t max, struct am_attachment *a)
{
	static const char *const known[] = { "path", "filename", "media_type", NULL };
	const char *path, *filename = "", *media_type = "", *name;
	struct stat st;

	if (jv_get_kind(item) == JV_KIND_STRING) {
		path = jv_string_value(item);
		if (strlen(path) != (size_t)jv_string_length_bytes(jv_copy(item)))
			path = NULL;
	} else if (jv_get_kind(item) == JV_KIND_OBJECT) {
		if (am_unknown_key(item, known) != NULL)
			return "may hold path, filename and media_type only";
		path = text_member(item, "path");
		filename = text_member(item, "filename");
		media_type = text_member(item, "media_type");
	} else {
		return "is neither a path nor an object";
	}
	if (path == NULL || filename == NULL || media_type == NULL)
		return "path, filename and media_type must be strings without a NUL";
	if (path[0] == '\0')
		return "has no path";
	/* The agent's own choice: links are followed. Not blocking: it may be a FIFO. */
	if ((a->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0 || fstat(a->fd, &st) != 0)
		return strerror(errno);
	a->path = path;
	name = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
	if (filename[0] != '\0')
		name = filename;
	a->filename = am_clean(AM_CLEAN_NAME, name, strlen(name), 120);
	/* The type travels in a document whose rule is one printable line. */
	a->media_type = am_clean(AM_CLEAN_LINE, media_type, strlen(media_type), 200);
	if (a->media_type[0] == '\0') {
		free(a->media_type);
		a->media_type = strdup(type_of(name));
	}
	if (!S_ISREG(st.st_mode))
		return "is no regular file";
	if ((unsigned long long)st.st_size > max)
		return "is larger than the limit for one attachment";
	return NULL;
}

int
am_attachments_open(jv list, size_t max, struct am_attachment files[AM_ATTACHMENTS_MAX], size_t *count,
    char why[256])
{
	const char *problem = NULL;
	int n;

	*count = 0;
	if (jv_get_kind(list) == JV_KIND_NULL)
		return 0;
	if (jv_get_kind(list) != JV_KIND_ARRAY) {
		snprintf(why, 256, "attachments must be a list");
		return -1;
	}
	n = jv_array_length(jv_copy(list));
	if (n > AM_ATTACHMENTS_MAX) {
		snprintf(why, 256, "attachments: %d files, and at most %d can go with one request", n, AM_ATTACHMENTS_MAX);
		return -1;
	}
	for (int i = 0; i < n && problem == NULL; i++) {
		jv item = jv_array_get(jv_copy(list), i);
		struct am_attachment *a = &files[(*count)++];

		*a = (struct am_attachment){ .fd = -1 };
		if ((problem = open_one(item, max, a)) != NULL)
			snprintf(why, 256, "attachments[%d]: %s%s%s", i, a->path == NULL ? "" : am_quotes(a->path),
			    a->path == NULL ? "" : ": ", problem);
		jv_free(item);		/* the list keeps the strings */
	}
	return problem == NULL ? 0 : -1;
}

void
am_attachments_close(struct am_attachment *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (files[i].fd >= 0)
			close(files[i].fd);
		free(files[i].filename);
		free(files[i].media_type);
	}
}
