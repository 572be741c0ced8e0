/*
 * session - the files by which a session can be found and addressed
 * (spec claude-code, section 2; spec deployment, section 8).
 *
 *	~/.claude/sessions/PID.json           its registry entry
 *	~/.claude/sessions/PID.SHA256.key     the key of its socket, named after the socket's path
 *	~/.claude/amap-sessions/PID.json      what the SessionStart hook wrote
 */
#ifndef AM_SESSION_H
#define AM_SESSION_H

#include <jv.h>
#include <stddef.h>
#include <sys/types.h>

#include "connector/proc.h"

#define AM_SESSIONS ".claude/sessions"
#define AM_HOOK_SESSIONS ".claude/amap-sessions"
#define AM_SESSION_FILE_MAX 65536

/*
 * Owns the object in one of these files; invalid when there is none that may
 * be believed: a regular file, no link, small, an object.
 */
jv am_session_file(int home, const char *path);

/* "PID.SHA256.key" of a socket's path. */
void am_session_key_name(pid_t pid, const char *socket, char out[128]);

/* This process as a session of the registry. */
struct am_session_entry {
	int dir;
	char key[128], entry[32];
};

/*
 * Publishes the key, then the entry, below ~/.claude/sessions, which is made
 * when it is lacking; entrypoint is the program's name. -1 with errno.
 */
int am_session_enter(struct am_session_entry *e, const char *home, const char *entrypoint, const char *socket, const char *token);

/* Takes away the entry, so that nobody finds it any more; then, when nobody is spoken to any more, the key. */
void am_session_leave(const struct am_session_entry *e);
void am_session_forget(struct am_session_entry *e);

#endif
