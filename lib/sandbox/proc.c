#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc.h"

int
ams_proc_look(pid_t pid, struct ams_proc *p, pid_t *parent)
{
	char path[64], buf[1024], *s;
	ssize_t n;
	int fd, ppid;
	char state;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return -1;
	n = read(fd, buf, sizeof buf - 1);
	close(fd);
	if (n <= 0) {
		errno = ESRCH;
		return -1;
	}
	buf[n] = '\0';
	/* The second field is a name in parentheses and may hold anything; the last ")" ends it. */
	if ((s = strrchr(buf, ')')) == NULL ||
	    sscanf(s + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
	    &state, &ppid, &p->start) != 3) {
		errno = EPROTO;
		return -1;
	}
	if (state == 'Z' || state == 'X') {	/* dead, and nobody has taken notice */
		errno = ESRCH;
		return -1;
	}
	p->pid = pid;
	if (parent != NULL)
		*parent = ppid;
	return 0;
}

int
ams_proc_open(const struct ams_proc *p)
{
	struct ams_proc now;
	int fd;

	if (p->pid <= 0 || p->start == 0) {
		errno = ESRCH;
		return -1;
	}
	if ((fd = (int)syscall(SYS_pidfd_open, p->pid, 0)) < 0)
		return -1;
	/* Looked at while held: the number cannot pass to another in between unseen. */
	if (ams_proc_look(p->pid, &now, NULL) == 0 && now.start == p->start)
		return fd;
	close(fd);
	errno = ESRCH;
	return -1;
}

int
ams_proc_alive(const struct ams_proc *p)
{
	struct ams_proc now;

	return p->pid > 0 && p->start != 0 && ams_proc_look(p->pid, &now, NULL) == 0 && now.start == p->start;
}

void
ams_boot_id(char out[37])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, 36);

	if (fd >= 0)
		close(fd);
	out[n == 36 ? 36 : 0] = '\0';
}
