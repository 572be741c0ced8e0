/*
 * amap-confine - start a program with less authority.
 *
 * The first program of every sandbox, and of every command that enters one.
 * It reads the policy, then gives up one thing after another (session,
 * terminal, identity, capabilities, paths, system calls, descriptors,
 * environment) and becomes the command. What it cannot give up stops it: exit
 * 125, and nothing has run.
 *
 * Linked statically: it starts inside a root file system that may hold
 * another C library, or none.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/diag.h"
#include "../lib/file.h"
#include "../lib/landlock.h"
#include "../lib/sandbox/filter.h"
#include "../lib/sandbox/giveup.h"
#include "../lib/sandbox/limits.h"
#include "../lib/sandbox/policy.h"

#define FAULT 125
#define CANNOT_RUN 126
#define NOT_FOUND 127
#define ENV_MAX (2u << 20)

static const char usage[] =
    "usage: amap-confine [option]... [--] COMMAND [ARG]...\n"
    "       amap-confine --print [--policy FILE]\n"
    "\n"
    "  --policy FILE         the sandbox policy (default: system paths, /sandbox and /tmp)\n"
    "  --policy-fd FD        the same, from its start, by an open descriptor\n"
    "  --env NAME=VALUE      set in the command's environment, which is otherwise empty\n"
    "                        but for PATH and HOME; may be repeated\n"
    "  --env-fd FD           take exactly the NUL-ended strings read here\n"
    "  --chdir DIR           start there\n"
    "  --tty[=ROWSxCOLUMNS]  a new pseudo-terminal (24x80); needs --status-fd\n"
    "  --limit NAME=NUMBER   memory (bytes), processes, files, time (CPU seconds)\n"
    "  --status-fd FD        a socket: says \"start\", then nothing or why not\n"
    "  --show-network        send a listener for network attempts there as well: seccomp_unotify(2)\n"
    "  --entered             a command beside a main program: may signal it, warns of nothing\n"
    "  --print               say as JSON what would be applied, and what this kernel lacks\n";

struct plan {
	struct ams_policy policy;
	char **env;
	size_t n_env;
	const char *chdir;
	int tty, entered, print, show_network;
	struct winsize size;
	struct ams_limits limits;
};

static int status_fd = -1;

__attribute__((format(printf, 2, 3))) static _Noreturn void
fail(int code, const char *fmt, ...)
{
	char why[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	if (status_fd >= 0)
		(void)!send(status_fd, why, strlen(why), MSG_NOSIGNAL);
	else
		am_warnx("%s", why);
	_exit(code);		/* no handler runs in a process that is half confined */
}

/* ---- what is asked for ---- */

static int
number(const char *s, const char *option)
{
	char *end;
	long n = strtol(s, &end, 10);

	if (s[0] < '0' || s[0] > '9' || *end != '\0' || n > 1 << 20)
		fail(FAULT, "%s: not a descriptor: %s", option, am_quotes(s));
	return (int)n;
}

static void
add_env(struct plan *p, char *pair)
{
	size_t len = strcspn(pair, "=");

	if (pair[len] != '=' || len == 0)
		fail(FAULT, "--env: not NAME=VALUE: %s", am_quotes(pair));
	for (size_t i = 0; i < p->n_env; i++) {
		if (strncmp(p->env[i], pair, len + 1) == 0) {
			p->env[i] = pair;
			return;
		}
	}
	if ((p->env = realloc(p->env, (p->n_env + 2) * sizeof *p->env)) == NULL)
		abort();
	p->env[p->n_env++] = pair;
	p->env[p->n_env] = NULL;
}

static void
env_from(struct plan *p, int fd)
{
	size_t len;
	char *text;

	if (lseek(fd, 0, SEEK_SET) < 0 || (text = am_read_fd(fd, ENV_MAX, &len)) == NULL)
		fail(FAULT, "--env-fd: %s", strerror(errno));
	p->n_env = 0;
	p->env[0] = NULL;
	for (char *s = text; s < text + len; s += strlen(s) + 1)
		add_env(p, s);
}

static void
policy_from(struct plan *p, int fd, const char *name)
{
	char why[512], *text;
	size_t len;

	/* From the start: the descriptor is shared with the next command that enters. */
	if (lseek(fd, 0, SEEK_SET) < 0 && errno != ESPIPE)
		fail(FAULT, "%s: %s", name, strerror(errno));
	if ((text = am_read_fd(fd, AM_YAML_MAX, &len)) == NULL)
		fail(FAULT, "%s: %s", name, strerror(errno));
	ams_policy_free(&p->policy);
	if (ams_policy_parse(text, len, &p->policy, why) != AMS_POLICY_FINE)
		fail(FAULT, "%s: %s", name, why);
	free(text);
}

/* ---- giving up ---- */

