#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connector/clean.h"
#include "connector/place.h"
#include "diag.h"
#include "json.h"
#include "path.h"

#define IDENTITY_MAX 65536

const char *
am_env(const char *name)
{
	const char *value = getenv(name);

	return value == NULL || value[0] == '\0' ? NULL : value;
}

static int
name_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* $NAME and ${NAME}; what is unset stays as it is written, what is inserted is not looked at again. */
static char *
expand_names(const char *s)
{
	char *out, name[256];
	size_t len;
	FILE *fp = open_memstream(&out, &len);

	if (fp == NULL)
		abort();
	while (*s != '\0') {
		const char *from = s, *value = NULL;
		int braced = s[0] == '$' && s[1] == '{';
		size_t n = 0;

		if (*s == '$') {
			from += 1 + braced;
			while (name_char(from[n]))
				n++;
		}
		if (n > 0 && n < sizeof name && (!braced || from[n] == '}')) {
			memcpy(name, from, n);
			name[n] = '\0';
			value = getenv(name);
		}
		if (value != NULL) {
			fputs(value, fp);
			s = from + n + braced;
		} else {
			putc(*s++, fp);
		}
	}
	if (fclose(fp) != 0)
		abort();
	return out;
}

static char *
expand_home(char *path)
{
	const char *home = NULL, *rest = path + strcspn(path, "/");
	struct passwd *pw;
	char *out;

	if (path[0] != '~')
		return path;
	if (rest == path + 1 && (home = getenv("HOME")) == NULL) {
		if ((pw = getpwuid(getuid())) != NULL)
			home = pw->pw_dir;
	} else if (rest > path + 1) {
		char *user = strndup(path + 1, (size_t)(rest - path - 1));

		if (user == NULL)
			abort();
		if ((pw = getpwnam(user)) != NULL)
			home = pw->pw_dir;
		free(user);
	}
	if (home == NULL)
		return path;
	if (asprintf(&out, "%s%s", home, rest) < 0)
		abort();
	free(path);
	return out;
}

char *
am_place(const char *variable, const char *sub)
{
	const char *value = am_env(variable);
	char *root, *path;

	if (value != NULL)
		return expand_home(expand_names(value));
	if ((value = am_env("MAILBOX_ROOT_DIR")) == NULL)
		return NULL;
	root = expand_home(expand_names(value));
	path = am_path_join(root, sub);
	free(root);
	return path;
}

int
am_make_dirs(const char *path)
{
	char *copy = strdup(path), *p = copy;
	int rc = 0;

	if (copy == NULL)
		abort();
	if (*copy == '\0') {
		free(copy);
		errno = ENOENT;
		return -1;
	}
	do {
		p = strchr(p + 1, '/');
		if (p != NULL)
			*p = '\0';
		rc = mkdir(copy, 0777) != 0 && errno != EEXIST ? -1 : 0;
		if (p != NULL)
			*p = '/';
	} while (p != NULL && rc == 0);
	free(copy);
	return rc;
}

void
am_identity_notice(void)
{
	char *root, *path, *shown;
	const char *address;
	jv doc;

	if (am_env("MAILBOX_ROOT_DIR") == NULL)
		return;
	root = am_place("MAILBOX_ROOT_DIR", "");
	path = am_path_join(root, "identity.json");
	doc = am_json_read_regular(path, 0, IDENTITY_MAX);
	if (!jv_is_valid(doc) && (errno == ENOENT || errno == ENOTDIR)) {
		jv_free(doc);
	} else if (!jv_is_valid(doc)) {
		am_warnx("%s: %s", path, am_json_why(doc));
	} else {
		if ((address = am_str(doc, "address")) != NULL && address[0] != '\0') {
			shown = am_clean(AM_CLEAN_LINE, address, strlen(address), 200);
			am_warnx("bound to %s (informational)", shown);
			free(shown);
		}
		jv_free(doc);
	}
	free(root);
	free(path);
}
