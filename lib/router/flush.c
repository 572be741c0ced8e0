#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "router/flush.h"

#define HELPERS 4
#define SLOW_NS 200000		/* a flush that takes longer waits for a disk */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static const int *todo;
static size_t next, end, busy;
static int helpers, failed;

/* Called with the lock held; takes what is left, one after the other. */
static void
take(void)
{
	while (next < end) {
		int fd = todo[next++], rc;

		busy++;
		pthread_mutex_unlock(&lock);
		rc = fsync(fd) == 0 ? 0 : errno;
		pthread_mutex_lock(&lock);
		busy--;
		if (rc != 0)
			failed = rc;
	}
}

static void *
help(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	for (;;) {
		take();
		if (busy == 0)
			pthread_cond_signal(&done);
		pthread_cond_wait(&work, &lock);
	}
	return NULL;
}

/* Signals are for the loop; a helper less is only slower. */
static void
call_helpers(size_t n)
{
	pthread_attr_t small;
	sigset_t all, ours;
	pthread_t t;

	if (helpers >= HELPERS || helpers >= (int)n)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &ours);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	while (helpers < HELPERS && helpers < (int)n && pthread_create(&t, &small, help, NULL) == 0) {
		pthread_detach(t);
		helpers++;
	}
	pthread_attr_destroy(&small);
	pthread_sigmask(SIG_SETMASK, &ours, NULL);
}

static long
nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

int
amr_flush(const int fds[], size_t n)
{
	static int slow;
	size_t i = 0;
	long from = nanoseconds();

	for (; i < n && !slow; i++) {
		if (fsync(fds[i]) != 0)
			return -1;
		slow = nanoseconds() - from > SLOW_NS * (long)(i + 1);
	}
	if (i == n)
		return 0;
	call_helpers(n - i - 1);
	pthread_mutex_lock(&lock);
	todo = fds;
	next = i;
	end = n;
	failed = 0;
	if (n - i > 1)
		pthread_cond_broadcast(&work);
	take();
	while (busy > 0)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
	slow = nanoseconds() - from > SLOW_NS;
	errno = failed;
	return failed != 0 ? -1 : 0;
}
