/*
 * provision - the lanes of one instance, for its connector (spec router,
 * section 20).
 */
#ifndef AM_ROUTER_PROVISION_H
#define AM_ROUTER_PROVISION_H

#include <stdio.h>

#include "router/conf.h"

/*
 * Makes what may be made (nothing where instances are discovered, or with
 * create 0) and checks the rest: 0, or -1 after naming on standard error each
 * thing that is missing.
 */
int amr_provision(const struct amr_conf *c, size_t member, int create);

/* NAME=VALUE lines, or one JSON object. */
void amr_provision_print(FILE *fp, const struct amr_conf *c, size_t member, int json);

#endif
