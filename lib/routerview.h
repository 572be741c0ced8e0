/*
 * routerview - the router as an outsider sees it: its config file, the
 * directories that it must serve, and the status document that it printed.
 *
 * On purpose not the router's own code: a probe that shared it would share its
 * mistakes.
 */
#ifndef AM_ROUTERVIEW_H
#define AM_ROUTERVIEW_H

#include "json.h"

struct am_router_config {
	jv doc;
	const char *state_dir, *instances_dir, *selected_json;	/* NULL: not in it */
	char why[300];
};

/* 0, or -1 with why set. am_router_config_free is due in both cases. */
int am_router_config_read(struct am_router_config *c, const char *path);
void am_router_config_free(struct am_router_config *c);

/*
 * Owns: the sorted names of the real directories in instances_dir that
 * selected_json lists; invalid, with a message, when that cannot be told.
 */
jv am_router_instances(const struct am_router_config *c);

/*
 * Owns: the status document among the answers ("router-status"); invalid, with
 * a message. *before counts the lines that stood before it.
 */
jv am_router_status(jv answers, long *before);

#endif
