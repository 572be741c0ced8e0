#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../landlock.h"
#include "preflight.h"

/* The first number in a file of the kernel's settings; -1 when there is no such file. */
static long
kernel_setting(const char *path)
{
	char buf[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 ? atol(buf) : -1;
}

/* What decides before anything is tried; NULL: nothing does. */
static const char *
userns_off(void)
{
	if (kernel_setting("/proc/sys/user/max_user_namespaces") == 0)
		return "user namespaces: switched off: sysctl user.max_user_namespaces is 0: set it to 10000";
	if (kernel_setting("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		return "user namespaces: switched off for users: sysctl kernel.unprivileged_userns_clone is 0: set it to 1";
	return NULL;
}

const char *
ams_launch_failure(const char *said)
{
	static char text[512];

	if (userns_off() != NULL)
		return userns_off();
	if (strstr(said, "Unknown option") != NULL)
		return "bwrap: too old: it lacks an option that this needs: use bubblewrap 0.8.0-2+deb12u1 of Debian 12, or 0.10";
	if (strstr(said, "namespace") != NULL || strstr(said, "uid map") != NULL) {
		if (kernel_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
			return "user namespaces: restricted by AppArmor: sysctl kernel.apparmor_restrict_unprivileged_userns is 1: "
			    "load an AppArmor profile that allows userns to /usr/bin/bwrap, or set it to 0";
		if (strstr(said, "not permitted") != NULL || strstr(said, "ermission") != NULL)
			return "user namespaces: refused, as in a container that may not nest: run outside of it, or let it make "
			    "user namespaces (docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined)";
	}
	snprintf(text, sizeof text, "%.500s", said[0] != '\0' ? said : "bwrap said nothing");
	return text;
}

const char *
ams_launch_bwrap(void)
{
	static char path[4096];
	const char *dir = getenv("PATH");
	size_t n;

	for (dir = dir != NULL ? dir : "/usr/bin:/bin"; *dir != '\0'; dir += n + (dir[n] == ':')) {
		n = strcspn(dir, ":");
		if (n == 0 || dir[0] != '/' || n > sizeof path - sizeof "/bwrap")
			continue;	/* a relative directory would be whoever's we stand in */
		snprintf(path, sizeof path, "%.*s/bwrap", (int)n, dir);
		if (access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

int
ams_launch_preflight(char why[512])
{
	const char *problem = am_landlock_problem();

	if (problem == NULL)
		problem = userns_off();
	if (problem == NULL && ams_launch_bwrap() == NULL)
		problem = "bwrap: not found on PATH: install the package bubblewrap";
	if (problem == NULL)
		return 0;
	snprintf(why, 512, "%s", problem);
	return -1;
}
