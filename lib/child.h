/*
 * child - a command that is run for what it prints.
 *
 * It has no standard input, no blocked signal, and a process group of its own,
 * so that a kill reaches all that it started.
 */
#ifndef AM_CHILD_H
#define AM_CHILD_H

#include <stddef.h>
#include <sys/types.h>

struct am_output {
	int fd;			/* -1: at its end */
	char *bytes;		/* from malloc; NULL while there are none */
	size_t len;
	int cut;		/* there was more than is kept */
};

struct am_child {
	pid_t pid;		/* its group's number too */
	struct am_output out[2];	/* standard output and standard error, which do not block */
};

/*
 * Starts argv[0], which is looked for on PATH. 0, or -1 with errno of what
 * cannot be had or run; then there is nothing to free.
 */
int am_child_start(struct am_child *c, char *const argv[]);

/* Reads what there is now. Kept are the first max bytes; or the last, and up to as many before them. */
enum am_keep { AM_FIRST, AM_LAST };
void am_output_read(struct am_output *o, size_t max, enum am_keep keep);

/*
 * Reads until the command has ended and both outputs are at their end; what it
 * left running may hold them for two seconds more. Its status as waitpid(2)
 * tells it; -1 when the time came before, and then all of it was killed.
 */
int am_child_follow(struct am_child *c, long long until, size_t max, enum am_keep keep);

/* Closes and frees the outputs; the process is the caller's to wait for. */
void am_child_free(struct am_child *c);

#endif
