/*
 * openshell-sessions - list the agent sessions of this sandbox
 *
 * One line a session: claude - - PID SOCKET KEYFILE, separated by tabs
 * (spec deployment, section 8; spec claude-code, sections 2 and 7). An
 * amap-session is listed as a claude: whoever reads the lines asks for the
 * one session to speak to, whatever program it is.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "connector/session.h"
#include "diag.h"
#include "json.h"
#include "path.h"

/*
 * A claude that just appeared takes a turn before its tool servers are
 * connected, and would answer without them: it is not listed before this age.
 */
#define READY_MS 3000

static const char usage[] =
    "usage: openshell-sessions\n"
    "Lists the agent sessions below the main process, one line each: claude, -, -,\n"
    "process id, socket, key file, separated by tabs.\n";

static const char *const main_names[] = { "amap-main", NULL };
static const char *const agent_names[] = { "claude", "amap-session", NULL };
static const char *const session_names[] = { "amap-session", NULL };

static struct am_proc *table;
static size_t count;

static int
by_pid(const void *a, const void *b)
{
	const struct am_proc *p = a, *q = b;

	return (p->pid > q->pid) - (p->pid < q->pid);
}

static const struct am_proc *
find(pid_t pid)
{
	struct am_proc key = { .pid = pid };

	return count == 0 ? NULL : bsearch(&key, table, count, sizeof table[0], by_pid);
}

static void
read_table(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	size_t room = 0;

	if (dir == NULL)
		am_die("/proc");
	while ((e = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)atol(e->d_name);

		if (strspn(e->d_name, "0123456789") != strlen(e->d_name))
			continue;
		if (count == room && (table = realloc(table, (room = room * 2 + 64) * sizeof table[0])) == NULL)
			abort();
		if (am_proc_read(pid, &table[count]) == 0)
			count++;
	}
	closedir(dir);
	if (count > 0)
		qsort(table, count, sizeof table[0], by_pid);
}

/* The outermost ancestor of this program's parent, the parent included, that is a main process. */
static const struct am_proc *
main_process(void)
{
	const struct am_proc *found = NULL, *p;
	struct am_proc self;
	pid_t pid;

	if (am_proc_read(0, &self) != 0)
		am_diex("/proc/self/stat cannot be read");
	for (pid = self.ppid; (p = find(pid)) != NULL; pid = p->ppid) {
		if (am_proc_runs(p, main_names))
			found = p;
		if (p->ppid == pid)
			break;
	}
	return found;
}

static int
descends_from(const struct am_proc *p, pid_t ancestor)
{
	/* A parent may end and its number be used again while the table is read: no walk is longer than the table. */
	for (size_t steps = 0; p != NULL && steps < count; steps++, p = find(p->ppid))
		if (p->ppid == ancestor)
			return 1;
	return 0;
}

/* The command of an amap-session, or what that started: the session is the one to speak to. */
static int
is_of_a_command(const struct am_proc *p)
{
	p = find(p->ppid);
	for (size_t steps = 0; p != NULL && steps < count; steps++, p = find(p->ppid))
		if (am_proc_runs(p, session_names))
			return 1;
	return 0;
}

/*
 * A session, and not what it forked a moment ago: until that runs another
 * program it has the words of its parent, and would be a second session.
 */
static int
is_session(const struct am_proc *p)
{
	const struct am_proc *parent = find(p->ppid);

	return am_proc_runs(p, agent_names) && !is_of_a_command(p) &&
	    (parent == NULL || !am_proc_runs(parent, agent_names) || !am_proc_same_words(p, parent));
}

/* A field as it is printed: "-" for none, and for one that would break the line or steer a terminal. */
static const char *
field(const char *s)
{
	for (size_t i = 0; s != NULL && s[i] != '\0'; i++)
		if ((unsigned char)s[i] <= ' ' || s[i] == 0x7f)
			return "-";
	return s == NULL || s[0] == '\0' ? "-" : s;
}

