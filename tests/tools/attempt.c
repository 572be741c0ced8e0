/*
 * attempt - do one forbidden thing and say what the kernel answered (for tests)
 *
 * usage: attempt ACT [ARGUMENT]
 *
 * Prints "OK" or the name of the errno. ACTs on files take a directory that
 * holds the file "exist" and the directory "dir".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static const char *arg = "/nonexistent";

static char *
in(const char *name)
{
	static char ring[4][4200];
	static int next;
	char *p = ring[next++ & 3];

	snprintf(p, sizeof ring[0], "%s/%s", arg, name);
	return p;
}

static long
opened(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd;
}

/* ---- files ---- */
static long a_create(void) { return opened(in("new"), O_WRONLY | O_CREAT | O_EXCL); }
static long a_write(void) { return opened(in("exist"), O_WRONLY); }
static long a_append(void) { return opened(in("exist"), O_WRONLY | O_APPEND); }
static long a_read(void) { return opened(in("exist"), O_RDONLY); }
static long a_truncopen(void) { return opened(in("exist"), O_WRONLY | O_TRUNC); }
static long a_truncate(void) { return truncate(in("exist"), 0); }
static long a_tmpfile(void) { return opened(arg, O_WRONLY | O_TMPFILE); }
static long a_mkdir(void) { return mkdir(in("new"), 0700); }
static long a_mkdir_existing(void) { return mkdir(in("dir"), 0700); }
static long a_rmdir(void) { return rmdir(in("dir")); }
static long a_unlink(void) { return unlink(in("exist")); }
static long a_unlink_absent(void) { return unlink(in("absent")); }
static long a_rename(void) { return rename(in("exist"), in("new")); }
static long a_rename_into(void) { return rename(in("exist"), in("dir/exist")); }
static long a_link(void) { return link(in("exist"), in("new")); }
static long a_symlink(void) { return symlink("exist", in("new")); }
static long a_mkfifo(void) { return mkfifo(in("new"), 0600); }
static long a_chmod(void) { return chmod(in("exist"), 0644); }
static long a_utimes(void) { return utimes(in("exist"), NULL); }
static long a_list(void) { return opened(arg, O_RDONLY | O_DIRECTORY); }
static long a_exec(void) { return execl(arg, arg, (char *)NULL); }
static long a_readfile(void) { return opened(arg, O_RDONLY); }
static long a_writefile(void) { return opened(arg, O_WRONLY); }
static long
a_socket(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(sun.sun_path, in("new"), sizeof sun.sun_path - 1);
	return bind(fd, (struct sockaddr *)&sun, sizeof sun);
}

/* ---- mounts and namespaces ---- */
static long a_mount(void) { return mount("none", arg, "tmpfs", 0, NULL); }
static long a_bind(void) { return mount("/tmp", arg, NULL, MS_BIND, NULL); }
static long a_remount(void) { return mount(NULL, arg, NULL, MS_REMOUNT | MS_BIND, NULL); }
static long a_umount(void) { return umount2(arg, MNT_DETACH); }
static long a_pivot_root(void) { return syscall(SYS_pivot_root, "/tmp", "/tmp"); }
static long a_chroot(void) { return chroot("/tmp"); }
static long a_open_tree(void) { return syscall(428, AT_FDCWD, "/tmp", 1); }
static long a_fsopen(void) { return syscall(430, "tmpfs", 0); }
static long a_mount_setattr(void) { return syscall(442, AT_FDCWD, arg, 0, NULL, 0); }
static long a_unshare_user(void) { return unshare(CLONE_NEWUSER); }
static long a_unshare_net(void) { return unshare(CLONE_NEWNET); }
static long a_clone_user(void) { long p = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); if (p == 0) _exit(0); return p; }
static long a_clone_high(void) { long p = syscall(SYS_clone, (1ul << 32) | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); if (p == 0) _exit(0); return p; }
static long a_clone3(void) { char args[88] = { 0 }; return syscall(435, args, sizeof args); }
static long a_setns(void) { return setns(open("/proc/self/ns/mnt", O_RDONLY), 0); }

/* ---- processes and the kernel ---- */
static long a_ptrace(void) { pid_t p = fork(); if (p == 0) { pause(); } long r = ptrace(PTRACE_ATTACH, p, 0, 0); int e = errno; kill(p, 9); errno = e; return r; }
static long a_traceme(void) { return ptrace(PTRACE_TRACEME, 0, 0, 0); }
static long a_vm_readv(void) { char b[1]; struct iovec v = { b, 1 }; return process_vm_readv(getpid(), &v, 1, &v, 1, 0); }
static long a_vm_writev(void) { char b[1] = { 0 }; struct iovec v = { b, 1 }; return process_vm_writev(getpid(), &v, 1, &v, 1, 0); }
static long a_pidfd_open(void) { return syscall(SYS_pidfd_open, getpid(), 0); }
static long a_pidfd_getfd(void) { return syscall(SYS_pidfd_getfd, 0, 0, 0); }
static long a_memfd(void) { return memfd_create("x", 0); }
static long a_bpf(void) { union bpf_attr a = { 0 }; return syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof a); }
static long a_perf(void) { struct perf_event_attr a = { .size = sizeof a }; return syscall(SYS_perf_event_open, &a, 0, -1, -1, 0); }
static long a_uffd(void) { return syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY); }
static long a_io_uring(void) { char p[120] = { 0 }; return syscall(SYS_io_uring_setup, 1, p); }
static long a_keyctl(void) { return syscall(SYS_keyctl, 0, -3, 1); }
static long a_add_key(void) { return syscall(SYS_add_key, "user", "x", "y", 1, -3); }
static long a_seccomp(void) { return syscall(SYS_seccomp, 1, 0, NULL); }
static long a_prctl_seccomp(void) { return prctl(PR_SET_SECCOMP, 2, NULL, 0, 0); }
static long a_execveat(void) { char *v[] = { NULL }; return syscall(SYS_execveat, open("/usr/bin/env", O_PATH), "", v, v, AT_EMPTY_PATH); }
static long a_syslog(void) { return syscall(SYS_syslog, 3, NULL, 0); }
static long a_setuid(void) { return setuid(0); }
static long a_kill_outside(void) { return kill(atoi(arg), 0); }
static long a_call(void) { return syscall(atol(arg), 0, 0, 0, 0, 0, 0); }
static long a_own_memory(void) { return opened("/proc/self/mem", O_RDWR); }
static long a_own_program(void) { return opened("/proc/self/exe", O_RDWR); }
static long a_init_memory(void) { return opened("/proc/1/mem", O_RDONLY); }
static long a_init_root(void) { return opened("/proc/1/root/etc/shadow", O_RDONLY); }
static long a_main_root(void) { return opened("/proc/2/root", O_RDONLY | O_DIRECTORY); }
static long a_outer_cwd(void) { return opened("/proc/1/cwd/..", O_RDONLY | O_DIRECTORY); }
static long a_signal_main(void) { return kill(2, 0); }

