#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "diag.h"

#define SLICE 100	/* names that "sandbox list" shows at once, in some versions */

static jv
key_of(const char *ask, const char *subject)
{
	return jv_string_fmt("%s %s", ask, subject == NULL ? "" : subject);
}

jv
am_answers_from(jv answers, FILE *fp, const char *name)
{
	struct am_stream in = { .fp = fp, .name = name };
	jv rec;
	int got;

	while ((got = am_next(&in, &rec)) > 0) {
		const char *ask = am_str(rec, "ask");

		if (ask != NULL)	/* keys may be added to a stream, and records */
			answers = jv_object_set(answers, key_of(ask, am_str(rec, "subject")), jv_copy(rec));
		jv_free(rec);
	}
	if (got == 0)
		return answers;
	jv_free(answers);
	return jv_invalid_with_msg(jv_string(am_stream_why(&in)));
}

jv
am_answers_read(char *const paths[], int n)
{
	jv answers = jv_object();
	FILE *fp;

	if (n == 0)
		return am_answers_from(answers, stdin, "<stdin>");
	for (int i = 0; i < n && jv_is_valid(answers); i++) {
		if (strcmp(paths[i], "-") == 0) {
			answers = am_answers_from(answers, stdin, "<stdin>");
		} else if ((fp = fopen(paths[i], "re")) == NULL) {
			jv_free(answers);
			answers = jv_invalid_with_msg(jv_string_fmt("%s: %s", paths[i], strerror(errno)));
		} else {
			answers = am_answers_from(answers, fp, paths[i]);
			fclose(fp);
		}
	}
	return answers;
}

/* The first line with anything on it. */
static const char *
first_line(const char *text)
{
	text += strspn(text, " \t\r\n");
	return am_quote(text, strcspn(text, "\r\n"));
}

/* What was asked about a sandbox is no evidence while get did not show that sandbox. */
static int
is_shown(jv answers, const char *subject)
{
	jv rec = jv_object_get(jv_copy(answers), key_of("get", subject)), doc = jv_invalid();
	const char *out = am_str(rec, "stdout");
	int shown;

	if (out != NULL)
		doc = am_json_parse(out, strlen(out));
	shown = !jv_is_valid(rec) || jv_get_kind(doc) == JV_KIND_OBJECT;
	jv_free(doc);
	jv_free(rec);
	return shown;
}

int
am_asked(jv answers, const char *ask, const char *subject, struct am_asked *a)
{
	jv rec = jv_object_get(jv_copy(answers), key_of(ask, subject)), status, argv, word;
	const char *reason, *program;

	memset(a, 0, sizeof *a);
	a->status = -1;
	if (!jv_is_valid(rec)) {
		jv_free(rec);
		snprintf(a->why, sizeof a->why, "it was never asked (%s)", ask);
		return 0;
	}
	a->out = am_str(rec, "stdout");
	a->err = am_str(rec, "stderr");
	reason = am_str(rec, "reason");
	status = am_get(rec, "status", JV_KIND_NUMBER);
	argv = am_get(rec, "argv", JV_KIND_ARRAY);
	word = jv_is_valid(argv) ? jv_array_get(jv_copy(argv), 0) : jv_invalid();
	program = jv_get_kind(word) == JV_KIND_STRING ? am_quotes(jv_string_value(word)) : ask;
	if (jv_is_valid(status))
		a->status = (int)jv_number_value(status);
	if (a->status < 0)
		snprintf(a->why, sizeof a->why, "%s: %s", program, reason == NULL ? "no status" : am_quotes(reason));
	else if (a->status != 0)
		snprintf(a->why, sizeof a->why, "%s: exit status %d%s%s", program, a->status,
		    a->err == NULL || a->err[strspn(a->err, " \t\r\n")] == '\0' ? "" : ": ",
		    a->err == NULL ? "" : first_line(a->err));
	else if (a->out == NULL)
		snprintf(a->why, sizeof a->why, "%s: %s", program,
		    reason == NULL ? "its output is not text" : am_quotes(reason));
	else if (subject != NULL && strcmp(ask, "get") != 0 && !is_shown(answers, subject))
		snprintf(a->why, sizeof a->why, "sandbox get printed no JSON object");
	jv_free(word);
	jv_free(argv);
	jv_free(status);
	jv_free(rec);		/* answers keep their own reference, so out and err stay */
	return a->why[0] == '\0';
}

jv
am_listed(jv answers, const char *workspace, int may_be_cut)
{
	struct am_asked a;
	jv names = jv_array();
	size_t wlen = strlen(workspace), n;
	const char *p;
	long lines = 0;

	if (!am_asked(answers, "list", NULL, &a)) {
		jv_free(names);
		return jv_invalid_with_msg(jv_string(a.why));
	}
	for (p = a.out; *p != '\0'; p += n + (p[n] == '\n')) {
		n = strcspn(p, "\n");
		if (n > 0)
			lines++;
		if (n > wlen + 1 && strncmp(p, workspace, wlen) == 0 && p[wlen] == '/')
			names = jv_array_append(names, jv_string_sized(p + wlen + 1, (int)(n - wlen - 1)));
	}
	if (may_be_cut && lines == SLICE) {
		jv_free(names);
		return jv_invalid_with_msg(jv_string_fmt("the list of sandboxes has exactly %d names"
		    " and may be cut there", SLICE));
	}
	return jv_sort(names, jv_copy(names));
}

enum am_presence
am_sandbox(jv answers, const char *workspace, const char *name, int may_be_cut, jv *document, char why[600])
{
	struct am_asked a;
	jv names;
	int listed = 0;

	*document = jv_invalid();
	if (am_asked(answers, "get", name, &a)) {
		jv doc = am_json_parse(a.out, strlen(a.out));

		if (jv_get_kind(doc) == JV_KIND_OBJECT) {
			*document = doc;
			return AM_PRESENT;
		}
		if (jv_is_valid(doc)) {
			jv_free(doc);
			snprintf(why, 600, "sandbox get printed no JSON object");
		} else {
			snprintf(why, 600, "sandbox get printed no JSON object: %s", am_json_why(doc));
		}
		return AM_UNSURE;
	}
	names = am_listed(answers, workspace, may_be_cut);
	if (!jv_is_valid(names)) {
		snprintf(why, 600, "%.270s; and whether it exists: %.270s", a.why, am_json_why(names));
		return AM_UNSURE;
	}
	jv_array_foreach(names, i, n) {
		listed |= strcmp(jv_string_value(n), name) == 0;
		jv_free(n);
	}
	jv_free(names);
	if (!listed)
		return AM_ABSENT;
	snprintf(why, 600, "it is listed, but %.580s", a.why);
	return AM_UNSURE;
}
