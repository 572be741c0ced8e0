/*
 * place - the directories a program of the connector is told about by its
 * environment, and the notice about the mailbox (spec connector, sections 2 and 3.4).
 */
#ifndef AM_PLACE_H
#define AM_PLACE_H

/* The value of a variable, NULL when it is unset or empty. */
const char *am_env(const char *name);

/*
 * The directory of the first variable when that is set, else sub below
 * $MAILBOX_ROOT_DIR; $NAME, ${NAME} and a leading ~ are expanded. From malloc,
 * NULL when neither is set.
 */
char *am_place(const char *variable, const char *sub);

/* Makes a directory and those above it; -1 with errno. */
int am_make_dirs(const char *path);

/* One line on standard error about $MAILBOX_ROOT_DIR/identity.json, or none. */
void am_identity_notice(void);

#endif
