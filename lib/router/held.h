/*
 * held - requests that wait for the operator, and what the operator decides.
 *
 * Kept: NAME/held/req-ID.json, the bytes as they came, and their sidecar files
 * in NAME/held/req-ID.attachments/. Decisions come from the host as files in
 * ".decisions/" below state_dir, where no sandbox can write; an answer to each
 * goes to ".decisions/answers/" under the same name. What was carried out
 * stands in NAME/decided/req-ID.json, and is never carried out again.
 */
#ifndef AM_ROUTER_HELD_H
#define AM_ROUTER_HELD_H

#include "router/intent.h"
#include "router/request.h"

#define AM_DECISIONS ".decisions"
#define AM_DECISION_MAX 65536

/* Keeps a request; -1 with errno, and then it must wait. */
int amr_hold(const struct amr_turn *t, const struct amr_request *q);

/* Makes in->held and in->held_oldest agree with what is there. */
void amr_refresh_held(const struct amr_router *r, struct amr_inst *in);

/* Carries out the decisions that wait. */
void amr_take_decisions(struct amr_router *r);

/* The router's own notice to the sender about a decision. */
enum amr_placed amr_place_decision(const struct amr_router *r, struct amr_inst *sender, const struct amr_request *q,
    const struct amr_plan *p, const struct amr_target *t);

/* The file name of a decision, which both sides use. */
void amr_decision_name(const char *instance, const char *req_id, char *out, size_t size);

#endif
