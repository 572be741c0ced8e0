/*
 * rendering - what is wrong with a policy or a command of the member alpha (for tests)
 *
 * usage: rendering policy|words <TEXT
 *
 * TEXT is a policy, or the words of a command one a line. It is judged as made
 * from the rows of the table below /srv/amap, as 1000:1001. Prints what
 * am_render_problems says.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render.h"

int
main(int argc, char *argv[])
{
	char home[] = "/srv/amap";
	struct am_member m = { .name = "alpha", .workspace = "default", .address = "alpha@example.org", .home = home };
	struct am_run_as run_as = { 1000, 1001 };
	struct am_buf text = { 0 };
	struct am_words words = { .n = 0 };
	struct am_rendering r = { .member = &m, .run_as = &run_as };
	char *problems;
	int c;

	if (argc < 2)
		errx(2, "policy or words?");
	am_rows_make(m.rows, home, m.name);
	while ((c = getchar()) != EOF)
		am_buf_byte(&text, (char)c);
	if (strcmp(argv[1], "words") == 0) {
		for (size_t i = 0; i < text.n; i++)
			if (text.s[i] == '\n') {
				text.s[i] = '\0';
				words.n++;
			}
		words.text = text;
		r.words = &words;
	} else {
		r.policy = &text;
	}
	if ((problems = am_render_problems(&r)) != NULL)
		puts(problems);
	free(problems);
	free(text.s);
	am_rows_free(m.rows);
	return 0;
}
