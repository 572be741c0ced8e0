/*
 * admit - may this sandbox be created? (spec interceptor, section 6)
 *
 * A create that asks for mounts is a member's own: its name is a member of
 * the fleet, its workspace the fleet's, and every mount one of the rows that
 * amap-lanes prints for it, as strict and no link. Whatever could bring a
 * mount in by another way is refused, with or without mounts.
 */
#ifndef AM_ADMIT_H
#define AM_ADMIT_H

#include "json.h"

/*
 * Borrows the operation, a CreateSandboxRequest as JSON; reads HOME/fleet.json
 * each time. Owns: an array of { "clause", "reason" }, every reason against the
 * create, in the order of the rule; empty when it is allowed.
 */
jv am_admit(const char *home, jv operation);

#endif
