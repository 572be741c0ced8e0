#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <seccomp.h>

#include "filter.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

const char *const ams_filter_refused[] = {
	/* other processes, and code that never was a file */
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp",
	"pidfd_open", "pidfd_getfd", "pidfd_send_signal", "memfd_create", "memfd_secret",
	/* kernel machinery */
	"bpf", "perf_event_open", "userfaultfd", "seccomp",
	"io_uring_setup", "io_uring_enter", "io_uring_register",
	"add_key", "request_key", "keyctl", "syslog", "personality", "vhangup",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load",
	"reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "iopl", "ioperm",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "nfsservctl",
	"fanotify_init", "lookup_dcookie", "name_to_handle_at", "open_by_handle_at",
	/* mounts and namespaces */
	"mount", "umount2", "umount", "pivot_root", "chroot", "setns", "fsopen", "fsconfig",
	"fsmount", "fspick", "open_tree", "move_mount", "mount_setattr",
	NULL
};

const char *const ams_filter_by_argument[] = {
	"unshare and clone of any namespace", "clone3 (ENOSYS)", "execveat with an empty path",
	"prctl(PR_SET_SECCOMP)", "ioctl TIOCSTI, TIOCLINUX, TIOCSETD",
	"socket of a family other than unix, inet, inet6, netlink",
	"raw inet sockets", "netlink other than route",
	NULL
};

static int
refuse_by_argument(scmp_filter_ctx f)
{
	static const unsigned long namespaces[] = {
		CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS,
		CLONE_NEWCGROUP, CLONE_NEWTIME
	};
	/* The kernel looks at 32 bits of the request: so does the comparison. */
	static const unsigned long ioctls[] = { TIOCSTI, 0x541c /* TIOCLINUX */, TIOCSETD };
	const unsigned eperm = SCMP_ACT_ERRNO(EPERM);
	int rc = 0;

	for (size_t i = 0; i < sizeof namespaces / sizeof namespaces[0]; i++) {
		struct scmp_arg_cmp flag = SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]);

		rc |= seccomp_rule_add_array(f, eperm, SCMP_SYS(unshare), 1, &flag);
		/* CLONE_NEWTIME lies among the exit signal's bits, clone does not know it */
		if (namespaces[i] != CLONE_NEWTIME)
			rc |= seccomp_rule_add_array(f, eperm, SCMP_SYS(clone), 1, &flag);
	}
	for (size_t i = 0; i < sizeof ioctls / sizeof ioctls[0]; i++)
		rc |= seccomp_rule_add(f, eperm, SCMP_SYS(ioctl), 1,
		    SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, ioctls[i]));
	rc |= seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(execveat), 1, SCMP_A4(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffu, PR_SET_SECCOMP));

	for (unsigned family = 0; family <= AF_NETLINK; family++)
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
			rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, NETLINK_ROUTE));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_INET), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_RAW));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_INET6), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_RAW));
	return rc;
}

/*
 * The family of an address stands in memory, where no filter looks; its length
 * is an argument. So a Unix socket is held up only for a path of just that length.
 */
static int
show_connections(scmp_filter_ctx f)
{
	static const unsigned long lengths[] = { sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6), sizeof(struct sockaddr_storage) };
	int rc = 0;

	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		rc |= seccomp_rule_add(f, SCMP_ACT_NOTIFY, SCMP_SYS(connect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffffu, lengths[i]));
		rc |= seccomp_rule_add(f, SCMP_ACT_NOTIFY, SCMP_SYS(sendto), 1, SCMP_A5(SCMP_CMP_MASKED_EQ, 0xffffffffu, lengths[i]));
	}
	return rc;
}

static int
load(int *listener)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int rc;

	if (f == NULL)
		return -ENOMEM;
	rc = refuse_by_argument(f);
	if (rc == 0 && listener != NULL)
		rc = show_connections(f);
	for (size_t i = 0; rc == 0 && ams_filter_refused[i] != NULL; i++) {
		int nr = seccomp_syscall_resolve_name(ams_filter_refused[i]);

		/* a name that this library or architecture has no number for cannot be called by it */
		if (nr >= 0)
			rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), nr, 0);
	}
	if (rc == 0)		/* open_tree_attr (Linux 6.15), younger than the library */
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), 467, 0);
	if (rc == 0)
		rc = seccomp_load(f);
	if (rc == 0 && listener != NULL)
		*listener = fcntl(seccomp_notify_fd(f), F_DUPFD_CLOEXEC, 3);
	seccomp_release(f);
	return rc;
}

int
ams_filter_load(int *listener)
{
	if (listener == NULL)
		return load(NULL);
	*listener = -1;
	/* A kernel that cannot show calls must still refuse them. */
	return load(listener) == 0 ? 0 : load(NULL);
}
