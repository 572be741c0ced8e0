/*
 * redact - secrets out of everything that is printed or kept (spec bringup,
 * section 4).
 *
 * Secrets that are known are taken out wherever they stand; after that the
 * values that stand behind a name which only ever names a secret.
 */
#ifndef AM_REDACT_H
#define AM_REDACT_H

#include <stddef.h>

#define AM_REDACTED "[REDACTED]"

struct am_secrets {
	char **v;		/* longest first */
	size_t n;
};

/* A secret, and its last 20 characters when it is longer. Empty ones are ignored. */
void am_secrets_add(struct am_secrets *secrets, const char *value);

/* One secret a line, until the end; -1 with errno. */
int am_secrets_read(struct am_secrets *secrets, int fd);

void am_secrets_free(struct am_secrets *secrets);

/* The text without them, from malloc, with a NUL behind it that *out_len does not count. */
char *am_redact(const struct am_secrets *secrets, const char *text, size_t len, size_t *out_len);

#endif