static int
is_socket(const char *path)
{
	struct stat st;

	return path != NULL && path[0] == '/' && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int
same_pid(jv record, pid_t pid)
{
	jv v = am_get(record, "pid", JV_KIND_NUMBER);
	int same = jv_is_valid(v) && jv_number_value(v) == (double)pid;

	jv_free(v);
	return same;
}

/* Borrows the registry entry, which may be invalid. 1 for a claude that began less than READY_MS ago. */
static int
too_young(const struct am_proc *p, jv entry)
{
	jv started = am_get(entry, "startedAt", JV_KIND_NUMBER);
	struct timespec now;
	double age;

	clock_gettime(CLOCK_BOOTTIME, &now);
	age = (double)now.tv_sec * 1000 - strtod(p->start, NULL) * 1000 / (double)sysconf(_SC_CLK_TCK);
	if (jv_is_valid(started)) {
		clock_gettime(CLOCK_REALTIME, &now);
		age = (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1e6 - jv_number_value(started);
	}
	jv_free(started);
	return age >= 0 && age < READY_MS && !am_proc_runs(p, session_names);
}

/*
 * The socket of a session, from malloc, or NULL: as its own registry entry
 * says, else as the hook recorded it. *young when it must wait.
 */
static char *
socket_of(int home, const struct am_proc *p, int *young)
{
	char path[128], *socket = NULL;
	const char *s, *start;
	jv record;

	snprintf(path, sizeof path, AM_SESSIONS "/%ld.json", (long)p->pid);
	record = am_session_file(home, path);
	start = am_str(record, "procStart");
	s = am_str(record, "messagingSocketPath");
	if (start != NULL && strcmp(start, p->start) == 0 && same_pid(record, p->pid) && is_socket(s)) {
		socket = strdup(s);
		*young = too_young(p, record);
	} else {
		*young = too_young(p, jv_invalid());
	}
	jv_free(record);
	if (socket != NULL)
		return socket;
	snprintf(path, sizeof path, AM_HOOK_SESSIONS "/%ld.json", (long)p->pid);
	record = am_session_file(home, path);
	start = am_str(record, "start_time");
	s = am_str(record, "socket");
	if (start != NULL && strcmp(start, p->start) == 0 && same_pid(record, p->pid) && is_socket(s))
		socket = strdup(s);
	jv_free(record);
	return socket;
}

static int
is_key_file(int home, const char *name)
{
	char path[400];
	const char *token;
	jv key;
	int yes;

	if (snprintf(path, sizeof path, AM_SESSIONS "/%s", name) >= (int)sizeof path)
		return 0;
	key = am_session_file(home, path);
	token = am_str(key, "peerToken");
	yes = token != NULL && token[0] != '\0';
	jv_free(key);
	return yes;
}

/* The key file's name below the sessions, from malloc: the one named after the socket, else the only one. */
static char *
key_of(int home, const struct am_proc *p, const char *socket)
{
	char exact[128], prefix[32], *found = NULL;
	size_t plen, keys = 0;
	struct dirent *e;
	DIR *dir;
	int fd;

	if (socket != NULL) {
		am_session_key_name(p->pid, socket, exact);
		if (is_key_file(home, exact))
			return strdup(exact);
	}
	plen = (size_t)snprintf(prefix, sizeof prefix, "%ld.", (long)p->pid);
	if ((fd = openat(home, AM_SESSIONS, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return NULL;
	if ((dir = fdopendir(fd)) == NULL) {
		close(fd);
		return NULL;
	}
	while ((e = readdir(dir)) != NULL) {
		size_t len = strlen(e->d_name);

		if (strncmp(e->d_name, prefix, plen) != 0 || len <= plen + 4 || strcmp(e->d_name + len - 4, ".key") != 0 ||
		    !is_key_file(home, e->d_name))
			continue;
		if (keys++ == 0)
			found = strdup(e->d_name);
	}
	closedir(dir);
	if (keys == 1)
		return found;
	free(found);
	return NULL;
}

/* One that is alone and too young is left out; with another one beside it both must be seen. */
static void
print_session(int home, const char *home_path, const struct am_proc *p, int alone)
{
	int young = 0;
	char *socket = socket_of(home, p, &young), *key = key_of(home, p, socket), *key_path = NULL;

	if (key != NULL && asprintf(&key_path, "%s/" AM_SESSIONS "/%s", home_path, key) < 0)
		abort();
	if (!young || !alone)
		printf("claude\t-\t-\t%ld\t%s\t%s\n", (long)p->pid, field(socket), field(key_path));
	free(socket);
	free(key);
	free(key_path);
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	const struct am_proc *boss, **found;
	const char *home_path;
	size_t sessions = 0;
	int c, home;

	am_prog = "openshell-sessions";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		am_std_option(c, usage);
	if (optind != argc)
		am_usage(usage);
	if ((home_path = getenv("HOME")) == NULL || home_path[0] == '\0')
		am_diex("HOME is not set");
	read_table();
	if ((boss = main_process()) == NULL)
		am_diex("no ancestor of this program runs amap-main, so it cannot tell whose sessions to list");
	home = open(home_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if ((found = calloc(count, sizeof *found)) == NULL)
		abort();
	for (size_t i = 0; i < count; i++)
		if (table[i].pid != boss->pid && descends_from(&table[i], boss->pid) && is_session(&table[i]))
			found[sessions++] = &table[i];
	for (size_t i = 0; i < sessions; i++)
		print_session(home, home_path, found[i], sessions == 1);
	free(found);
	free(table);
	return am_finish(AM_OK);
}
