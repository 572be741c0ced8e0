/*
 * claude-session-start - record the messaging socket of a claude session
 *
 * Claude Code runs it as a hook when a session starts (spec deployment, section
 * 8). It never writes to standard output: that would become part of the session.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connector/place.h"
#include "connector/session.h"
#include "diag.h"
#include "file.h"
#include "json.h"

static const char usage[] =
    "usage: claude-session-start\n"
    "Records $CLAUDE_CODE_MESSAGING_SOCKET and the claude process that it belongs to\n"
    "below $HOME/" AM_HOOK_SESSIONS ".\n";

static const char *const claude[] = { "claude", NULL };

/* A failure of the hook is 1, and one line; the session goes on. */
static _Noreturn void
fail(const char *what)
{
	am_warn("%s", what);
	exit(AM_PROBLEM);
}

/* The claude that runs this: as it says itself, else the nearest ancestor of the parent, the parent included. */
static struct am_proc
find_claude(void)
{
	const char *told = am_env("CLAUDE_PID");
	struct am_proc p;

	if (told != NULL && strspn(told, "0123456789") == strlen(told) && am_proc_read((pid_t)atol(told), &p) == 0 &&
	    am_proc_runs(&p, claude))
		return p;
	if (am_proc_read(0, &p) == 0)
		while (p.ppid > 0 && p.ppid != p.pid && am_proc_read(p.ppid, &p) == 0)
			if (am_proc_runs(&p, claude))
				return p;
	am_warnx("no ancestor of this program runs claude");
	exit(AM_PROBLEM);
}

/* Opens the directory of the records: a real one, for this user only. */
static int
open_records(const char *home)
{
	int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir;

	if (fd < 0)
		fail(home);
	if (am_mkdir_beneath(fd, ".claude") != 0 || am_mkdir_beneath(fd, AM_HOOK_SESSIONS) != 0 ||
	    (dir = am_open_beneath(fd, AM_HOOK_SESSIONS, O_RDONLY | O_DIRECTORY, 0)) < 0 || fchmod(dir, 0700) != 0)
		fail(AM_HOOK_SESSIONS);
	close(fd);
	return dir;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	const char *home = am_env("HOME"), *socket = am_env("CLAUDE_CODE_MESSAGING_SOCKET");
	struct am_proc p;
	char name[32], *text;
	jv record;
	size_t len;
	int c;

	am_prog = "claude-session-start";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		am_std_option(c, usage);
	if (optind != argc)
		am_usage(usage);
	if (home == NULL || socket == NULL) {
		am_warnx("%s is not set", home == NULL ? "HOME" : "CLAUDE_CODE_MESSAGING_SOCKET");
		return AM_PROBLEM;
	}
	p = find_claude();
	record = am_set(am_set_str(jv_object(), "socket", socket), "pid", jv_number((double)p.pid));
	record = am_set_str(record, "start_time", p.start);
	text = am_json_text(record, AM_COMPACT, &len);
	jv_free(record);
	snprintf(name, sizeof name, "%ld.json", (long)p.pid);
	if (am_publish(open_records(home), name, text, len, 0600) != 0)
		fail(name);
	free(text);
	return AM_OK;
}
