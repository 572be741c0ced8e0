/*
 * claude-seed - answer the questions of claude's first start beforehand
 *
 * Adds to $HOME/.claude.json what an unattended start needs (spec deployment,
 * section 8; spec claude-code, section 1). A member that is there keeps its
 * value. The provider key is never printed, and of it only what claude itself
 * writes there goes into the file.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "connector/place.h"
#include "diag.h"
#include "file.h"
#include "id.h"
#include "json.h"
#include "path.h"

#define FILE_NAME ".claude.json"
#define SEEDED ".claude/connector/seeded"	/* the directory that this program made trusted */
#define VERSION_MS 60000
#define VERSION_MAX 4095	/* bytes of what claude says of it */
#define SUFFIX 20		/* characters of the key by which claude knows it again */

static const char usage[] =
    "usage: claude-seed\n"
    "Adds to $HOME/.claude.json what lets claude start without a question: onboarding done,\n"
    "this directory trusted, the end of $ANTHROPIC_API_KEY approved.\n";

static _Noreturn void
refuse(const char *why)
{
	am_warnx("%s", why);
	exit(AM_PROBLEM);
}

static _Noreturn void
fail(const char *what)
{
	am_warn("%s", what);
	exit(AM_PROBLEM);
}

/* ---- the version ---- */

/* N.N.N, then nothing, or one of -+. and at least one letter, digit, dot or hyphen. */
static int
is_version(const char *s)
{
	for (int i = 0; i < 3; i++) {
		size_t n = strspn(s, "0123456789");

		if (n == 0)
			return 0;
		s += n;
		if (i < 2 && *s++ != '.')
			return 0;
	}
	if (*s == '\0')
		return 1;
	if (strchr("-+.", *s++) == NULL || *s == '\0')
		return 0;
	while (isalnum((unsigned char)*s) || (*s != '\0' && strchr("-.", *s) != NULL))
		s++;
	return *s == '\0';
}

static const char *
claude_version(void)
{
	static char said[VERSION_MAX + 1];
	char *argv[] = { "claude", "--version", NULL }, *word, *save;
	struct am_child claude;
	int status;

	if (am_child_start(&claude, argv) != 0)
		fail("claude --version");
	status = am_child_follow(&claude, am_now() + VERSION_MS, VERSION_MAX, AM_FIRST);
	if (claude.out[1].len > 0)
		fwrite(claude.out[1].bytes, 1, claude.out[1].len, stderr);
	if (claude.out[0].len > 0)
		memcpy(said, claude.out[0].bytes, claude.out[0].len);
	am_child_free(&claude);
	if (status != 0)
		refuse("claude --version: it failed, or took longer than 60 s");
	word = strtok_r(said, " \t\r\n", &save);
	if (word == NULL || !is_version(word))
		refuse("claude --version: its first word is no version");
	return word;
}

/* ---- the file ---- */

/*
 * A value's numbers are doubles, and what others wrote may have more digits than
 * those keep: such a number travels as a string, behind a mark that nobody knows.
 */
#define DIGITS 15
static char mark[33];

static void
add_all(struct am_buf *b, const char *from, const char *to)
{
	am_buf_add(b, from, (size_t)(to - from));
}

/* Past the string that begins at p. */
static const char *
past_string(const char *p)
{
	while (*++p != '"')
		if (*p == '\\')
			p++;
	return p + 1;
}

/* Owns a sound document's text with its long numbers marked. */
static char *
mark_numbers(const char *text, size_t *len)
{
	struct am_buf b = { 0 };
	const char *p = text, *end = text + *len, *next;

	for (; p < end; p = next) {
		next = *p == '"' ? past_string(p) : p + strspn(p, "-+.eE0123456789");
		if (next <= p + DIGITS || *p == '"') {
			next += next == p;
			add_all(&b, p, next);
			continue;
		}
		am_buf_strings(&b, "\"", mark, NULL);
		add_all(&b, p, next);
		am_buf_byte(&b, '"');
	}
	*len = b.n;
	return am_buf_end(&b);
}

/* Owns the text with the numbers as they were. */
static char *
unmark_numbers(const char *text, size_t *len)
{
	struct am_buf b = { 0 };
	const char *p, *end;

	for (; (p = strstr(text, mark)) != NULL; text = end + 1) {
		add_all(&b, text, p - 1);
		p += strlen(mark);
		end = p + strcspn(p, "\"");
		add_all(&b, p, end);
	}
	am_buf_strings(&b, text, "\n", NULL);
	*len = b.n;
	return am_buf_end(&b);
}

/* Owns the document; an empty one, and *mode 0600, when there is no file. */
static jv
read_file(int home, mode_t *mode)
{
	int fd = am_open_regular(home, FILE_NAME, AM_JSON_MAX);
	struct stat st;
	size_t len;
	char *text, *marked;
	jv doc;

	*mode = 0600;
	am_random_hex(mark, 16);
	if (fd < 0 && errno == ENOENT)
		return jv_object();
	if (fd < 0 && errno == ELOOP)
		refuse(FILE_NAME ": it is a symbolic link");
	if (fd < 0 && errno == EINVAL)
		refuse(FILE_NAME ": it is no regular file");
	if (fd < 0 || fstat(fd, &st) != 0 || (text = am_read_fd(fd, AM_JSON_MAX, &len)) == NULL)
		fail(FILE_NAME);
	close(fd);
	*mode = st.st_mode & 07777;
	doc = am_json_parse(text, len);
	if (jv_is_valid(doc)) {
		jv_free(doc);
		marked = mark_numbers(text, &len);
		doc = am_json_parse(marked, len);
		free(marked);
	}
	free(text);
	if (!jv_is_valid(doc)) {
		am_warnx(FILE_NAME ": %s", am_json_why(doc));
		exit(AM_PROBLEM);
	}
	if (jv_get_kind(doc) != JV_KIND_OBJECT)
		refuse(FILE_NAME ": it holds no object");
	return doc;
}

