/*
 * A policy and a command that are rendered from a member's rows are found
 * faultless, and faulty once a letter or digit of them is another one, or once
 * a row's flag or target is.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(const struct am_rendering *r, int faults)
{
	char *problems = am_render_problems(r);

	if ((problems != NULL) != faults) {
		fprintf(stderr, "problems: %s\n", problems == NULL ? "none" : problems);
		abort();
	}
	free(problems);
}

/* Another letter or digit; 0 when there is none at that place, or it lies in the comment. */
static int
change(struct am_buf *text, size_t at, uint8_t to)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	char *c;

	at %= text->n;
	c = text->s + at;
	if (!isalnum((unsigned char)*c) || *c == set[to % (sizeof set - 1)])
		return 0;
	if (text->s[0] == '#' && memchr(text->s, '\n', at) == NULL)
		return 0;
	*c = set[to % (sizeof set - 1)];
	return 1;
}

/* Where the words may differ without a fault: names, the image and the environment are the renderer's own. */
static int
is_judged(const struct am_words *w, size_t at)
{
	const char *s = w->text.s, *word = s, *before = s;

	at %= w->text.n;
	while (word + strlen(word) + 1 <= s + at) {
		before = word;
		word += strlen(word) + 1;
	}
	return strcmp(before, "--driver-config-json") == 0 || strcmp(before, "--provider") == 0 ||
	    strcmp(word, "--detach") == 0 || strcmp(word, "--tty") == 0 || strcmp(word, "--auto-providers") == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct am_member m = { .name = "alpha", .workspace = "default", .address = "alpha@example.org" };
	struct am_run_as run_as = { 1000, 1001 };
	struct am_buf policy = { 0 };
	struct am_words words;
	struct am_rendering r = { .member = &m, .policy = &policy, .run_as = &run_as, .words = &words };
	char home[] = "/srv/\"a\\b", target[] = "/opt/amap/lanes/other";
	size_t at;
	int row;

	if (size < 4)
		return 0;
	at = (size_t)data[1] << 8 | data[2];
	m.home = home;
	am_rows_make(m.rows, home, m.name);
	am_render_policy(&policy, &m, &run_as);
	am_render_words(&words, &m, "image", data[0] & 8);
	expect(&r, 0);
	row = data[3] % AM_ROWS;
	switch (data[0] % 4) {
	case 0:
		r.words = NULL;
		if (change(&policy, at, data[3]))
			expect(&r, 1);
		break;
	case 1:
		r.policy = NULL;
		if (is_judged(&words, at) && change(&words.text, at, data[3]))
			expect(&r, 1);
		break;
	case 2:
		m.rows[row].read_only = !m.rows[row].read_only;
		expect(&r, 1);
		break;
	case 3:
		m.rows[row].target = target;
		expect(&r, 1);
		break;
	}
	am_rows_free(m.rows);
	free(policy.s);
	free(words.text.s);
	return 0;
}