/* ---- sockets and terminals ---- */
static long a_packet(void) { return socket(AF_PACKET, SOCK_RAW, 0); }
static long a_vsock(void) { return socket(40, SOCK_STREAM, 0); }
static long a_bluetooth(void) { return socket(31, SOCK_STREAM, 0); }
static long a_alg(void) { return socket(38, SOCK_SEQPACKET, 0); }
static long a_raw(void) { return socket(AF_INET, SOCK_RAW, 1); }
static long a_raw6(void) { return socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, 58); }
static long a_netlink_audit(void) { return socket(AF_NETLINK, SOCK_RAW, 9); }
static long a_netlink_route(void) { return socket(AF_NETLINK, SOCK_RAW, 0); }
static long a_unix(void) { return socket(AF_UNIX, SOCK_STREAM, 0); }
static long a_inet(void) { return socket(AF_INET, SOCK_STREAM, 0); }
static long a_high_family(void) { return syscall(SYS_socket, (1ul << 32) | AF_PACKET, SOCK_RAW, 0); }
static long a_tiocsti(void) { return ioctl(0, TIOCSTI, "x"); }
static long a_tiocsti_high(void) { return syscall(SYS_ioctl, 0, (1ul << 32) | TIOCSTI, "x"); }
static long a_tiocsetd(void) { int d = 0; return ioctl(0, TIOCSETD, &d); }
static long
a_abstract(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	size_t n = strlen(arg);

	memcpy(sun.sun_path + 1, arg, n);
	return connect(fd, (struct sockaddr *)&sun, (socklen_t)(sizeof sun.sun_family + 1 + n));
}

static long
a_abstract_listen(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	size_t n = strlen(arg);

	memcpy(sun.sun_path + 1, arg, n);
	if (bind(fd, (struct sockaddr *)&sun, (socklen_t)(sizeof sun.sun_family + 1 + n)) != 0 || listen(fd, 5) != 0)
		return -1;
	puts("listening");
	fflush(stdout);
	for (;;)
		pause();
}

/* Swaps "inbox" and "evil" for ever. */
static long
a_swap(void)
{
	for (;;)
		if (renameat2(AT_FDCWD, in("inbox"), AT_FDCWD, in("evil"), RENAME_EXCHANGE) != 0)
			return -1;
}

static const struct {
	const char *name;
	long (*act)(void);
} acts[] = {
#define A(x) { #x, a_##x }
	A(create), A(write), A(append), A(read), A(truncopen), A(truncate), A(tmpfile), A(mkdir), A(mkdir_existing), A(rmdir),
	A(unlink), A(unlink_absent), A(rename), A(rename_into), A(link), A(symlink), A(mkfifo), A(chmod), A(utimes), A(list), A(exec),
	A(readfile), A(writefile), A(socket), A(mount), A(bind), A(remount), A(umount), A(pivot_root), A(chroot), A(open_tree),
	A(fsopen), A(mount_setattr), A(unshare_user), A(unshare_net), A(clone_user), A(clone_high), A(clone3), A(setns), A(ptrace),
	A(traceme), A(vm_readv), A(vm_writev), A(pidfd_open), A(pidfd_getfd), A(memfd), A(bpf), A(perf), A(uffd), A(io_uring),
	A(keyctl), A(add_key), A(seccomp), A(prctl_seccomp), A(execveat), A(syslog), A(setuid), A(kill_outside), A(signal_main), A(call),
	A(own_memory), A(own_program), A(init_memory), A(init_root), A(main_root), A(outer_cwd),
	A(packet), A(vsock), A(bluetooth), A(alg), A(raw), A(raw6), A(netlink_audit), A(netlink_route), A(unix), A(inet),
	A(high_family), A(tiocsti), A(tiocsti_high), A(tiocsetd), A(abstract),
	A(abstract_listen), A(swap),
};

int
main(int argc, char *argv[])
{
	if (argc > 2)
		arg = argv[2];
	for (size_t i = 0; argc > 1 && i < sizeof acts / sizeof acts[0]; i++) {
		if (strcmp(acts[i].name, argv[1]) != 0)
			continue;
		errno = 0;
		puts(acts[i].act() >= 0 ? "OK" : strerrorname_np(errno));
		return 0;
	}
	return 2;
}
