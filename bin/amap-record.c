/*
 * amap-record - run a command and keep what it did as evidence
 *
 * The record and its place: spec bringup, section 4.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "diag.h"
#include "file.h"
#include "id.h"
#include "json.h"
#include "redact.h"
#include "utf8.h"

#define KEEP 1048576		/* characters of each stream, counted as bytes here */
#define TIMED_OUT 124

static const char usage[] =
    "usage: amap-record --dir DIR --step N --run RUN --label TEXT [--timeout SECONDS] [--secrets-fd N]\n"
    "                   -- COMMAND [ARGUMENT]...\n"
    "\n"
    "Runs COMMAND without standard input, prints what it printed, and keeps a record of it below\n"
    "DIR/step-N. Exit status: the command's own; 124 it ran out of time; 126 or 127 it could\n"
    "not be started; 125 there is no record.\n"
    "\n"
    "  --timeout SECONDS  1 to 86400 (300)\n"
    "  --secrets-fd N     read secrets, one a line, from descriptor N; they are never kept or printed\n";

static _Noreturn void fail(const char *what) __attribute__((cold));

static void
fail(const char *what)
{
	am_warn("%s", am_quotes(what));
	exit(125);
}

/* The command's exit status, as a shell would tell it. */
static int
run_command(struct am_child *child, char *argv[], long long until, int *timed_out)
{
	int status, len;

	*timed_out = 0;
	if (am_child_start(child, argv) != 0) {
		status = errno == ENOENT ? 127 : 126;
		if ((len = asprintf(&child->out[1].bytes, "%s: %s\n", argv[0], strerror(errno))) < 0)
			abort();
		child->out[1].len = (size_t)len;
		return status;
	}
	if ((status = am_child_follow(child, until, KEEP, AM_LAST)) == -1) {
		*timed_out = 1;
		return TIMED_OUT;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- the record ---- */

/* Bytes that are no text become U+FFFD, as libjq has it; the tail begins at a character. */
static jv
text_value(const struct am_secrets *s, const struct am_output *t)
{
	size_t skip = t->len > KEEP ? t->len - KEEP : 0, len;
	char *clean;
	jv v;

	while (skip < t->len && ((unsigned char)t->bytes[skip] & 0xc0) == 0x80)
		skip++;
	clean = am_redact(s, t->len == 0 ? "" : t->bytes + skip, t->len - skip, &len);
	v = jv_string_sized(clean, (int)len);
	free(clean);
	return t->cut || skip > 0 ? jv_string_concat(jv_string("[truncated]"), v) : v;
}

static jv
word_value(const struct am_secrets *s, const char *word)
{
	size_t len;
	char *clean = am_redact(s, word, strlen(word), &len);
	jv v = jv_string_sized(clean, (int)len);

	free(clean);
	return v;
}

static void
make_slug(const char *label, char slug[61])
{
	size_t n = 0;

	for (; *label != '\0' && n < 60; label++)
		slug[n++] = isalnum((unsigned char)*label) ? (char)tolower((unsigned char)*label) : '-';
	slug[n] = '\0';
}

static int
open_private(int at, const char *name)
{
	struct stat st;
	int fd;

	if (mkdirat(at, name, 0700) != 0 && errno != EEXIST)
		fail(name);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		fail(name);
	if ((st.st_mode & 077) != 0 && fchmod(fd, 0700) != 0)
		fail(name);
	return fd;
}

static void
keep(const char *dir, const char *step, const char *run, const char *label, jv record, const struct am_secrets *s)
{
	char *text = am_json_text(record, AM_DOCUMENT, NULL), *clean, slug[61], name[256], sub[32];
	int at = open_private(AT_FDCWD, dir), fd = -1;
	size_t len;

	snprintf(sub, sizeof sub, "step-%s", step);
	at = open_private(at, sub);
	make_slug(label, slug);
	clean = am_redact(s, text, strlen(text), &len);		/* once more, as it is written */
	for (int seq = 1; seq < 1000 && fd < 0; seq++) {
		snprintf(name, sizeof name, "%.60s-%03d-%s.json", run, seq, slug);
		fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			fail(name);
	}
	if (fd < 0 || am_write_all(fd, clean, len) != 0 || fsync(fd) != 0 || close(fd) != 0 || fsync(at) != 0)
		fail(name);
	free(text);
	free(clean);
	close(at);
}

static void
print(FILE *fp, const struct am_secrets *s, const struct am_output *t)
{
	size_t len;
	char *clean = am_redact(s, t->len == 0 ? "" : t->bytes, t->len, &len);

	fwrite(clean, 1, len, fp);
	free(clean);
}

static int
number(const char *option, const char *text, int max)
{
	int v = atoi(text);

	if (*text == '\0' || strspn(text, "0123456789") != strlen(text) || strlen(text) > 6 || v > max)
		am_diex("%s %s: not a number up to %d", option, am_quotes(text), max);
	return v;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "dir", required_argument, NULL, 'd' },
		{ "label", required_argument, NULL, 'l' },
		{ "run", required_argument, NULL, 'r' },
		{ "secrets-fd", required_argument, NULL, 's' },
		{ "step", required_argument, NULL, 'n' },
		{ "timeout", required_argument, NULL, 't' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *dir = NULL, *label = NULL, *run = NULL, *step = NULL;
	struct am_secrets secrets = { 0 };
	struct am_child child;
	char began[21], ended[21], cwd[4096];
	int c, timeout = 300, timed_out, rc;
	long long from;
	jv record, words = jv_array();

	am_prog = "amap-record";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'd': dir = optarg; break;
		case 'l': label = optarg; break;
		case 'n': step = optarg; break;
		case 'r': run = optarg; break;
		case 's':
			if (am_secrets_read(&secrets, number("--secrets-fd", optarg, 1023)) != 0)
				am_die("--secrets-fd %s", optarg);
			break;
		case 't': timeout = number("--timeout", optarg, 86400); break;
		default: am_std_option(c, usage);
		}
	}
	if (dir == NULL || label == NULL || run == NULL || step == NULL || strchr(run, '/') != NULL || optind == argc)
		am_usage(usage);
	number("--step", step, 99);
	am_secrets_add(&secrets, getenv("CLAUDE_CODE_MESSAGING_TOKEN"));
	if (getcwd(cwd, sizeof cwd) == NULL)
		fail("the working directory");

	am_timestamp(time(NULL), began);
	from = am_now();
	rc = run_command(&child, argv + optind, from + timeout * 1000LL, &timed_out);
	am_timestamp(time(NULL), ended);

	for (int i = optind; i < argc; i++)
		words = jv_array_append(words, word_value(&secrets, argv[i]));
	record = am_set_str(jv_object(), "kind", "command");
	record = am_set(record, "step", jv_number(atoi(step)));
	record = am_set(record, "check", jv_null());
	record = am_set_str(record, "label", label);
	record = am_set(record, "argv", words);
	record = am_set(record, "cwd", word_value(&secrets, cwd));
	record = am_set_str(record, "started", began);
	record = am_set_str(record, "ended", ended);
	record = am_set(record, "seconds", jv_number((double)(am_now() - from) / 1000));
	record = am_set(record, "exit", timed_out || rc > 125 ? jv_null() : jv_number(rc));
	record = am_set(record, "timed_out", timed_out ? jv_true() : jv_false());
	record = am_set(record, "stdout", text_value(&secrets, &child.out[0]));
	record = am_set(record, "stderr", text_value(&secrets, &child.out[1]));
	keep(dir, step, run, label, record, &secrets);
	print(stdout, &secrets, &child.out[0]);
	print(stderr, &secrets, &child.out[1]);
	jv_free(record);
	am_child_free(&child);
	am_secrets_free(&secrets);
	return am_finish(AM_OK) == AM_OK ? rc : 125;
}
