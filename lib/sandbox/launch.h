/*
 * launch - what the supervisor needs to start a main process.
 *
 * All of it is decided once, when the sandbox is created or started: the words
 * for bubblewrap, and for every bind mount a descriptor opened without
 * following any link, so what was checked is what is mounted, now and after
 * each restart. Only a file that is the host's own (amap-confine, the loader's
 * cache) is looked up again before a restart: an update replaces it, and what
 * is no longer in any directory cannot be mounted.
 *
 * Root becomes the policy's uid:gid before bubblewrap, which then works as for
 * an ordinary user, in a user namespace. Because that identity may not be able
 * to walk to a source (a home below /root), root clones each source's mount
 * and lays it out below AMS_STAGE in a mount namespace of the supervisor's own.
 */
#ifndef AM_SANDBOX_LAUNCH_H
#define AM_SANDBOX_LAUNCH_H

#include <stddef.h>
#include <sys/types.h>

#include "cgroup.h"

#define AMS_MAX_BINDS 512
#define AMS_STAGE "/mnt"
#define AMS_INSIDE "/.amap"		/* where amap-confine is bound */

/* Descriptors of amap-confine, the same in every launch. */
enum { AMS_FD_STATUS = 3, AMS_FD_POLICY, AMS_FD_ENV, AMS_FD_FREE = 10 };

struct ams_launch {
	int state, unit;		/* the state directory, and the unit's */
	uid_t uid;
	gid_t gid;
	int tty;
	int expendable;			/* what the kernel ends first when memory runs out */
	struct ams_limits limits;
	char *cgroup_home;		/* where a cgroup may be made; NULL: no_cgroup says why not (static) */
	const char *no_cgroup;
	char cgroup[AMS_CGROUP_PATH];	/* made by the supervisor; "" for none */
	pid_t supervisor;
	char restart[16];		/* never, on-failure, always, unless-stopped */
	int policy, env;
	char **argv;			/* of bubblewrap */
	size_t n_argv;
	struct {
		int fd, dir;
		int parent;		/* of the host's own file; 0 of all else */
		char *name;
	} binds[AMS_MAX_BINDS];
	size_t n_binds;
	int outside, staged;		/* of root's supervisor: the mount namespaces of the host, and of the stage */
	char why[512];			/* set by whatever below returns -1 */
};

struct ams_mount {
	const char *source, *target;
	int writable;
};

/* The identity that a policy gets: the policy's own, else the caller's, never root's. */
int ams_launch_identity(struct ams_launch *l, const char *user, const char *group);

/* Frees the words and closes the descriptors; after a failure as well, once l has been zeroed. */
void ams_launch_free(struct ams_launch *l);

/* Appends a word, or words up to NULL. */
void ams_launch_word(struct ams_launch *l, const char *word);
void ams_launch_words(struct ams_launch *l, ...) __attribute__((sentinel));

/* Takes over fd and binds what it is at target. */
int ams_launch_bind(struct ams_launch *l, int fd, const char *target, int writable);

/* The same for a file of the host that an update may replace; one that is not there is -1 with ENOENT. */
int ams_launch_bind_host(struct ams_launch *l, const char *path, const char *target);

/* Opens a host path without following a link anywhere in it; O_PATH. -1 with errno. */
int ams_open_unlinked(const char *path);

/*
 * The file system of a sandbox: the root image ("host" or a directory), the
 * private /etc and home of the unit, proc, dev, tmp, and the mounts.
 */
int ams_launch_image(struct ams_launch *l, const char *image, const char *hostname, const struct ams_mount *mounts, size_t n);

/* The file system of a service: system paths, and the mounts at their own paths. */
int ams_launch_service(struct ams_launch *l, const struct ams_mount *mounts, size_t n);

/* Ends the words: amap-confine, its options, and the command. */
int ams_launch_command(struct ams_launch *l, const char *chdir, char *const limits[], char *const command[]);

/* The calling process and all that it starts are ended before others of the host when memory runs out. */
void ams_launch_expendable(void);

/* A descriptor that holds the environment as NUL-ended strings. */
int ams_launch_env(char *const env[]);

/* What bubblewrap's environment holds, so that what is left of it can be found: NAME=value. */
void ams_launch_mark(int unit, char *out, size_t size);

/* In the supervisor, once: the stage, when root. */
int ams_launch_stage(struct ams_launch *l);

/* In the supervisor, before each start but the first: what was replaced on the host. -1 with errno. */
int ams_launch_renew(struct ams_launch *l);

/* In a child of the supervisor: becomes bubblewrap, with these as output and status. Never returns. */
_Noreturn void ams_launch_exec(struct ams_launch *l, int output, int status);

#endif
