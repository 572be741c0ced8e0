/*
 * compile - the filter of filter.h as C tables, for make to build in.
 *
 * Run once, by make: whatever is started in a sandbox would wait for it else.
 * Two tables of struct sock_filter: ams_refusing, and ams_showing, which also
 * holds up what may open a connection.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <seccomp.h>

#include "../filter.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static int
refuse_by_argument(scmp_filter_ctx f)
{
	static const unsigned long namespaces[] = {
		CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS,
		CLONE_NEWCGROUP, CLONE_NEWTIME
	};
	/* The kernel looks at 32 bits of the request: so does the comparison. */
	static const unsigned long ioctls[] = { TIOCSTI, 0x541c /* TIOCLINUX */, TIOCSETD };
	const unsigned eperm = SCMP_ACT_ERRNO(EPERM);
	int rc = 0;

	for (size_t i = 0; i < sizeof namespaces / sizeof namespaces[0]; i++) {
		struct scmp_arg_cmp flag = SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]);

		rc |= seccomp_rule_add_array(f, eperm, SCMP_SYS(unshare), 1, &flag);
		/* CLONE_NEWTIME lies among the exit signal's bits, clone does not know it */
		if (namespaces[i] != CLONE_NEWTIME)
			rc |= seccomp_rule_add_array(f, eperm, SCMP_SYS(clone), 1, &flag);
	}
	for (size_t i = 0; i < sizeof ioctls / sizeof ioctls[0]; i++)
		rc |= seccomp_rule_add(f, eperm, SCMP_SYS(ioctl), 1,
		    SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, ioctls[i]));
	rc |= seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(execveat), 1, SCMP_A4(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffu, PR_SET_SECCOMP));

	for (unsigned family = 0; family <= AF_NETLINK; family++)
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
			rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, NETLINK_ROUTE));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_INET), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_RAW));
	rc |= seccomp_rule_add(f, eperm, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_INET6), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_RAW));
	return rc;
}

/*
 * The family of an address stands in memory, where no filter looks; its length
 * is an argument. So a Unix socket is held up only for a path of just that length.
 */
static int
show_connections(scmp_filter_ctx f)
{
	static const unsigned long lengths[] = { sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6), sizeof(struct sockaddr_storage) };
	int rc = 0;

	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		rc |= seccomp_rule_add(f, SCMP_ACT_NOTIFY, SCMP_SYS(connect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffffu, lengths[i]));
		rc |= seccomp_rule_add(f, SCMP_ACT_NOTIFY, SCMP_SYS(sendto), 1, SCMP_A5(SCMP_CMP_MASKED_EQ, 0xffffffffu, lengths[i]));
	}
	return rc;
}

static scmp_filter_ctx
make(int show)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int rc;

	if (f == NULL)
		errx(1, "libseccomp has no memory");
	rc = refuse_by_argument(f);
	if (show)
		rc |= show_connections(f);
	for (size_t i = 0; ams_filter_refused[i] != NULL; i++) {
		int nr = seccomp_syscall_resolve_name(ams_filter_refused[i]);

		/* a name that this library or architecture has no number for cannot be called by it */
		if (nr >= 0)
			rc |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), nr, 0);
	}
	/* open_tree_attr (Linux 6.15), younger than the library */
	rc |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), 467, 0);
	if (rc != 0)
		errx(1, "libseccomp refuses a rule");
	return f;
}

static void
print(const char *name, int show)
{
	scmp_filter_ctx f = make(show);
	FILE *fp = tmpfile();
	struct sock_filter i;

	if (fp == NULL || seccomp_export_bpf(f, fileno(fp)) != 0)
		err(1, "a scratch file");
	seccomp_release(f);
	rewind(fp);
	printf("static const struct sock_filter %s[] = {\n", name);
	while (fread(&i, sizeof i, 1, fp) == 1)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", i.code, i.jt, i.jf, i.k);
	printf("};\n");
	fclose(fp);
}

int
main(void)
{
	print("ams_refusing", 0);
	print("ams_showing", 1);
	if (fflush(stdout) != 0 || ferror(stdout))
		err(1, "standard output");
	return 0;
}
