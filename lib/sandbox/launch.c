#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "launch.h"
#include "policy.h"
#include "relay.h"

#define EXPENDABLE "500"	/* as if it held half of all memory more than it does */

int
ams_launch_identity(struct ams_launch *l, const char *user, const char *group)
{
	struct ams_policy p = { .user = user, .group = group };

	l->uid = ams_policy_uid(&p, geteuid() == 0 ? AMS_DEFAULT_ID : geteuid());
	l->gid = ams_policy_gid(&p, geteuid() == 0 ? AMS_DEFAULT_ID : getegid());
	if (geteuid() != 0 && (l->uid != geteuid() || l->gid != getegid())) {
		snprintf(l->why, sizeof l->why, "the policy runs as %u:%u, but you are %u:%u: render it with --run-as %u:%u",
		    (unsigned)l->uid, (unsigned)l->gid, (unsigned)geteuid(), (unsigned)getegid(), (unsigned)geteuid(),
		    (unsigned)getegid());
		return -1;
	}
	return 0;
}

/* ---- words and descriptors ---- */

void
ams_launch_word(struct ams_launch *l, const char *word)
{
	if ((l->argv = realloc(l->argv, (l->n_argv + 2) * sizeof *l->argv)) == NULL ||
	    (l->argv[l->n_argv++] = strdup(word)) == NULL)
		abort();
	l->argv[l->n_argv] = NULL;
}

void
ams_launch_words(struct ams_launch *l, ...)
{
	const char *word;
	va_list ap;

	va_start(ap, l);
	while ((word = va_arg(ap, const char *)) != NULL)
		ams_launch_word(l, word);
	va_end(ap);
}

void
ams_launch_free(struct ams_launch *l)
{
	for (size_t i = 0; i < l->n_argv; i++)
		free(l->argv[i]);
	free(l->argv);
	free(l->cgroup_home);
	l->cgroup_home = NULL;
	for (size_t i = 0; i < l->n_binds; i++) {
		close(l->binds[i].fd);
		if (l->binds[i].parent > 0)
			close(l->binds[i].parent);
		free(l->binds[i].name);
	}
	if (l->policy > 0)
		close(l->policy);
	if (l->env > 0)
		close(l->env);
	l->argv = NULL;
	l->n_argv = l->n_binds = 0;
	l->policy = l->env = 0;
}

int
ams_launch_bind(struct ams_launch *l, int fd, const char *target, int writable)
{
	char where[64];
	struct stat st;
	int high;

	/* out of the way of the fixed numbers */
	if (fd < 0 || l->n_binds == AMS_MAX_BINDS || (high = fcntl(fd, F_DUPFD_CLOEXEC, AMS_FD_FREE)) < 0 || fstat(high, &st) != 0) {
		snprintf(l->why, sizeof l->why, "%s: %s", target, l->n_binds == AMS_MAX_BINDS ? "too many mounts" : strerror(errno));
		return -1;
	}
	close(fd);
	memset(&l->binds[l->n_binds], 0, sizeof l->binds[0]);
	l->binds[l->n_binds].fd = high;
	l->binds[l->n_binds].dir = S_ISDIR(st.st_mode);
	if (geteuid() == 0) {
		snprintf(where, sizeof where, AMS_STAGE "/%zu", l->n_binds);
		ams_launch_words(l, writable ? "--bind" : "--ro-bind", where, target, NULL);
	} else {
		snprintf(where, sizeof where, "%d", high);
		ams_launch_words(l, writable ? "--bind-fd" : "--ro-bind-fd", where, target, NULL);
	}
	l->n_binds++;
	return 0;
}

int
ams_launch_bind_host(struct ams_launch *l, const char *path, const char *target)
{
	const char *slash = strrchr(path, '/');
	char *dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	int parent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = openat(parent, slash + 1, O_PATH | O_CLOEXEC);
	int high = fd < 0 ? -1 : fcntl(parent, F_DUPFD_CLOEXEC, AMS_FD_FREE), saved = errno;

	free(dir);
	if (parent >= 0)
		close(parent);
	if (high < 0) {
		snprintf(l->why, sizeof l->why, "%s: %s", am_quotes(path), strerror(saved));
		errno = saved;
		return -1;
	}
	if (ams_launch_bind(l, fd, target, 0) != 0) {
		close(high);
		errno = 0;
		return -1;
	}
	l->binds[l->n_binds - 1].parent = high;
	l->binds[l->n_binds - 1].name = strdup(slash + 1);
	return 0;
}

