/*
 * pretend - run a program that sees another kernel (for tests)
 *
 * usage: pretend RESULT CALL [MASK] -- COMMAND [ARG]...
 *
 * CALL returns RESULT, an errno when negative, without being made; with MASK
 * only when one of these bits is set in its first argument, or for a call that
 * asks for a version (landlock_create_ruleset) when its third argument is 1.
 * RESULT "kill": whoever makes the call is killed before it is made.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seccomp.h>

static int
load(long result, const char *call, unsigned long mask, int notify)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int nr = seccomp_syscall_resolve_name(call);
	unsigned action = notify ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(-result);
	struct scmp_arg_cmp bits = SCMP_A0(SCMP_CMP_MASKED_EQ, mask, mask), version = SCMP_A2(SCMP_CMP_EQ, 1);

	if (f == NULL || nr < 0)
		return -1;
	if (strcmp(call, "landlock_create_ruleset") == 0)
		seccomp_rule_add_array(f, action, nr, 1, &version);
	else if (mask != 0)
		seccomp_rule_add_array(f, action, nr, 1, &bits);
	else
		seccomp_rule_add(f, action, nr, 0);
	if (seccomp_load(f) != 0)
		return -1;
	return notify ? seccomp_notify_fd(f) : 0;
}

/* A child of this process runs the command; a second one answers the calls. */
static void
answer(int fd, long result, int deadly)
{
	struct seccomp_notif *ask;
	struct seccomp_notif_resp *say;

	seccomp_notify_alloc(&ask, &say);
	for (;;) {
		memset(ask, 0, sizeof *ask);
		if (seccomp_notify_receive(fd, ask) != 0)
			continue;
		if (deadly)
			kill((pid_t)ask->pid, SIGKILL);
		say->id = ask->id;
		say->val = result;
		say->error = 0;
		say->flags = 0;
		seccomp_notify_respond(fd, say);
	}
}

int
main(int argc, char *argv[])
{
	long result = argc > 4 ? atol(argv[1]) : 0;
	unsigned long mask = argc > 4 && strcmp(argv[3], "--") != 0 ? strtoul(argv[3], NULL, 0) : 0;
	char **command = argv + (argc > 4 && strcmp(argv[3], "--") == 0 ? 4 : 5);
	int fd, status, deadly = argc > 4 && strcmp(argv[1], "kill") == 0;
	pid_t pid, helper;

	if (argc < 5)
		return 2;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if ((fd = load(result, argv[2], mask, result >= 0)) < 0)
		return 2;
	if (result < 0) {
		execvp(command[0], command);
		return 127;
	}
	if ((pid = fork()) == 0) {
		execvp(command[0], command);
		_exit(127);
	}
	if ((helper = fork()) == 0)
		answer(fd, result, deadly);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kill(helper, 9);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
