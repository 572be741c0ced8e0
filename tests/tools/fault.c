/*
 * fault - preloaded into a program: its Nth call that changes files fails, or kills it
 *
 * FAULT_AT=N      which call, of those to which WHAT can happen; 0: none
 * FAULT_DO=WHAT   kill (before the call), or EIO, ENOSPC, EMFILE, EINTR
 * FAULT_ON=NAME   only calls of this name count, as FAULT_TRACE names them; stat is looked at only so
 * FAULT_COUNT=F   at the end, the number of such calls goes to this file
 * FAULT_TRACE=F   each call as a line: NAME PATH [PATH]
 *
 * Looked at: opening, write, pwrite, ftruncate, fchmod, fsync, fdatasync, mkdirat,
 * renameat, unlinkat, fstatat. Who is killed leaves nothing but what is in the files, and
 * no opening to read and no flush changes that: being killed before one of these
 * is being killed before the next call.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long at, calls;
static const char *what, *only, *count_file;
static int trace = -1;

static long
raw(long n, long a, long b, long c, long d, long e, long f)
{
	static long (*real)(long, ...);

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(n, a, b, c, d, e, f);
}

static void __attribute__((constructor))
begin(void)
{
	const char *file = getenv("FAULT_TRACE");

	at = getenv("FAULT_AT") != NULL ? atol(getenv("FAULT_AT")) : 0;
	what = getenv("FAULT_DO");
	only = getenv("FAULT_ON");
	count_file = getenv("FAULT_COUNT");
	if (file != NULL)
		trace = (int)raw(SYS_openat, AT_FDCWD, (long)file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600, 0, 0);
}

static void __attribute__((destructor))
end(void)
{
	char text[32];
	int fd;

	if (count_file == NULL)
		return;
	fd = (int)raw(SYS_openat, AT_FDCWD, (long)count_file, O_WRONLY | O_CREAT | O_TRUNC, 0600, 0, 0);
	raw(SYS_write, fd, (long)text, snprintf(text, sizeof text, "%ld\n", calls), 0, 0, 0);
}

static const char *
path_of(int fd, char *out, size_t size)
{
	char link[64];
	long n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = raw(SYS_readlinkat, AT_FDCWD, (long)link, (long)out, (long)size - 1, 0, 0);
	out[n > 0 ? n : 0] = '\0';
	return out;
}

static int
is(const char *name, const char *const set[])
{
	for (; *set != NULL; set++)
		if (strcmp(name, *set) == 0)
			return 1;
	return 0;
}

static int
can_happen(const char *name)
{
	static const char *const passive[] = { "open", "fsync", NULL }, *const opening[] = { "open", "create", NULL },
	    *const slow[] = { "open", "create", "write", "pwrite", NULL }, *const no_growth[] = { "open", "ftruncate", NULL };

	if (only != NULL && strcmp(name, only) != 0)
		return 0;
	if (what == NULL || strcmp(what, "EIO") == 0)
		return 1;
	if (strcmp(what, "kill") == 0)
		return !is(name, passive);
	if (strcmp(what, "ENOSPC") == 0)
		return !is(name, no_growth);
	return is(name, strcmp(what, "EMFILE") == 0 ? opening : slow);
}

/* 1 with errno when this call is to fail. */
static int
fault(const char *name, int fd, const char *path, int fd2, const char *path2)
{
	char line[1024], one[300], two[300];

	if (trace >= 0) {
		int n = snprintf(line, sizeof line, "%s %s%s%s", name, fd < 0 ? "" : path_of(fd, one, sizeof one),
		    path != NULL ? "/" : "", path != NULL ? path : "");

		if (path2 != NULL)
			n += snprintf(line + n, sizeof line - (size_t)n, " %s/%s", path_of(fd2, two, sizeof two), path2);
		line[n++] = '\n';
		raw(SYS_write, trace, (long)line, n, 0, 0, 0);
	}
	if (!can_happen(name) || __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != at)
		return 0;
	if (strcmp(what, "kill") == 0) {
		raw(SYS_kill, getpid(), SIGKILL, 0, 0, 0, 0);
		pause();
	}
	errno = strcmp(what, "EIO") == 0 ? EIO : strcmp(what, "ENOSPC") == 0 ? ENOSPC : strcmp(what, "EMFILE") == 0 ? EMFILE : EINTR;
	return 1;
}

long
syscall(long n, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (n == SYS_openat2) {
		const struct open_how *how = (const struct open_how *)a[2];

		if (fault(how->flags & O_CREAT ? "create" : "open", (int)a[0], (const char *)a[1], -1, NULL))
			return -1;
	}
	return raw(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int
openat(int fd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (fault(flags & O_CREAT ? "create" : "open", fd, path, -1, NULL))
		return -1;
	return (int)raw(SYS_openat, fd, (long)path, flags, mode, 0, 0);
}

int
open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (fault(flags & O_CREAT ? "create" : "open", -1, path, -1, NULL))
		return -1;
	return (int)raw(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0, 0);
}

ssize_t
write(int fd, const void *bytes, size_t len)
{
	if (fd > 2 && fault("write", fd, NULL, -1, NULL))
		return -1;
	return raw(SYS_write, fd, (long)bytes, (long)len, 0, 0, 0);
}

ssize_t
pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
	if (fault("pwrite", fd, NULL, -1, NULL))
		return -1;
	return raw(SYS_pwrite64, fd, (long)bytes, (long)len, offset, 0, 0);
}

int
ftruncate(int fd, off_t len)
{
	return fault("ftruncate", fd, NULL, -1, NULL) ? -1 : (int)raw(SYS_ftruncate, fd, len, 0, 0, 0, 0);
}

int
fchmod(int fd, mode_t mode)
{
	return fault("fchmod", fd, NULL, -1, NULL) ? -1 : (int)raw(SYS_fchmod, fd, mode, 0, 0, 0, 0);
}

int
fsync(int fd)
{
	return fault("fsync", fd, NULL, -1, NULL) ? -1 : (int)raw(SYS_fsync, fd, 0, 0, 0, 0, 0);
}

int
fdatasync(int fd)
{
	return fault("fsync", fd, NULL, -1, NULL) ? -1 : (int)raw(SYS_fdatasync, fd, 0, 0, 0, 0, 0);
}

int
mkdirat(int fd, const char *path, mode_t mode)
{
	return fault("mkdir", fd, path, -1, NULL) ? -1 : (int)raw(SYS_mkdirat, fd, (long)path, mode, 0, 0, 0);
}

int
renameat(int fd, const char *from, int fd2, const char *to)
{
	return fault("rename", fd, from, fd2, to) ? -1 : (int)raw(SYS_renameat2, fd, (long)from, fd2, (long)to, 0, 0);
}

int
unlinkat(int fd, const char *path, int flags)
{
	return fault("unlink", fd, path, -1, NULL) ? -1 : (int)raw(SYS_unlinkat, fd, (long)path, flags, 0, 0, 0);
}

int
fstatat(int fd, const char *path, struct stat *st, int flags)
{
	if (only != NULL && strcmp(only, "stat") == 0 && fault("stat", fd, path, -1, NULL))
		return -1;
	return (int)raw(SYS_newfstatat, fd, (long)path, (long)st, flags, 0, 0);
}
