/*
 * load - a configuration while it is read: parse.c takes the document apart,
 * edges.c makes of it who may reach whom (spec router, sections 2, 3 and 10).
 */
#ifndef AM_ROUTER_LOAD_H
#define AM_ROUTER_LOAD_H

#include "router/conf.h"

/* A load in progress: what it has found wrong first. */
struct amr_load {
	struct amr_conf *c;
	jv doc;
	char *why;
	size_t size;
	struct amr_verdict verdict;
	jv parts;		/* of the discovery report */
	jv inert;		/* names on edges that are not admitted: an object NAME -> true */
	int tasked, mailed;	/* an authored instance has such a list */
};

/* What is wrong first; -1. */
int amr_load_refuse(struct amr_load *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Memory that there is, or the end. */
void *amr_load_must(void *p);

/* Owns an array of strings in *out; refused when v is of another kind. */
int amr_load_names(struct amr_load *l, jv v, const char *where, const char *who, jv *out);

/* Steps, in this order: 0, or -1 when it is refused. */
int amr_edges_graphs(struct amr_load *l);	/* task_graph and mail_graph */
int amr_edges_maps(struct amr_load *l);		/* peer_senders and peers of a discovered fleet */
int amr_edges_resolve(struct amr_load *l);	/* names become members */
int amr_edges_apart(struct amr_load *l);	/* one pair, one lane */

/* Owns lines of the report: names on edges that are not admitted, those of no verdict at all or the others. */
jv amr_edges_inert(jv inert, const struct amr_verdict *v, int typo);

#endif
