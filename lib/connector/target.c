#include <stdio.h>

#include "connector/proc.h"
#include "connector/target.h"
#include "diag.h"

#define MUTE_MS 30000		/* for a session that began to show its socket */

static pid_t ancestors[128];

void
am_target_open(void)
{
	struct am_proc p;
	size_t n = 0;

	for (pid_t pid = 0; n + 1 < sizeof ancestors / sizeof ancestors[0] && am_proc_read(pid, &p) == 0 && p.ppid > 0; pid = p.ppid)
		ancestors[n++] = p.ppid;
}

static int
is_ancestor(pid_t pid)
{
	for (size_t i = 0; ancestors[i] != 0; i++)
		if (ancestors[i] == pid)
			return 1;
	return 0;
}

int
am_target_fit(const struct am_rows *rows, long long now, const char **outcome, char detail[128])
{
	static int warned_ancestor, warned_unknown;
	static long long mute_since;

	*outcome = NULL;
	if (rows->count == 0)
		return 0;
	if (rows->count > 1) {
		snprintf(detail, 128, "%d sessions run here, and it is not clear which one is meant", rows->count);
		*outcome = "ambiguous_target";
		return 0;
	}
	if (rows->socket[0] != '/' || rows->key[0] != '/') {
		/* It has just begun and will have them in a moment, or it never will. */
		mute_since = mute_since == 0 ? now : mute_since;
		if (now - mute_since >= MUTE_MS) {
			snprintf(detail, 128, "error: the session has no messaging socket, or no key");
			*outcome = "inject_failed";
		}
		return 0;
	}
	mute_since = 0;
	if (rows->pid > 0 && is_ancestor(rows->pid)) {
		snprintf(detail, 128, "target session pid %ld is an ancestor of this daemon", (long)rows->pid);
		if (!warned_ancestor++)
			am_warnx("%s; a message from its own descendant would count as its own word", detail);
		*outcome = "inject_failed";
		return 0;
	}
	if ((rows->pid == 0 || ancestors[0] == 0) && !warned_unknown++)
		am_warnx("cannot check that the target session is not this daemon's ancestor: %s",
		    rows->pid == 0 ? "the source does not know its pid" : "/proc cannot be read");
	return 1;
}
