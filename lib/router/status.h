/*
 * status - status.json and what is read from it (spec router, section 17).
 */
#ifndef AM_ROUTER_STATUS_H
#define AM_ROUTER_STATUS_H

#include "router/router.h"

/* Writes status.json; -1 with errno. */
int amr_status_write(const struct amr_router *r);

/* Owns the document of a state directory; invalid when there is none that can be read. */
jv amr_status_read(const char *state_dir);

/* Prints for people (with the discovery report), or for Prometheus. Borrows. */
void amr_status_print(FILE *fp, jv status, const struct amr_conf *c);
void amr_status_prometheus(FILE *fp, jv status);

/* One line without its newline, for the caller to print: 1 healthy, 0 not. Borrows. */
int amr_status_health(jv status, char *line, size_t size);

/* One instance's counters since the last poll, as a Python dictionary or as JSON. */
void amr_summary_print(FILE *fp, const struct amr_router *r, const struct amr_inst *in, int python);

/* A number as Python writes a float: 5.0, 0.25. */
const char *amr_float(double n, char out[32]);

#endif
