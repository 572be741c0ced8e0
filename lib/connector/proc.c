#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connector/proc.h"

/* The beginning of a file of /proc/PID, ended with a NUL; -1 when it cannot be read. */
static ssize_t
read_head(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n = 0, got;
	int fd;

	if (pid == 0)
		snprintf(path, sizeof path, "/proc/self/%s", name);
	else
		snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return -1;
	while ((size_t)n < size - 1 && (got = read(fd, buf + n, size - 1 - (size_t)n)) > 0)
		n += got;
	close(fd);
	buf[n] = '\0';
	return n;
}

int
am_proc_read(pid_t pid, struct am_proc *p)
{
	char stat[1024], *open, *close, *field, *save;
	int n;

	if (read_head(pid, "stat", stat, sizeof stat) <= 0)
		return -1;
	/* The name may hold anything, parentheses and blanks too. */
	open = strchr(stat, '(');
	close = strrchr(stat, ')');
	if (open == NULL || close == NULL || close < open || (p->pid = (pid_t)atol(stat)) <= 0)
		return -1;
	snprintf(p->comm, sizeof p->comm, "%.*s", (int)(close - open - 1), open + 1);
	p->ppid = -1;
	p->start[0] = '\0';
	for (n = 1, field = strtok_r(close + 1, " \n", &save); field != NULL; n++, field = strtok_r(NULL, " \n", &save)) {
		if (n == 1)
			p->state = *field;
		if (n == 2)
			p->ppid = (pid_t)atol(field);
		if (n == 20 && strlen(field) < sizeof p->start && strspn(field, "0123456789") == strlen(field))
			strcpy(p->start, field);
	}
	return p->ppid < 0 || p->start[0] == '\0' ? -1 : 0;
}

static int
listed(const char *name, const char *const *names)
{
	const char *slash = strrchr(name, '/');

	name = slash == NULL ? name : slash + 1;
	for (; *names != NULL; names++)
		if (strcmp(name, *names) == 0)
			return 1;
	return 0;
}

int
am_proc_runs(const struct am_proc *p, const char *const *names)
{
	char argv[8192];
	ssize_t n;
	size_t first;

	for (const char *const *name = names; *name != NULL; name++)
		if (strcmp(p->comm, *name) == 0)
			return 1;
	if ((n = read_head(p->pid, "cmdline", argv, sizeof argv)) <= 0)
		return 0;
	if (listed(argv, names))
		return 1;
	first = strlen(argv) + 1;
	return first < (size_t)n && listed(argv + first, names);
}

int
am_proc_same_words(const struct am_proc *p, const struct am_proc *q)
{
	char a[8192], b[8192];
	ssize_t n;

	if (strcmp(p->comm, q->comm) != 0 || (n = read_head(p->pid, "cmdline", a, sizeof a)) < 0)
		return 0;
	return read_head(q->pid, "cmdline", b, sizeof b) == n && memcmp(a, b, (size_t)n) == 0;
}

int
am_proc_is(pid_t pid, const char *start)
{
	struct am_proc p;

	return am_proc_read(pid, &p) == 0 && strcmp(p.start, start) == 0;
}
