#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"
#include "filter-tables.h"	/* made by filter/compile */

static int
load(const struct sock_filter *table, size_t n, unsigned flags)
{
	struct sock_fprog program = { (unsigned short)n, (struct sock_filter *)(uintptr_t)table };

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int
ams_filter_load(int *listener)
{
	if (listener != NULL) {
		*listener = load(ams_showing, sizeof ams_showing / sizeof ams_showing[0], SECCOMP_FILTER_FLAG_NEW_LISTENER);
		if (*listener >= 0)
			return 0;
		/* A kernel that cannot show calls must still refuse them. */
	}
	return load(ams_refusing, sizeof ams_refusing / sizeof ams_refusing[0], 0) == 0 ? 0 : -errno;
}
