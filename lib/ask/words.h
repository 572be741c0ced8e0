/*
 * words - a command's words, some of them out of a record.
 */
#ifndef AM_WORDS_H
#define AM_WORDS_H

#include "json.h"

struct am_words {
	char **v;		/* NULL after the last; NULL when there is none */
	size_t n;
};

/* Owns the word, which is from malloc. */
void am_words_add(struct am_words *w, char *word);

/*
 * Borrows. Adds the words of the template: {KEY} in a word stands for that
 * string of the record, {stdout.KEY} for that one of the document that its
 * "stdout" is, and a word {stdout} for the words in there. 0; -1 with the reason
 * when one is missing, or the record is the answer of a command that failed.
 */
int am_words_fill(struct am_words *w, char *const template[], jv rec, char *reason, size_t size);

void am_words_free(struct am_words *w);

#endif
