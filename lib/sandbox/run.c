#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc.h"
#include "state.h"

static const char *const phases[] = {
	"Provisioning", "Ready", "Completed", "Error", "Stopping", "Stopped", "Starting", "Unknown", NULL
};

/* ---- locks ---- */

int
ams_unit_claim(int state, const char *kind, const char *key, int unit)
{
	/* a description of its own, so that a supervisor forked later does not hold it */
	int fd = openat(unit, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), named;
	struct stat a, b;

	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX) != 0)
		if (errno != EINTR) {
			close(fd);
			return -1;
		}
	if (key == NULL)
		return fd;
	named = ams_unit_open(state, kind, key);
	if (named >= 0 && fstat(named, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
		close(named);
		return fd;
	}
	if (named >= 0)
		close(named);
	close(fd);
	errno = ENOENT;
	return -1;
}

static int
is_claimed(int unit)
{
	int fd = openat(unit, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (fd < 0)
		return 0;
	rc = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	close(fd);
	return rc;
}

int
ams_unit_lock(int unit)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = openat(unit, "record.json", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && fcntl(fd, F_SETLK, &whole) == 0 ? fd : -1;
}

/* The process that holds the lock; none when there is none. */
static void
lock_holder(int unit, struct ams_proc *p)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = openat(unit, "record.json", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	memset(p, 0, sizeof *p);
	if (fd < 0)
		return;
	if (fcntl(fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK && ams_proc_look(whole.l_pid, p, NULL) != 0)
		memset(p, 0, sizeof *p);
	close(fd);
}

/* ---- what runs ---- */

static double
number(jv object, const char *key, double absent)
{
	jv v = am_get(object, key, JV_KIND_NUMBER);

	if (jv_is_valid(v))
		absent = jv_number_value(v);
	jv_free(v);
	return absent;
}

static void
text(jv object, const char *key, char *out, size_t size)
{
	const char *s = am_str(object, key);

	snprintf(out, size, "%s", s != NULL ? s : "");
}

static void
process(jv run, const char *key, struct ams_proc *p)
{
	jv v = am_get(run, key, JV_KIND_OBJECT);
	const char *start = am_str(v, "start");

	p->pid = (pid_t)number(v, "pid", 0);
	p->start = start != NULL ? strtoull(start, NULL, 10) : 0;
	jv_free(v);
}

static jv
process_json(const struct ams_proc *p)
{
	char start[32];

	snprintf(start, sizeof start, "%llu", p->start);
	return am_set_str(am_set(jv_object(), "pid", jv_number(p->pid)), "start", start);
}

void
ams_unit_run(int unit, struct ams_run *run)
{
	jv v = ams_unit_read(unit, "run.json");
	char boot[37];
	const char *s;

	memset(run, 0, sizeof *run);
	run->exit_code = -1;
	run->phase = "Unknown";
	lock_holder(unit, &run->supervisor);
	if (!jv_is_valid(v)) {
		/* nothing has run yet: its maker is at work, or died over it */
		jv_free(v);
		run->orphaned = run->supervisor.pid == 0;
		run->phase = !run->orphaned || is_claimed(unit) ? "Provisioning" : "Error";
		snprintf(run->reason, sizeof run->reason, "%s", ams_phase_is(run, "Error") ? "ContainerCreateFailed" : "Starting");
		return;
	}
	process(v, "init", &run->init);
	process(v, "main", &run->main);
	if ((s = am_str(v, "phase")) != NULL)
		for (size_t i = 0; phases[i] != NULL; i++)
			if (strcmp(phases[i], s) == 0)
				run->phase = phases[i];
	text(v, "reason", run->reason, sizeof run->reason);
	text(v, "message", run->message, sizeof run->message);
	text(v, "instance", run->instance, sizeof run->instance);
	text(v, "cgroup", run->cgroup, sizeof run->cgroup);
	run->exit_code = (int)number(v, "exit_code", -1);
	run->restarts = (int)number(v, "restarts", 0);
	run->started_ms = (long long)number(v, "started_ms", 0);
	run->next_restart_ms = (long long)number(v, "next_restart_ms", 0);
	ams_boot_id(boot);
	s = am_str(v, "boot_id");
	if (s == NULL || strcmp(s, boot) != 0 || run->supervisor.pid == 0) {
		int same_boot = s != NULL && strcmp(s, boot) == 0;

		memset(&run->init, 0, sizeof run->init);
		memset(&run->main, 0, sizeof run->main);
		run->next_restart_ms = 0;
		if (!ams_phase_is(run, "Stopped") && !ams_phase_is(run, "Completed") && !ams_phase_is(run, "Error")) {
			run->phase = "Error";
			run->orphaned = same_boot;
			snprintf(run->reason, sizeof run->reason, "%s", same_boot ? "ContainerStopped" : "ContainerRuntimeRestart");
			snprintf(run->message, sizeof run->message, "%s",
			    same_boot ? "its supervisor is gone" : "the host was restarted");
		}
	}
	jv_free(v);
}

int
ams_unit_set_run(int unit, const struct ams_run *run)
{
	char boot[37];
	jv v = jv_object();

	ams_boot_id(boot);
	v = am_set_str(v, "boot_id", boot);
	v = am_set(v, "init", process_json(&run->init));
	v = am_set(v, "main", process_json(&run->main));
	v = am_set_str(v, "phase", run->phase);
	v = am_set_str(v, "reason", run->reason);
	v = am_set_str(v, "message", run->message);
	v = am_set_str(v, "instance", run->instance);
	v = am_set_str(v, "cgroup", run->cgroup);
	v = am_set(v, "exit_code", run->exit_code < 0 ? jv_null() : jv_number(run->exit_code));
	v = am_set(v, "restarts", jv_number(run->restarts));
	v = am_set(v, "started_ms", jv_number((double)run->started_ms));
	v = am_set(v, "next_restart_ms", jv_number((double)run->next_restart_ms));
	return ams_unit_write(unit, "run.json", v, 0);
}

int
ams_phase_is(const struct ams_run *run, const char *phase)
{
	return strcmp(run->phase, phase) == 0;
}
