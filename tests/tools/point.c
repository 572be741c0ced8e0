/*
 * point - one point at which a program can fail, tried out
 *
 * usage: point FAULT.SO N WHAT ROUTER COMMAND [ARGUMENT]...
 *
 * Makes ./home the same as ./prepared, runs COMMAND with its Nth call failing as
 * fault.c does it, runs it again without, and then the ROUTER's own check of
 * home/router-state, whose exit status it returns. What the last two say goes to
 * ./second and ./checked, the number of such calls to ./count. One process
 * instead of many, for a test that does this some thousand times.
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int
directory(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		err(125, "%s", name);
	return fd;
}

/* each: what is done with every entry of a directory of at. */
static void
walk(int at, const char *name, int to, void (*each)(int, const char *, int))
{
	DIR *d = fdopendir(directory(at, name));
	struct dirent *e;

	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			each(dirfd(d), e->d_name, to);
	closedir(d);
}

static void
removed(int at, const char *name, int unused)
{
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (S_ISDIR(st.st_mode))
		walk(at, name, unused, removed);
	if (unlinkat(at, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) != 0)
		err(125, "%s", name);
}

static void
copied(int at, const char *name, int to)
{
	char bytes[65536];
	struct stat st;
	ssize_t n;
	int from, fd;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		err(125, "%s", name);
	if (S_ISDIR(st.st_mode)) {
		if (mkdirat(to, name, st.st_mode & 07777) != 0)
			err(125, "%s", name);
		fd = directory(to, name);
		walk(at, name, fd, copied);
		close(fd);
		return;
	}
	from = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	fd = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 07777);
	while ((n = read(from, bytes, sizeof bytes)) > 0)
		if (write(fd, bytes, (size_t)n) != n)
			err(125, "%s", name);
	if (n < 0 || fd < 0)
		err(125, "%s", name);
	close(from);
	close(fd);
}

/* Its wait status. */
static int
ran(char *argv[], const char *output)
{
	posix_spawn_file_actions_t files;
	int status, error;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	if ((error = posix_spawn(&pid, argv[0], &files, NULL, argv, environ)) != 0)
		errx(125, "%s: %s", argv[0], strerror(error));
	if (waitpid(pid, &status, 0) != pid)
		err(125, "wait");
	posix_spawn_file_actions_destroy(&files);
	return status;
}

int
main(int argc, char *argv[])
{
	char *check[] = { NULL, "check", "home/router-state", NULL };
	int here, home, status;

	if (argc < 6)
		errx(125, "usage: point FAULT.SO N WHAT ROUTER COMMAND [ARGUMENT]...");
	here = directory(AT_FDCWD, ".");
	removed(here, "home", -1);
	if (mkdir("home", 0755) != 0)
		err(125, "home");
	home = directory(here, "home");
	walk(here, "prepared", home, copied);
	setenv("FAULT_AT", argv[2], 1);
	setenv("FAULT_DO", argv[3], 1);
	setenv("FAULT_COUNT", "count", 1);
	setenv("LD_PRELOAD", argv[1], 1);
	ran(argv + 5, "/dev/null");
	unsetenv("LD_PRELOAD");
	ran(argv + 5, "second");
	check[0] = argv[4];
	status = ran(check, "checked");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
