#include <stddef.h>

#include "filter.h"

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
