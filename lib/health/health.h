/*
 * health - the rooms of amap-probe-health: what the router leaves behind
 * beside its status document.
 */
#ifndef AM_HEALTH_H
#define AM_HEALTH_H

#include "check.h"
#include "routerview.h"

#define AM_HEALTH "router-health"	/* the section */

struct am_check am_health_check(const char *id, const char *claim, const char *provenance, const char *remedy);

/*
 * H4 and H5, the marks of a first sight, and warnings about them. instances
 * are borrowed, invalid when they are not known, and why is then the reason.
 */
void am_health_markers(struct am_checks *out, const struct am_router_config *config, jv instances, const char *why);

/* H6, the discovery report in plain status, and its lines that are only warnings. */
void am_health_discovery(struct am_checks *out, jv answers);

#endif
