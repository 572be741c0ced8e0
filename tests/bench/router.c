/*
 * router - drives a running amap-router and measures it beside a floor
 *
 * usage: router latency HOME FLOOR-DIR N    request to notice, and the same file
 *                                           operations without a router, in turns
 *        router fill HOME FIRST N SENDERS   N requests of s0, s1, ... to t, each in its outbox
 *        router wait HOME N SECONDS         until t has N notices; prints the seconds
 *        router floor DIR N                 N times all files of a delegation, one after
 *                                           the other; prints how many a second
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void
die(const char *what)
{
	perror(what);
	exit(2);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int
directory(const char *format, const char *a, const char *b)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof path, format, a, b);
	mkdir(path, 0755);
	if ((fd = open(path, O_RDONLY | O_DIRECTORY)) < 0)
		die(path);
	return fd;
}

/* ---- the floor ---- */

static char text[512];

static void
publish(int dir, const char *name, size_t len)
{
	char temp[128];
	int fd;

	snprintf(temp, sizeof temp, ".%s.tmp", name);
	if ((fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL, 0600)) < 0 || write(fd, text, len) < 0 || fsync(fd) != 0 ||
	    close(fd) != 0 || renameat(dir, temp, dir, name) != 0 || fsync(dir) != 0)
		die(name);
}

struct floor { int messages, delivered, notices, results, published, intent, audit; };

static struct floor
make_floor(const char *where)
{
	struct floor f;

	memset(text, 'x', sizeof text);
	f.messages = directory("%s/messages", where, "");
	f.delivered = directory("%s/delivered", where, "");
	f.notices = directory("%s/notices", where, "");
	f.results = directory("%s/results", where, "");
	f.published = directory("%s/published", where, "");
	f.intent = openat(f.results, ".intent", O_RDWR | O_CREAT, 0600);
	f.audit = openat(f.results, ".audit", O_WRONLY | O_CREAT | O_APPEND, 0600);
	return f;
}

/* The files that stand when a notice does, as the router writes them. */
static void
to_notice(const struct floor *f, int i)
{
	char name[64];

	snprintf(name, sizeof name, "notice-%032d.json", i);
	if (pwrite(f->intent, text, 380, 0) < 0 || ftruncate(f->intent, 380) != 0 || fdatasync(f->intent) != 0)
		die("intent");
	publish(f->messages, name, 300);
	publish(f->delivered, name, 280);
	if (write(f->audit, text, 500) < 0 || fdatasync(f->audit) != 0)
		die("audit");
	publish(f->notices, name, 480);
}

static void
to_result(const struct floor *f, int i)
{
	char name[64];

	snprintf(name, sizeof name, "%08d.json", i);
	publish(f->results, name, 330);
	publish(f->published, name, 240);
	if (ftruncate(f->intent, 0) != 0)
		die("intent");
}

/* ---- requests ---- */

static void
request(int outbox, const char *id)
{
	char bytes[512], name[64], temp[64];
	int fd, n = snprintf(bytes, sizeof bytes, "{\"contract_version\":\"2\",\"req_id\":\"%s\",\"draft\":{"
	    "\"to\":[\"t@fleet.example\"],\"subject\":\"List your files\",\"body_text\":\"Please list the files in your workspace.\\n\"}}", id);

	snprintf(temp, sizeof temp, ".req-%s.json.tmp", id);
	snprintf(name, sizeof name, "req-%s.json", id);
	if ((fd = openat(outbox, temp, O_WRONLY | O_CREAT | O_EXCL, 0644)) < 0 || write(fd, bytes, (size_t)n) != n ||
	    close(fd) != 0 || renameat(outbox, temp, outbox, name) != 0)
		die(name);
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int
latency(const char *home, const char *floor_dir, int n)
{
	struct floor f = make_floor(floor_dir);
	int outbox = directory("%s/instances/s0/outbox", home, ""), notify = inotify_init1(IN_CLOEXEC);
	double *bare = calloc((size_t)n, sizeof *bare), *routed = calloc((size_t)n, sizeof *routed);
	char path[4096], id[32], buf[4096];

	snprintf(path, sizeof path, "%s/instances/t/peer/notices", home);
	if (inotify_add_watch(notify, path, IN_MOVED_TO) < 0)
		die(path);
	for (int i = 0; i < n; i++) {
		double from = now();
		struct pollfd p = { .fd = notify, .events = POLLIN };

		to_notice(&f, i);
		bare[i] = now() - from;
		to_result(&f, i);
		snprintf(id, sizeof id, "l%07d", i);
		from = now();
		request(outbox, id);
		if (poll(&p, 1, 30000) != 1 || read(notify, buf, sizeof buf) < 0)
			die("no notice");
		routed[i] = now() - from;
		usleep(20000);		/* the answer is written after the notice */
	}
	qsort(bare, (size_t)n, sizeof *bare, by_value);
	qsort(routed, (size_t)n, sizeof *routed, by_value);
	printf("%.3f %.3f %.3f %.3f\n", bare[n / 2] * 1e3, routed[n / 2] * 1e3, bare[n * 9 / 10] * 1e3, routed[n * 9 / 10] * 1e3);
	return 0;
}

static int
fill(const char *home, int first, int n, int senders)
{
	char id[32], name[32];

	for (int s = 0; s < senders; s++) {
		int outbox;

		snprintf(name, sizeof name, "s%d", s);
		outbox = directory("%s/instances/%s/outbox", home, name);
		for (int i = s; i < n; i += senders) {
			snprintf(id, sizeof id, "f%07d", first + i);
			request(outbox, id);
		}
		close(outbox);
	}
	return 0;
}

static long
notices(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	long n = 0;

	if (d == NULL)
		die(path);
	while ((e = readdir(d)) != NULL)
		n += strncmp(e->d_name, "notice-", 7) == 0;
	closedir(d);
	return n;
}

static int
wait_for(const char *home, long n, double seconds)
{
	double from = now();
	char path[4096];

	snprintf(path, sizeof path, "%s/instances/t/peer/notices", home);
	while (notices(path) < n) {
		if (now() - from > seconds) {
			fprintf(stderr, "only %ld of %ld notices\n", notices(path), n);
			return 1;
		}
		usleep(20000);
	}
	printf("%.3f\n", now() - from);
	return 0;
}

static int
floor_rate(const char *where, int n)
{
	struct floor f = make_floor(where);
	double from = now();

	for (int i = 0; i < n; i++) {
		to_notice(&f, 1000000 + i);
		to_result(&f, 1000000 + i);
	}
	printf("%.0f\n", n / (now() - from));
	return 0;
}

int
main(int argc, char *argv[])
{
	if (argc == 5 && strcmp(argv[1], "latency") == 0)
		return latency(argv[2], argv[3], atoi(argv[4]));
	if (argc == 6 && strcmp(argv[1], "fill") == 0)
		return fill(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
	if (argc == 5 && strcmp(argv[1], "wait") == 0)
		return wait_for(argv[2], atol(argv[3]), atof(argv[4]));
	if (argc == 4 && strcmp(argv[1], "floor") == 0)
		return floor_rate(argv[2], atoi(argv[3]));
	fprintf(stderr, "usage: router latency|fill|wait|floor ...\n");
	return 2;
}
