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

/* "linux:MACHINE-ID:pid:[INODE]", the pid namespace in which a pid means something. */
void am_pid_domain(char out[160]);

#endif
