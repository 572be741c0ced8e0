/*
 * matrix - who may task whom, for review (spec router, section 19, "peers").
 */
#ifndef AM_ROUTER_MATRIX_H
#define AM_ROUTER_MATRIX_H

#include <stdio.h>

#include "router/conf.h"

/* For people: both lanes. */
void amr_matrix_print(FILE *fp, const struct amr_conf *c);

/* One object: each member's address, and the addresses of those who may task it. */
void amr_matrix_json(FILE *fp, const struct amr_conf *c);

/* A page without a script. */
void amr_matrix_html(FILE *fp, const struct amr_conf *c);

#endif
