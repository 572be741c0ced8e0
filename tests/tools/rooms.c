/*
 * rooms - rules of the router's rooms that no test of the whole program reaches in time
 *
 * usage: rooms queue EVENTS|errno
 *
 * queue: after each event but the first eight one request is taken, so the
 * queue is never empty. Prints the most names kept, and whether a scan follows.
 * errno: logs where nothing can be written. Prints errno of before as of after.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "router/log.h"
#include "router/queue.h"

int
main(int argc, char *argv[])
{
	struct amr_inst in = { .scanned = 1 };
	size_t most = 0;
	char name[64];

	if (argc == 2 && strcmp(argv[1], "errno") == 0) {
		if (freopen("/dev/full", "w", stderr) == NULL)
			return 1;
		setvbuf(stderr, NULL, _IONBF, 0);
		errno = ENOTDIR;
		amr_log(AM_WARNING, "", "%d", 1);
		printf("%s\n", strerror(errno));
		return 0;
	}
	if (argc != 3)
		errx(1, "usage: rooms queue EVENTS|errno");
	for (long i = 0; i < atol(argv[2]); i++) {
		snprintf(name, sizeof name, "req-%08ld.json", i);
		amr_queue_event(&in, name);
		most = in.queue.n > most ? in.queue.n : most;
		if (i >= 8 && in.head < in.queue.n)
			in.head++;
	}
	printf("%zu %d\n", most, in.rescan);
	return 0;
}
