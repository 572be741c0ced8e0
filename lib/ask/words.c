#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/words.h"

void
am_words_add(struct am_words *w, char *word)
{
	if (word == NULL || (w->v = realloc(w->v, (w->n + 2) * sizeof *w->v)) == NULL)
		abort();
	w->v[w->n++] = word;
	w->v[w->n] = NULL;
}

void
am_words_free(struct am_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i]);
	free(w->v);
}

/* What {KEY} or {stdout.KEY} stands for; NULL when the record has no such string. */
static char *
lookup(jv rec, const char *key)
{
	const char *out = am_str(rec, "stdout"), *s;
	char *copy = NULL;
	jv doc;

	if (strncmp(key, "stdout.", 7) != 0)
		return (s = am_str(rec, key)) == NULL ? NULL : strdup(s);
	if (out == NULL)
		return NULL;
	doc = am_json_parse(out, strlen(out));
	if ((s = am_str(doc, key + 7)) != NULL)
		copy = strdup(s);
	jv_free(doc);
	return copy;
}

/* One argument with its placeholders replaced; NULL, with the reason, when one cannot be. */
static char *
fill(const char *arg, jv rec, char *reason, size_t size)
{
	char *text = NULL;
	size_t len = 0;
	FILE *fp = open_memstream(&text, &len);

	if (fp == NULL)
		abort();
	for (const char *p = arg; *p != '\0'; p++) {
		size_t n = *p == '{' ? strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_.") : 0;
		char key[64], *value;

		if (n == 0 || n >= sizeof key || p[n + 1] != '}') {
			putc(*p, fp);
			continue;
		}
		snprintf(key, sizeof key, "%.*s", (int)n, p + 1);
		if ((value = lookup(rec, key)) == NULL) {
			snprintf(reason, size, "not asked: there is no %s to ask with", key);
			fclose(fp);
			free(text);
			return NULL;
		}
		fputs(value, fp);
		free(value);
		p += n + 1;
	}
	if (fclose(fp) != 0)
		abort();
	return text;
}

int
am_words_fill(struct am_words *w, char *const template[], jv rec, char *reason, size_t size)
{
	const char *out = am_str(rec, "stdout"), *of = am_str(rec, "ask");
	jv status = am_get(rec, "status", JV_KIND_NUMBER);
	int failed = am_has(rec, "status") && (!jv_is_valid(status) || jv_number_value(status) != 0);

	jv_free(status);
	if (of == NULL)
		of = "the question before it";
	if (failed) {
		snprintf(reason, size, "not asked: %s failed", of);
		return -1;
	}
	for (size_t i = 0; template[i] != NULL; i++) {
		char *word, *save = NULL, *copy;
		size_t before = w->n;

		if (strcmp(template[i], "{stdout}") != 0) {
			if ((word = fill(template[i], rec, reason, size)) == NULL)
				return -1;
			am_words_add(w, word);
			continue;
		}
		if ((copy = strdup(out == NULL ? "" : out)) == NULL)
			abort();
		for (word = strtok_r(copy, " \t\r\n", &save); word != NULL; word = strtok_r(NULL, " \t\r\n", &save))
			am_words_add(w, strdup(word));
		free(copy);
		if (w->n == before) {
			snprintf(reason, size, "not asked: %s named nothing", of);
			return -1;
		}
	}
	return 0;
}
