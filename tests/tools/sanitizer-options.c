/*
 * Linked into the sanitized build only. Inside a sandbox the leak checker
 * cannot work (it traces its own threads, and ptrace is refused there), so
 * it is off where the payload is mounted and on everywhere else.
 */
#include <unistd.h>

const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return access("/opt/amap/payload", F_OK) == 0 ? "detect_leaks=0" : "detect_leaks=1";
}
