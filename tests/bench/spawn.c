/*
 * spawn - how long a command takes beside another one
 *
 * usage: spawn COUNT FLOOR STDIN COMMAND [ARGUMENT]...
 * Runs the command FLOOR, which is split at spaces, and COMMAND in turn, COUNT
 * times each, so that what else the machine does hits both; standard input of
 * the command is the file STDIN, output is thrown away. Prints the first decile
 * of both in microseconds, which a busy machine moves least, and the command's
 * largest resident set in KiB.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Microseconds; ends the program when the command fails. */
static double
run(const char *input, char *argv[], long *kib)
{
	posix_spawn_file_actions_t files;
	struct rusage use;
	double from;
	int status;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, input, O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	from = now();
	if (posix_spawnp(&pid, argv[0], &files, NULL, argv, environ) != 0 || wait4(pid, &status, 0, &use) != pid ||
	    status != 0) {
		fprintf(stderr, "spawn: %s: failed\n", argv[0]);
		exit(2);
	}
	from = now() - from;
	posix_spawn_file_actions_destroy(&files);
	if (use.ru_maxrss > *kib)
		*kib = use.ru_maxrss;
	return from;
}

int
main(int argc, char *argv[])
{
	int n = argc > 4 ? atoi(argv[1]) : 0;
	double *floor_ = calloc((size_t)n + 1, sizeof *floor_), *cost = calloc((size_t)n + 1, sizeof *cost);
	char *words[16] = { NULL }, *rest = argc > 4 ? argv[2] : NULL;
	long kib = 0, unused = 0;

	if (n < 1 || floor_ == NULL || cost == NULL)
		return 2;
	for (int i = 0; i < 15 && (words[i] = strtok_r(rest, " ", &rest)) != NULL; )
		i++;
	for (int i = 0; i < n; i++) {
		floor_[i] = run("/dev/null", words, &unused);
		cost[i] = run(argv[3], argv + 4, &kib);
	}
	qsort(floor_, (size_t)n, sizeof *floor_, by_size);
	qsort(cost, (size_t)n, sizeof *cost, by_size);
	printf("%.0f %.0f %ld\n", floor_[n / 10], cost[n / 10], kib);
	return 0;
}