/* Consumes the object; owns it with the member added, unless it has one. Consumes v. */
static jv
add(jv object, const char *key, jv v)
{
	if (!am_has(object, key))
		return am_set(object, key, v);
	jv_free(v);
	return object;
}

/* The same for true; ours: a false in its place is none of the operator's, who found true there. */
static jv
add_true(jv object, const char *key, int ours)
{
	jv false_ = am_get(object, key, JV_KIND_FALSE);

	if (ours && jv_get_kind(false_) == JV_KIND_FALSE)
		return am_set(object, key, jv_true());
	return add(object, key, jv_true());
}

static int
is_ours(int home, const char *cwd)
{
	size_t len;
	char *text = am_read_regular(home, SEEDED, PATH_MAX, &len);
	int yes = text != NULL && len == strlen(cwd) + 1 && text[len - 1] == '\n' && memcmp(text, cwd, len - 1) == 0;

	free(text);
	return yes;
}

/* Remembers it. Where that cannot be, nothing is repaired later, and that is all. */
static void
make_ours(const char *home, const char *cwd)
{
	char *path = am_path_join(home, SEEDED), *line, *slash = strrchr(path, '/');
	int dir;

	if (asprintf(&line, "%s\n", cwd) < 0)
		abort();
	*slash = '\0';
	dir = am_make_dirs(path) != 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || am_publish(dir, slash + 1, line, strlen(line), 0644) != 0)
		am_warn("%s/%s", path, slash + 1);
	if (dir >= 0)
		close(dir);
	free(line);
	free(path);
}

/* Owns a container of the object, or an empty one. Borrows. */
static jv
container(jv object, const char *key, jv_kind kind)
{
	jv v;

	if (!am_has(object, key))
		return kind == JV_KIND_OBJECT ? jv_object() : jv_array();
	v = am_get(object, key, kind);
	if (!jv_is_valid(v)) {
		am_warnx(FILE_NAME ": %s: it is no %s", am_quotes(key), kind == JV_KIND_OBJECT ? "object" : "array");
		exit(AM_PROBLEM);
	}
	return v;
}

static jv
approve(jv responses, const char *suffix)
{
	jv approved = container(responses, "approved", JV_KIND_ARRAY);
	int there = 0;

	jv_array_foreach(approved, i, item) {
		there |= jv_get_kind(item) == JV_KIND_STRING && strcmp(jv_string_value(item), suffix) == 0;
		jv_free(item);
	}
	if (!there)
		approved = jv_array_append(approved, jv_string(suffix));
	return am_set(responses, "approved", approved);
}

/* Consumes doc. *trusted: this directory was not spoken of before. */
static jv
seed(jv doc, const char *cwd, const char *version, const char *suffix, int ours, int *trusted)
{
	jv projects = container(doc, "projects", JV_KIND_OBJECT);
	jv project = container(projects, cwd, JV_KIND_OBJECT);
	jv responses = container(doc, "customApiKeyResponses", JV_KIND_OBJECT);

	*trusted = !am_has(project, "hasTrustDialogAccepted");
	projects = am_set(projects, cwd, add_true(project, "hasTrustDialogAccepted", ours));
	doc = add_true(doc, "hasCompletedOnboarding", ours);
	doc = add(doc, "lastOnboardingVersion", jv_string(version));
	doc = am_set(doc, "projects", projects);
	return am_set(doc, "customApiKeyResponses", approve(responses, suffix));
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	const char *home_path = am_env("HOME"), *key = am_env("ANTHROPIC_API_KEY");
	char *cwd = getcwd(NULL, 0), *text;
	jv before, after;
	mode_t mode;
	size_t len;
	int c, home, trusted;

	am_prog = "claude-seed";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		am_std_option(c, usage);
	if (optind != argc)
		am_usage(usage);
	if (home_path == NULL)
		refuse("HOME is not set");
	if (key == NULL || strlen(key) <= SUFFIX)
		refuse("ANTHROPIC_API_KEY must hold more than 20 characters");
	if (cwd == NULL)
		fail("the working directory");
	if ((home = open(home_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		fail(home_path);
	before = read_file(home, &mode);
	after = seed(jv_copy(before), cwd, claude_version(), key + strlen(key) - SUFFIX, is_ours(home, cwd), &trusted);
	if (!jv_equal(jv_copy(before), jv_copy(after))) {
		jv pretty = jv_dump_string(jv_copy(after), JV_PRINT_PRETTY | JV_PRINT_INDENT_FLAGS(2));

		text = unmark_numbers(jv_string_value(pretty), &len);
		if (am_publish(home, FILE_NAME, text, len, mode) != 0)
			fail(FILE_NAME);
		free(text);
		jv_free(pretty);
	}
	if (trusted)
		make_ours(home_path, cwd);
	jv_free(before);
	jv_free(after);
	free(cwd);
	return AM_OK;
}
