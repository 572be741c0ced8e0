/*
 * landlock - the kernel's path rules, by raw system calls.
 *
 * Debian 12 has no library for it and headers of ABI 2, so the constants are
 * ours (from linux/landlock.h of Linux 6.15, ABI 7). The ABI is asked at run
 * time. What is not handled is allowed, so every right that the kernel knows
 * is handled, in one ruleset: REFER is lost with a second one that forgets it.
 */
#ifndef AM_LANDLOCK_H
#define AM_LANDLOCK_H

#include <stdint.h>

/* Below this (Linux 6.2) a file could be truncated without any write right. */
#define AM_LANDLOCK_MIN 3

enum am_landlock_scope {
	AM_SCOPE_NONE = 0,
	AM_SCOPE_ABSTRACT = 1 << 0,	/* no abstract socket of a stranger */
	AM_SCOPE_SIGNAL = 1 << 1	/* no signal to a stranger */
};

struct am_landlock {
	int fd;			/* the ruleset */
	int abi;
	uint64_t handled;	/* file system rights */
	uint64_t scoped;
};

/* The kernel's ABI; -1 with errno when there is none. */
int am_landlock_abi(void);

/*
 * Why this kernel cannot confine, with the remedy; NULL when it can. Three
 * texts: not built (ENOSYS), built but not enabled at boot (EOPNOTSUPP), and
 * an ABI that is too old.
 */
const char *am_landlock_problem(void);

/* A ruleset over every right the kernel knows; scopes as far as it has them. -1 with errno. */
int am_landlock_open(struct am_landlock *l, unsigned scopes);

/*
 * Grants what lies at and beneath path: reading, listing and executing, or
 * with writable everything. A path that is no directory gets only the rights
 * that exist for files. -1 with errno; ENOENT for the caller to judge.
 */
int am_landlock_allow(struct am_landlock *l, const char *path, int writable);

/* The calling thread, and all that it starts, from now on. no-new-privs is set. */
int am_landlock_enforce(struct am_landlock *l);

/* Names of the rights in a mask, lowest bit first; NULL after the last. Static. */
const char *const *am_landlock_names(uint64_t rights);

#endif
