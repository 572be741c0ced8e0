/*
 * fleet - the operator's policy, loaded strictly (spec deployment, section 1).
 */
#ifndef AM_FLEET_H
#define AM_FLEET_H

#include <stddef.h>

#include "json.h"
#include "names.h"

#define AM_ALLOW_ANY "ALLOW_ANY"

struct am_fleet {
	jv policy;			/* the document; owns every string below */
	const char *workspace, *domain;
	struct am_names members;	/* every name that is mentioned, sorted */
	char why[512];			/* the refusal: names the key and the fault, fit for a terminal */
};

/*
 * Consumes the policy. 0, or -1 with why set; the first fault in the order of
 * section 1 decides. am_fleet_free is due in both cases.
 */
int am_fleet_load(struct am_fleet *fleet, jv policy);

/*
 * Reads a policy from a file (NULL or "-": standard input); a named one must be
 * regular, and with nofollow no symbolic link. 0; -1 refused, also because it
 * is absent; -2 when it could not be read. why is set in both cases.
 */
int am_fleet_read(struct am_fleet *fleet, const char *path, int nofollow);

void am_fleet_free(struct am_fleet *fleet);

/*
 * Owns. The plan that amap-fleet printed, from a file (NULL or "-": standard
 * input), at most 256 MiB: its workspace is a sound name, its domain text, and
 * members a list. Else invalid, with a message for am_json_why that names the file.
 */
jv am_plan_read(const char *path);

#endif