/* One packet with our process id, as credentials, and a descriptor unless it is -1. */
static void
send_word(const char *word, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { (char *)(uintptr_t)word, strlen(word) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = sizeof control;
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	if (sendmsg(status_fd, &msg, MSG_NOSIGNAL) < 0)
		fail(FAULT, "--status-fd: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void
allow(struct am_landlock *l, const struct plan *p, const char *const *paths, size_t n, int writable, size_t *granted)
{
	for (size_t i = 0; i < n; i++) {
		if (am_landlock_allow(l, paths[i], writable) == 0)
			++*granted;
		else if (errno != ENOENT && errno != ENOTDIR)
			fail(FAULT, "%s: Landlock: %s", am_quotes(paths[i]), strerror(errno));
		else if (!p->entered)
			am_warnx("%s: does not exist: not granted", am_quotes(paths[i]));
	}
}

/* Who the policy asks for; where it names nobody, the caller, but never root. */
static uid_t
wanted_uid(const struct plan *p)
{
	return ams_policy_uid(&p->policy, geteuid() == 0 ? AMS_DEFAULT_ID : geteuid());
}

static gid_t
wanted_gid(const struct plan *p)
{
	return ams_policy_gid(&p->policy, geteuid() == 0 ? AMS_DEFAULT_ID : getegid());
}

static void
check_identity(const struct plan *p)
{
	unsigned uid = geteuid(), gid = getegid();

	if (uid != 0 && (wanted_uid(p) != uid || wanted_gid(p) != gid || getuid() != uid || getgid() != gid))
		fail(FAULT, "the policy asks for %u:%u, but the caller is %u:%u: render it with --run-as %u:%u",
		    (unsigned)wanted_uid(p), (unsigned)wanted_gid(p), uid, gid, uid, gid);
}

static _Noreturn void
confine(const struct plan *p, char *argv[])
{
	struct am_landlock l;
	size_t granted = 0;
	int master = -1, listener = -1, rc;

	check_identity(p);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	setsid();		/* already done by the launcher is as good */
	if (p->tty && (master = ams_give_terminal(&p->size)) < 0)
		fail(FAULT, "/dev/ptmx: a new terminal: %s", strerror(errno));
	if (status_fd >= 0)
		send_word("start", master);
	umask(022);

	if (am_landlock_problem() != NULL)
		fail(FAULT, "%s", am_landlock_problem());
	if (am_landlock_open(&l, AM_SCOPE_ABSTRACT | (p->entered ? 0 : AM_SCOPE_SIGNAL)) != 0)
		fail(FAULT, "Landlock: %s", strerror(errno));
	allow(&l, p, p->policy.read_only, p->policy.n_ro, 0, &granted);
	allow(&l, p, p->policy.read_write, p->policy.n_rw, 1, &granted);
	if (granted == 0)
		fail(FAULT, "the policy: not one of its paths exists");
	ams_give_up_bounds();
	if (ams_become(wanted_uid(p), wanted_gid(p)) != 0)
		fail(FAULT, "%u:%u: cannot be become: %s", (unsigned)wanted_uid(p), (unsigned)wanted_gid(p), strerror(errno));
	if (ams_give_up_capabilities() != 0)
		fail(FAULT, "capabilities: %s", strerror(errno));
	if (am_landlock_enforce(&l) != 0)
		fail(FAULT, "Landlock: %s", strerror(errno));
	if (p->chdir != NULL && chdir(p->chdir) != 0)
		fail(FAULT, "%s: %s", am_quotes(p->chdir), strerror(errno));
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) != 0)
		fail(FAULT, "close_range: %s", strerror(errno));
	ams_reset_signals();
	if ((rc = ams_filter_load(p->show_network ? &listener : NULL)) != 0)
		fail(FAULT, "seccomp: %s: the kernel must have CONFIG_SECCOMP_FILTER", strerror(-rc));
	if (listener >= 0)
		send_word("network", listener);
	if ((rc = ams_set_limits(&p->limits)) >= 0)
		fail(FAULT, "--limit %s: %s", ams_limit_names[rc], strerror(errno));
	environ = p->env;
	execvp(argv[0], argv);
	fail(errno == ENOENT || errno == ENOTDIR ? NOT_FOUND : CANNOT_RUN, "%s: %s", am_quotes(argv[0]), strerror(errno));
}

/* ---- --print ---- */

static void
print_strings(const char *key, const char *const *list, size_t n)
{
	printf(",\"%s\":[", key);
	for (size_t i = 0; i < n && list[i] != NULL; i++) {
		printf("%s\"", i ? "," : "");
		for (const unsigned char *s = (const unsigned char *)list[i]; *s != '\0'; s++)
			printf(*s == '"' || *s == '\\' ? "\\%c" : *s < 0x20 ? "\\u%04x" : "%c", *s);
		putchar('"');
	}
	putchar(']');
}

static int
print_plan(const struct plan *p)
{
	const char *scopes[3] = { NULL }, *lacking[8] = { NULL };
	const char *problem = am_landlock_problem();
	int abi = am_landlock_abi();
	struct am_landlock l = { 0 };
	size_t n = 0;

	if (abi < 0)
		abi = 0;
	else
		am_landlock_open(&l, AM_SCOPE_ABSTRACT | AM_SCOPE_SIGNAL);
	printf("{\"uid\":%u,\"gid\":%u", (unsigned)wanted_uid(p), (unsigned)wanted_gid(p));
	print_strings("read_only", p->policy.read_only, p->policy.n_ro);
	print_strings("read_write", p->policy.read_write, p->policy.n_rw);
	printf(",\"landlock_abi\":%d", abi);
	print_strings("landlock_rights", am_landlock_names(l.handled), SIZE_MAX);
	if (l.fd > 0)
		close(l.fd);
	if (l.scoped & AM_SCOPE_ABSTRACT)
		scopes[n++] = "abstract_unix_socket";
	if (l.scoped & AM_SCOPE_SIGNAL)
		scopes[n++] = "signal";
	print_strings("landlock_scopes", scopes, n);
	for (size_t i = 0; i < AMS_N_LIMITS; i++) {
		printf("%s\"%s\":", i == 0 ? ",\"limits\":{" : ",", ams_limit_names[i]);
		printf(p->limits.max[i] == 0 ? "null" : "%llu", p->limits.max[i]);
	}
	putchar('}');
	print_strings("seccomp_refused", ams_filter_refused, SIZE_MAX);
	print_strings("seccomp_by_argument", ams_filter_by_argument, SIZE_MAX);
	n = 0;
	if (problem != NULL)
		lacking[n++] = problem;
	if (abi < 5)
		lacking[n++] = "control of ioctl on devices (Landlock ABI 5, Linux 6.10)";
	if (abi < 6)
		lacking[n++] = "scopes of signals and abstract sockets (Landlock ABI 6, Linux 6.12)";
	/* not a right this program asks for, but a hole a reader must know of */
	lacking[n++] = "control of connecting to a socket by its path: hide it by mounts";
	print_strings("lacking", lacking, n);
	puts(",\"capabilities\":[],\"no_new_privs\":true}");
	return am_finish(problem == NULL ? AM_OK : AM_PROBLEM);
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "policy", required_argument, NULL, 'p' },
		{ "policy-fd", required_argument, NULL, 'P' },
		{ "env", required_argument, NULL, 'e' },
		{ "env-fd", required_argument, NULL, 'E' },
		{ "chdir", required_argument, NULL, 'c' },
		{ "tty", optional_argument, NULL, 't' },
		{ "limit", required_argument, NULL, 'l' },
		{ "status-fd", required_argument, NULL, 's' },
		{ "show-network", no_argument, NULL, 'w' },
		{ "entered", no_argument, NULL, 'n' },
		{ "print", no_argument, NULL, 'j' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct plan plan = { .size = { .ws_row = 24, .ws_col = 80 } };
	int c, fd, have_policy = 0;

	am_prog = "amap-confine";
	add_env(&plan, (char[]){ "PATH=/usr/local/bin:/usr/bin:/bin" });
	add_env(&plan, (char[]){ "HOME=/" });
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'p':
			if ((fd = strcmp(optarg, "-") == 0 ? dup(0) : open(optarg, O_RDONLY | O_CLOEXEC)) < 0)
				fail(FAULT, "%s: %s", am_quotes(optarg), strerror(errno));
			policy_from(&plan, fd, am_quotes(optarg));
			have_policy = 1;
			close(fd);
			break;
		case 'P':
			policy_from(&plan, number(optarg, "--policy-fd"), "the policy");
			have_policy = 1;
			break;
		case 'e': add_env(&plan, optarg); break;
		case 'E': env_from(&plan, number(optarg, "--env-fd")); break;
		case 'c': plan.chdir = optarg; break;
		case 't':
			plan.tty = 1;
			if (optarg != NULL && sscanf(optarg, "%hux%hu", &plan.size.ws_row, &plan.size.ws_col) != 2)
				fail(FAULT, "--tty: not ROWSxCOLUMNS: %s", am_quotes(optarg));
			break;
		case 'l':
			if (ams_limit_read(&plan.limits, optarg) != 0)
				fail(FAULT, "--limit: not NAME=NUMBER with a known name: %s", am_quotes(optarg));
			break;
		case 's': status_fd = number(optarg, "--status-fd"); break;
		case 'w': plan.show_network = 1; break;
		case 'n': plan.entered = 1; break;
		case 'j': plan.print = 1; break;
		default: am_std_option(c, usage);
		}
	}
	if (!have_policy)
		ams_policy_default(&plan.policy);
	if (plan.print && optind == argc) {
		c = print_plan(&plan);
		ams_policy_free(&plan.policy);
		free(plan.env);
		return c;
	}
	if (plan.print || optind == argc || ((plan.tty || plan.show_network) && status_fd < 0))
		am_usage(usage);
	confine(&plan, argv + optind);
}
