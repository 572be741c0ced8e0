#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "denied.h"

#define AGAIN_S 60	/* the same address is told of again after this */
#define LINES_PER_S 20

void
ams_denied_open(struct ams_denied *d, struct ams_ring *log)
{
	memset(d, 0, sizeof *d);
	d->listener = -1;
	d->log = log;
}

void
ams_denied_listen(struct ams_denied *d, int listener)
{
	if (d->listener >= 0)
		close(d->listener);
	d->listener = listener;
}

/* The address that a call was given, from the caller's memory; its length, or -1. */
static ssize_t
address(const struct seccomp_notif *n, struct sockaddr_in6 *a)
{
	int sendto = n->data.nr == SYS_sendto, fd;
	char path[64];
	ssize_t len;

	snprintf(path, sizeof path, "/proc/%u/mem", n->pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return -1;
	len = pread(fd, a, sizeof *a, (off_t)n->data.args[sendto ? 4 : 1]);
	close(fd);
	return len;
}

/* "HOST:PORT" of an address that no loopback device answers for; 0 for all others. */
static int
name(const struct sockaddr_in6 *six, ssize_t len, char *who, size_t size)
{
	const struct sockaddr_in *four = (const void *)six;
	char host[INET6_ADDRSTRLEN];

	if (len >= (ssize_t)sizeof *four && four->sin_family == AF_INET) {
		unsigned net = ntohl(four->sin_addr.s_addr) >> 24;

		if (net == 0 || net == 127 || inet_ntop(AF_INET, &four->sin_addr, host, sizeof host) == NULL)
			return 0;
		snprintf(who, size, "%s:%u", host, ntohs(four->sin_port));
		return 1;
	}
	if (len < (ssize_t)sizeof *six || six->sin6_family != AF_INET6 || IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
	    IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr) ||
	    (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == 127) ||
	    inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host) == NULL)
		return 0;
	snprintf(who, size, "[%s]:%u", host, ntohs(six->sin6_port));
	return 1;
}

/* A program that tries again and again does not push everything else out of the log. */
static int
worth_a_line(struct ams_denied *d, const char *who)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	for (size_t i = 0; i < AMS_DENIED_RECENT; i++)
		if (strcmp(d->recent[i].who, who) == 0 && t.tv_sec < d->recent[i].until)
			return 0;
	if (t.tv_sec != d->second)
		d->lines = 0;
	d->second = t.tv_sec;
	if (d->lines++ >= LINES_PER_S)
		return 0;
	snprintf(d->recent[d->next].who, sizeof d->recent[0].who, "%s", who);
	d->recent[d->next].until = t.tv_sec + AGAIN_S;
	d->next = (d->next + 1) % AMS_DENIED_RECENT;
	return 1;
}

static void
tell(struct ams_denied *d, pid_t pid, const char *who)
{
	char path[64], program[PATH_MAX], text[PATH_MAX + 128];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	n = readlink(path, program, sizeof program - 1);
	program[n > 0 ? n : 0] = '\0';
	snprintf(text, sizeof text, "NET:OPEN [MED] DENIED %s from %s [reason:the sandbox has no network]", who, program);
	ams_log(d->log, "sandbox", "OCSF", "ocsf", text, strlen(text));
}

void
ams_denied_serve(struct ams_denied *d, short revents)
{
	struct seccomp_notif n = { 0 };
	struct seccomp_notif_resp go_on = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct sockaddr_in6 a = { 0 };
	char who[sizeof d->recent[0].who];
	ssize_t len;

	if ((revents & POLLIN) == 0) {
		ams_denied_listen(d, -1);
		return;
	}
	if (ioctl(d->listener, SECCOMP_IOCTL_NOTIF_RECV, &n) != 0)
		return;		/* killed while it waited */
	len = address(&n, &a);
	/* Still the same call: its process has not gone, nor its number passed on. */
	if (ioctl(d->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id) == 0 && name(&a, len, who, sizeof who) && worth_a_line(d, who))
		tell(d, (pid_t)n.pid, who);
	go_on.id = n.id;
	ioctl(d->listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
}
