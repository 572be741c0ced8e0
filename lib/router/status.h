/*
 * status - status.json and what is read from it (spec router, section 17).
 */
#ifndef AM_ROUTER_STATUS_H
#define AM_ROUTER_STATUS_H

#include "router/router.h"

/* Writes status.json; -1 with errno. */
int am_status_write(const struct am_router *r);

/* Owns the document of a state directory; invalid when there is none that can be read. */
jv am_status_read(const char *state_dir);

/* Prints for people (with the discovery report), or for Prometheus. Borrows. */
void am_status_print(FILE *fp, jv status, const struct am_conf *c);
void am_status_prometheus(FILE *fp, jv status);

/* One line without its newline, for the caller to print: 1 healthy, 0 not. Borrows. */
int am_status_health(jv status, char *line, size_t size);

/* One instance's counters since the last poll, as a Python dictionary or as JSON. */
void am_summary_print(FILE *fp, const struct am_router *r, const struct am_inst *in, int python);

/* A number as Python writes a float: 5.0, 0.25. */
const char *am_float(double n, char out[32]);

#endif
