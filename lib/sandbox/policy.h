/*
 * policy - the sandbox policy file (spec openshell, section 11).
 *
 * Every level refuses a key that it does not know. Landlock can only add
 * rights, so a read-only path beneath a writable one would have no effect: it
 * is refused as unsafe instead (B37).
 */
#ifndef AM_SANDBOX_POLICY_H
#define AM_SANDBOX_POLICY_H

#include <stddef.h>
#include <sys/types.h>

#include "yamlread.h"

#define AMS_WORKDIR "/sandbox"
#define AMS_DEFAULT_ID 1000		/* whom root becomes when the policy names nobody */
#define AMS_POLICY_PATHS 256
#define AMS_POLICY_PATH_MAX 4096

struct ams_policy {
	int include_workdir;
	const char *read_only[AMS_POLICY_PATHS], *read_write[AMS_POLICY_PATHS];
	size_t n_ro, n_rw;
	int hard;			/* landlock.compatibility: hard_requirement */
	const char *user, *group;	/* as written; NULL when absent */
	const struct am_yaml *networks;	/* the network_policies map, or NULL */
	struct am_yaml *tree;		/* holds every string above */
};

enum ams_policy_fault { AMS_POLICY_FINE, AMS_POLICY_UNREADABLE, AMS_POLICY_UNSAFE };

/* On a fault why has the reasons in one line, and there is nothing to free. */
enum ams_policy_fault ams_policy_parse(const char *text, size_t len, struct ams_policy *p, char why[512]);
void ams_policy_free(struct ams_policy *p);

/* The policy of who names none: system paths to read, /sandbox and /tmp to write. */
void ams_policy_default(struct ams_policy *p);

/*
 * The identity that the policy asks for: a number, or fallback when it names
 * nobody or "sandbox".
 */
uid_t ams_policy_uid(const struct ams_policy *p, uid_t fallback);
gid_t ams_policy_gid(const struct ams_policy *p, gid_t fallback);

#endif
