#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "giveup.h"

int
ams_give_terminal(const struct winsize *size)
{
	int master, slave, zero = 0;

	if ((master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0 || ioctl(master, TIOCSPTLCK, &zero) != 0 ||
	    (slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY)) < 0)
		return -1;
	if (ioctl(slave, TIOCSCTTY, 0) != 0 || ioctl(slave, TIOCSWINSZ, size) != 0)
		return -1;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(slave, fd) < 0)
			return -1;
	if (slave > 2)
		close(slave);
	return master;
}

int
ams_become(uid_t uid, gid_t gid)
{
	if (geteuid() != 0) {
		setgroups(0, NULL);	/* without the right to, they stay the caller's */
		return 0;
	}
	return setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0 ? -1 : 0;
}

void
ams_give_up_bounds(void)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
			break;
}

int
ams_give_up_capabilities(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 || syscall(SYS_capset, &head, none) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? -1 : 0;
}

void
ams_reset_signals(void)
{
	struct sigaction def = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &def, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int
ams_set_limits(const struct ams_limits *l)
{
	/* RLIMIT_DATA, not RLIMIT_AS: runtimes reserve address space that they never use */
	static const int resources[AMS_N_LIMITS] = { RLIMIT_DATA, RLIMIT_NPROC, RLIMIT_NOFILE, RLIMIT_CPU };

	for (int i = 0; i < AMS_N_LIMITS; i++) {
		struct rlimit r = { l->max[i], l->max[i] }, now;

		if (r.rlim_max == 0)
			continue;
		if (getrlimit(resources[i], &now) == 0 && now.rlim_max < r.rlim_max)
			r.rlim_cur = r.rlim_max = now.rlim_max;
		if (setrlimit(resources[i], &r) != 0)
			return i;
	}
	return -1;
}
