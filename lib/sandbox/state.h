/*
 * state - what the embedded sandbox keeps, below one directory.
 *
 *	gateway.toml			the settings of the embedded gateway
 *	sandboxes/WORKSPACE--NAME/	one directory a sandbox
 *	services/NAME/			one directory a service
 *	etc/UID-GID/			what is bound at /etc, one for each identity
 *	providers/ profiles/		records
 *	trash/				what is being removed
 *
 * and in the directory of a sandbox or a service
 *
 *	record.json	what was asked for; never changes; its lock is held by the
 *			supervisor as long as that lives
 *	policy.yaml	the policy in force, byte for byte as given
 *	run.json	what runs now; written by the supervisor
 *	ctl		its socket
 *	home/		bound at /sandbox
 *	log output	events; the bytes that the main process wrote
 *
 * A directory appears whole, by one rename, and is taken away by one. The
 * kernel tells who the supervisor is, by the lock; what run.json says of other
 * processes is believed only while it and they live.
 */
#ifndef AM_SANDBOX_STATE_H
#define AM_SANDBOX_STATE_H

#include "../json.h"
#include "cgroup.h"
#include "proc.h"

#define AMS_SANDBOXES "sandboxes"
#define AMS_SERVICES "services"

/*
 * The state directory, made when absent: $AMAP_SANDBOX_DIR, else
 * $XDG_STATE_HOME/amap-sandbox, else $HOME/.local/state/amap-sandbox, else for
 * root /var/lib/amap-sandbox. NULL when there is none to name.
 */
const char *ams_state_path(void);
int ams_state_open(void);		/* its descriptor; -1 after saying why */

/* "WORKSPACE--NAME": no name has a double hyphen; "" when it is too long to be one. Static. */
const char *ams_sandbox_key(const char *workspace, const char *name);

/* The directory KIND/KEY; -1 with ENOENT when there is none. */
int ams_unit_open(int state, const char *kind, const char *key);

/*
 * A new directory, not yet visible; ams_unit_publish gives it its name, -1 with
 * EEXIST when that is taken. ams_unit_discard takes it away again.
 */
int ams_unit_new(int state, char temp[32]);
int ams_unit_publish(int state, const char *temp, const char *kind, const char *key);
void ams_unit_discard(int state, const char *temp);

/* Takes a unit away: first from its name, then, piece by piece, altogether. */
int ams_unit_remove(int state, const char *kind, const char *key);

/* Removes what an interrupted create or delete left; before the first ams_unit_new or ams_unit_remove. */
void ams_state_sweep(int state);

/* Owns. A JSON file of a unit; invalid when absent or not an object. */
jv ams_unit_read(int unit, const char *name);
/* Consumes v. Seen whole or not at all; with durable also after a power cut. */
int ams_unit_write(int unit, const char *name, jv v, int durable);

/* Calls each with every unit's key, in order. Stops when it returns non-zero. */
int ams_unit_each(int state, const char *kind, int (*each)(int unit, const char *key, void *arg), void *arg);

/* Appends every JSON object below KIND/ to the array, in the order of their names. */
void ams_state_files(int state, const char *kind, jv *list);

/*
 * One at a time may create, start, stop or delete a unit: held from here until the
 * result is closed. With a key, -1 with ENOENT when the unit has lost its name.
 */
int ams_unit_claim(int state, const char *kind, const char *key, int unit);

/*
 * In the supervisor: takes the lock that says that it lives; -1 when another
 * has it. The result is never closed, nor the file opened again: any close of
 * it in this process would drop the lock.
 */
int ams_unit_lock(int unit);

/* A new file in a unit that nobody sees yet; neither durable nor atomic. */
int ams_unit_put(int unit, const char *name, const void *bytes, size_t len);

/* What a unit was made from is on the disk after this, by its name. */
void ams_unit_sync(int unit);

/* What runs, as run.json says and the processes confirm. */
struct ams_run {
	struct ams_proc supervisor, init, main;
	const char *phase;		/* static */
	char reason[64], message[512];
	int exit_code;			/* of the last main process; -1 while there is none */
	int restarts;
	long long started_ms, next_restart_ms;
	int orphaned;			/* its supervisor is gone and had not finished */
	char instance[37];
	char cgroup[AMS_CGROUP_PATH];	/* its directory; "": none, setrlimit(2) alone */
};
void ams_unit_run(int unit, struct ams_run *run);
int ams_unit_set_run(int unit, const struct ams_run *run);
int ams_phase_is(const struct ams_run *run, const char *phase);

#endif