int
ams_open_unlinked(const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
	while (fd < 0 && errno == EAGAIN);
	return (int)fd;
}

int
ams_launch_env(char *const env[])
{
	int fd = memfd_create("environment", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	for (size_t i = 0; env[i] != NULL; i++)
		if (am_write_all(fd, env[i], strlen(env[i]) + 1) != 0) {
			close(fd);
			return -1;
		}
	return fd;
}

/* amap-confine, beside our own executable. */
static int
bind_confine(struct ams_launch *l)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	if ((slash = strrchr(path, '/')) == NULL)
		slash = path;
	strcpy(slash, "/amap-confine");
	return ams_launch_bind_host(l, path, AMS_INSIDE "/confine");
}

int
ams_launch_command(struct ams_launch *l, const char *dir, char *const limits[], char *const command[])
{
	char number[16];

	if (bind_confine(l) != 0)
		return -1;
	ams_launch_words(l, "--remount-ro", "/", "--", AMS_INSIDE "/confine", NULL);
	snprintf(number, sizeof number, "%d", AMS_FD_STATUS);
	ams_launch_words(l, "--status-fd", number, NULL);
	snprintf(number, sizeof number, "%d", AMS_FD_POLICY);
	ams_launch_words(l, "--policy-fd", number, NULL);
	snprintf(number, sizeof number, "%d", AMS_FD_ENV);
	ams_launch_words(l, "--env-fd", number, NULL);
	if (dir != NULL)
		ams_launch_words(l, "--chdir", dir, NULL);
	ams_launch_word(l, "--show-network");
	if (l->tty)
		ams_launch_word(l, ams_tty_word());
	for (size_t i = 0; limits[i] != NULL; i++)
		ams_launch_words(l, "--limit", limits[i], NULL);
	ams_launch_word(l, "--");
	for (size_t i = 0; command[i] != NULL; i++)
		ams_launch_word(l, command[i]);
	return 0;
}

/* ---- in the supervisor and its child ---- */

/* By the directory's number, which no other unit has while it stands. */
void
ams_launch_mark(int unit, char *out, size_t size)
{
	struct stat st = { 0 };

	fstat(unit, &st);
	snprintf(out, size, "AMAP_UNIT=%llx-%llx", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

void
ams_launch_expendable(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, EXPENDABLE, strlen(EXPENDABLE));
		close(fd);
	}
}

static void
say_and_die(const char *what)
{
	dprintf(2, "amap-sandbox: %s: %s\n", what, strerror(errno));
	_exit(125);
}

void
ams_launch_exec(struct ams_launch *l, int output, int status)
{
	char mark[64], *env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", mark, NULL };
	sigset_t none;
	int null, policy, vars;

	ams_launch_mark(l->unit, mark, sizeof mark);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* up first, so that no number is overwritten before it is moved */
	status = fcntl(status, F_DUPFD_CLOEXEC, 600);
	policy = fcntl(l->policy, F_DUPFD_CLOEXEC, 600);
	vars = fcntl(l->env, F_DUPFD_CLOEXEC, 600);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (dup2(output, 1) < 0 || dup2(output, 2) < 0 || dup2(null, 0) < 0 || dup2(status, AMS_FD_STATUS) < 0 ||
	    dup2(policy, AMS_FD_POLICY) < 0 || dup2(vars, AMS_FD_ENV) < 0)
		say_and_die("descriptors");
	if (l->cgroup[0] != '\0' && ams_cgroup_enter(l->cgroup) != 0)
		say_and_die(l->cgroup);
	if (l->expendable)
		ams_launch_expendable();
	if (geteuid() == 0) {
		if (setgroups(0, NULL) != 0 || setresgid(l->gid, l->gid, l->gid) != 0 || setresuid(l->uid, l->uid, l->uid) != 0)
			say_and_die("the policy's identity cannot be taken, as in a container that does not map it");
	} else {
		for (size_t i = 0; i < l->n_binds; i++)
			fcntl(l->binds[i].fd, F_SETFD, 0);
	}
	/* After the change of identity, which would clear it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != l->supervisor)
		_exit(125);
	execve(l->argv[0], l->argv, env);
	say_and_die(l->argv[0]);
	abort();
}
