#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "json.h"

const char *
am_json_why(jv invalid)
{
	static char why[256];
	jv msg = jv_invalid_get_msg(invalid);

	snprintf(why, sizeof why, "%s", jv_get_kind(msg) == JV_KIND_STRING ? jv_string_value(msg) : "unknown");
	jv_free(msg);
	return why;
}

/* ---- reading ---- */

static jv
trouble(int errnum, const char *why)
{
	errno = errnum;
	return jv_invalid_with_msg(jv_string(why));
}

static jv
read_fd(int fd, size_t max)
{
	size_t len;
	char *text = am_read_fd(fd, max, &len);
	jv v;

	if (text == NULL && errno == EFBIG) {
		errno = 0;
		return jv_invalid_with_msg(jv_string_fmt("larger than %zu bytes", max));
	}
	if (text == NULL)
		return trouble(errno, strerror(errno));
	v = len == 0 ? jv_invalid_with_msg(jv_string("empty")) : am_json_parse(text, len);
	free(text);
	errno = 0;
	return v;
}

static jv
close_after(int fd, jv v)
{
	int saved = errno;

	close(fd);
	errno = saved;
	return v;
}

jv
am_json_read(const char *path, size_t max)
{
	int fd;

	if (path == NULL || strcmp(path, "-") == 0)
		return read_fd(STDIN_FILENO, max);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return trouble(errno, strerror(errno));
	return close_after(fd, read_fd(fd, max));
}

jv
am_json_read_regular(const char *path, int nofollow, size_t max)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0));
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return trouble(ELOOP, "a symbolic link where a file should stand");
	if (fd < 0)
		return trouble(errno, strerror(errno));
	if (fstat(fd, &st) != 0)
		return close_after(fd, trouble(errno, strerror(errno)));
	if (!S_ISREG(st.st_mode))
		return close_after(fd, trouble(EINVAL, "not a regular file"));
	return close_after(fd, read_fd(fd, max));
}

jv
am_json_object_at(int dirfd, const char *path, size_t max)
{
	size_t len;
	char *text = am_read_regular(dirfd, path, max, &len);
	jv v = text == NULL ? jv_invalid() : am_json_parse(text, len);

	free(text);
	if (jv_get_kind(v) == JV_KIND_OBJECT)
		return v;
	jv_free(v);
	return jv_invalid();
}

jv
am_get_or_null(jv object, const char *key)
{
	jv v = jv_object_get(jv_copy(object), jv_string(key));

	if (jv_is_valid(v))
		return v;
	jv_free(v);
	return jv_null();
}

jv
am_strings(const char *const *list, size_t n)
{
	jv out = jv_array();

	for (size_t i = 0; i < n; i++)
		out = jv_array_append(out, jv_string(list[i]));
	return out;
}

jv
am_get(jv object_, const char *key, jv_kind kind)
{
	jv v;

	if (jv_get_kind(object_) != JV_KIND_OBJECT)
		return jv_invalid();
	v = jv_object_get(jv_copy(object_), jv_string(key));
	if (jv_get_kind(v) == kind)
		return v;
	jv_free(v);
	return jv_invalid();
}

/* Borrows. The characters of a string, which live as long as it; NULL for anything else and when one is a NUL. */
static const char *
text_of(jv v)
{
	const char *s = jv_get_kind(v) == JV_KIND_STRING ? jv_string_value(v) : NULL;

	return s == NULL || strlen(s) != (size_t)jv_string_length_bytes(jv_copy(v)) ? NULL : s;
}

const char *
am_str(jv object_, const char *key)
{
	jv v = am_get(object_, key, JV_KIND_STRING);
	const char *s = text_of(v);

	jv_free(v);		/* the object keeps its own reference */
	return s;
}

int
am_has(jv object_, const char *key)
{
	return jv_get_kind(object_) == JV_KIND_OBJECT && jv_object_has(jv_copy(object_), jv_string(key));
}

const char *
am_unknown_key(jv object_, const char *const *known)
{
	static char unknown[128];
	int i = jv_object_iter(object_);

	for (; jv_object_iter_valid(object_, i); i = jv_object_iter_next(object_, i)) {
		jv k = jv_object_iter_key(object_, i);
		const char *s = jv_string_value(k);
		size_t len = (size_t)jv_string_length_bytes(jv_copy(k)), n;

		for (n = 0; known[n] != NULL; n++)
			if (strlen(known[n]) == len && memcmp(known[n], s, len) == 0)
				break;
		if (known[n] == NULL) {
			snprintf(unknown, sizeof unknown, "%s", s);
			jv_free(k);
			return unknown;
		}
		jv_free(k);
	}
	return NULL;
}

jv
am_set(jv object_, const char *key, jv v)
{
	return jv_object_set(object_, jv_string(key), v);
}

jv
am_set_str(jv object_, const char *key, const char *s)
{
	return am_set(object_, key, s == NULL ? jv_null() : jv_string(s));
}
