/*
 * preflight - can this machine run a sandbox, and if not, what would let it.
 */
#ifndef AMS_PREFLIGHT_H
#define AMS_PREFLIGHT_H

/* Exit status of whatever this machine cannot do, as amap-confine has it. */
#define AMS_CANNOT 125

/*
 * Whether this machine can run a sandbox at all: bubblewrap, user namespaces,
 * Landlock. -1 with the object, the reason and the remedy in why.
 */
int ams_launch_preflight(char why[512]);

/* Where bubblewrap is; NULL when it is on no directory of PATH. Static. */
const char *ams_launch_bwrap(void);

/* Why bubblewrap failed that said this last, with the remedy where there is one. Static. */
const char *ams_launch_failure(const char *said);

#endif
