/*
 * filter - the system calls that nobody in a sandbox needs.
 *
 * The list of spec openshell, section 11, and its close relatives. Refused
 * calls fail with EPERM, so that programs can go on; clone3 fails with ENOSYS,
 * because its flags lie in memory where a filter cannot see them and the C
 * library then falls back to clone. Calls of a foreign architecture kill.
 * The rules stand in filter/compile.c, which make runs.
 */
#ifndef AM_SANDBOX_FILTER_H
#define AM_SANDBOX_FILTER_H

/*
 * Loads the filter for this thread and all that it starts; no-new-privs must
 * be set. 0, or a negative errno. With a listener, calls that may open a
 * connection wait until its holder lets them go on (denied.h): it gets a
 * descriptor, or -1 where the kernel has none to give.
 */
int ams_filter_load(int *listener);

/* The names of the calls refused whatever their arguments, NULL after the last. */
extern const char *const ams_filter_refused[];

/* What is refused by argument, as text for people; NULL after the last. */
extern const char *const ams_filter_by_argument[];

#endif
