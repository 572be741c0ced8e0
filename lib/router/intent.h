/*
 * intent - what was decided about a request and is perhaps not yet done.
 *
 * It is durable before the first notice is placed, and says under which ids.
 * After a crash the same decision is finished under the same ids, so nobody
 * gets a second notice (spec router, 13.4). One file, "<state_dir>/.intent":
 * the SHA-256 of the second line, and the second line, a JSON array; a file
 * that does not agree with its sum was cut short before anything was placed.
 */
#ifndef AM_ROUTER_INTENT_H
#define AM_ROUTER_INTENT_H

#include "router/router.h"

struct amr_target {
	char to[AM_REQ_ID_MAX + 1];
	int peer;
	int from_router;	/* a notice to the sender about what became of it */
	char nid[AM_NOTICE_ID + 1];
	int placed;		/* an enum amr_placed, once tried */
};

enum amr_what { AM_TASK, AM_MAIL, AM_REPLY, AM_RELEASE, AM_DENY };

struct amr_plan {
	char instance[AM_REQ_ID_MAX + 1], req_id[AM_REQ_ID_MAX + 1], digest[65], ts[21];
	enum amr_what what;
	const char *basis;	/* "edge" or "reply_window"; NULL: no reply on the peer lane */
	jv in_reply_to;		/* a string, or null */
	struct amr_target *v;
	size_t n;
};

void amr_plan_init(struct amr_plan *p, const char *instance, const char *req_id, const char *digest, enum amr_what what);
void amr_plan_add(struct amr_plan *p, const char *to, int peer, int from_router);	/* with a new id */
void amr_plan_free(struct amr_plan *p);

/* -1 with errno: what is in hand is not known, so nothing may be decided. */
int amr_intents_load(struct amr_router *r);
/* -1 with errno: nothing may be placed. */
int amr_intent_begin(struct amr_router *r, const struct amr_plan *p);
void amr_intent_end(struct amr_router *r, const struct amr_plan *p);
void amr_intent_forget(struct amr_router *r, const char *instance, const char *req_id, int decision);
/* 1 and a plan (for amr_plan_free) when one of this kind is open; decision: of an operator. */
int amr_intent_find(const struct amr_router *r, const char *instance, const char *req_id, int decision, struct amr_plan *p);
/* Owns: the ids of an instance's open requests, an array. */
jv amr_intents_of(const struct amr_router *r, const char *instance);
/* Forgets all of one instance's. */
void amr_intents_drop(struct amr_router *r, const char *instance);

#endif
