#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "../landlock.h"
#include "launch.h"
#include "policy.h"
#include "relay.h"

#define EXPENDABLE "500"	/* as if it held half of all memory more than it does */

/* ---- can it work here ---- */

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

int
ams_launch_stage(struct ams_launch *l)
{
	int trees[AMS_MAX_BINDS];
	char at[64];

	if (geteuid() != 0)
		return 0;
	/* The clones are made where the descriptors come from, then carried over. */
	for (size_t i = 0; i < l->n_binds; i++)
		if ((trees[i] = open_tree(l->binds[i].fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE)) < 0)
			return -1;
	if ((l->outside = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) < 0 ||
	    unshare(CLONE_NEWNS) != 0 || (l->staged = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
	    mount("amap-sandbox", AMS_STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k") != 0)
		return -1;
	for (size_t i = 0; i < l->n_binds; i++) {
		int fd;

		snprintf(at, sizeof at, AMS_STAGE "/%zu", i);
		if (l->binds[i].dir) {
			if (mkdir(at, 0755) != 0)
				return -1;
		} else {
			if ((fd = open(at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0)
				return -1;
			close(fd);
		}
		if (move_mount(trees[i], "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) != 0)
			return -1;
		close(trees[i]);
	}
	return 0;
}

static int
renew(struct ams_launch *l, size_t i, int fd)
{
	char at[64];
	int tree, rc = -1;

	if (geteuid() != 0)
		return dup3(fd, l->binds[i].fd, O_CLOEXEC) < 0 ? -1 : 0;
	/* as for the stage: cloned where it comes from, then carried over */
	if (setns(l->outside, CLONE_NEWNS) != 0)
		return -1;
	tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (setns(l->staged, CLONE_NEWNS) != 0)
		return -1;
	snprintf(at, sizeof at, AMS_STAGE "/%zu", i);
	if (tree >= 0 && umount2(at, MNT_DETACH) == 0)
		rc = move_mount(tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH);
	if (tree >= 0)
		close(tree);
	return rc != 0 || dup3(fd, l->binds[i].fd, O_CLOEXEC) < 0 ? -1 : 0;
}

int
ams_launch_renew(struct ams_launch *l)
{
	struct stat now, was;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n_binds; i++) {
		int fd = l->binds[i].parent > 0 ? openat(l->binds[i].parent, l->binds[i].name, O_PATH | O_CLOEXEC) : -1;

		if (fd < 0)		/* nothing better than what is there */
			continue;
		if (fstat(fd, &now) == 0 && fstat(l->binds[i].fd, &was) == 0 &&
		    (now.st_dev != was.st_dev || now.st_ino != was.st_ino))
			rc = renew(l, i, fd);
		close(fd);
	}
	return rc;
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
