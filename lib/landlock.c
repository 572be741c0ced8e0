#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "landlock.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1

struct ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};
struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

/* In the kernel's bit order, each with the ABI that brought it. */
static const struct {
	const char *name;
	int abi;
	char file;		/* a right that a plain file can have */
	char read;		/* a right that a read-only path gives */
} rights[] = {
	{ "execute", 1, 1, 1 },
	{ "write_file", 1, 1, 0 },
	{ "read_file", 1, 1, 1 },
	{ "read_dir", 1, 0, 1 },
	{ "remove_dir", 1, 0, 0 },
	{ "remove_file", 1, 0, 0 },
	{ "make_char", 1, 0, 0 },
	{ "make_dir", 1, 0, 0 },
	{ "make_reg", 1, 0, 0 },
	{ "make_sock", 1, 0, 0 },
	{ "make_fifo", 1, 0, 0 },
	{ "make_block", 1, 0, 0 },
	{ "make_sym", 1, 0, 0 },
	{ "refer", 2, 0, 0 },
	{ "truncate", 3, 1, 0 },
	{ "ioctl_dev", 5, 1, 0 },
};
#define N_RIGHTS (sizeof rights / sizeof rights[0])

int
am_landlock_abi(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
}

const char *
am_landlock_problem(void)
{
	static char why[200];
	int abi = am_landlock_abi();

	if (abi >= AM_LANDLOCK_MIN)
		return NULL;
	if (abi < 0 && errno == ENOSYS)
		return "Landlock: not built into this kernel: use one with CONFIG_SECURITY_LANDLOCK, Linux 6.2 or later";
	if (abi < 0 && errno == EOPNOTSUPP)
		return "Landlock: built but not enabled at boot: add landlock to the kernel parameter lsm= and reboot";
	if (abi < 0)
		snprintf(why, sizeof why, "Landlock: cannot be asked: %s", strerror(errno));
	else
		snprintf(why, sizeof why, "Landlock: too old: this kernel has ABI %d, ABI %d is needed: use Linux 6.2 or later",
		    abi, AM_LANDLOCK_MIN);
	return why;
}

int
am_landlock_open(struct am_landlock *l, unsigned scopes)
{
	struct ruleset_attr attr = { 0 };
	size_t size = offsetof(struct ruleset_attr, handled_access_net);

	memset(l, 0, sizeof *l);
	if ((l->abi = am_landlock_abi()) < 0)
		return -1;
	for (size_t i = 0; i < N_RIGHTS; i++)
		if (rights[i].abi <= l->abi)
			l->handled |= UINT64_C(1) << i;
	if (l->abi >= 6) {
		l->scoped = scopes;
		size = sizeof attr;
	}
	attr.handled_access_fs = l->handled;
	attr.scoped = l->scoped;
	l->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	return l->fd < 0 ? -1 : 0;
}

int
am_landlock_allow(struct am_landlock *l, const char *path, int writable)
{
	struct path_beneath_attr rule = { 0 };
	struct stat st;
	int rc, saved;

	if ((rule.parent_fd = open(path, O_PATH | O_CLOEXEC)) < 0)
		return -1;
	if ((rc = fstat(rule.parent_fd, &st)) == 0) {
		for (size_t i = 0; i < N_RIGHTS; i++)
			if ((writable || rights[i].read) && (S_ISDIR(st.st_mode) || rights[i].file))
				rule.allowed_access |= UINT64_C(1) << i;
		rule.allowed_access &= l->handled;
		rc = (int)syscall(SYS_landlock_add_rule, l->fd, RULE_PATH_BENEATH, &rule, 0);
	}
	saved = errno;
	close(rule.parent_fd);
	errno = saved;
	return rc;
}

int
am_landlock_enforce(struct am_landlock *l)
{
	int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), saved;

	if (rc == 0)
		rc = (int)syscall(SYS_landlock_restrict_self, l->fd, 0);
	saved = errno;
	close(l->fd);
	l->fd = -1;
	errno = saved;
	return rc;
}

const char *const *
am_landlock_names(uint64_t mask)
{
	static const char *names[N_RIGHTS + 1];
	size_t n = 0;

	for (size_t i = 0; i < N_RIGHTS; i++)
		if (mask & UINT64_C(1) << i)
			names[n++] = rights[i].name;
	names[n] = NULL;
	return names;
}
