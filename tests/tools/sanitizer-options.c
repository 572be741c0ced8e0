/*
 * Linked into the sanitized build only. Leaks are looked for in the programs
 * that go on running, and in the fuzz targets; the others end with what they took, and the look would
 * be half of what it costs to start one. Not inside a sandbox, where it cannot
 * work: it traces its own threads, and ptrace is refused there.
 */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BEFORE_SET_UP __attribute__((no_sanitize("address", "undefined")))

const char *__asan_default_options(void);

/* 1 when word is somewhere in text. The library's functions are not to be called yet. */
BEFORE_SET_UP static int
holds(const char *text, long len, const char *word)
{
	for (long i = 0; i < len; i++) {
		long n = 0;

		while (word[n] != '\0' && i + n < len && text[i + n] == word[n])
			n++;
		if (word[n] == '\0')
			return 1;
	}
	return 0;
}

BEFORE_SET_UP const char *
__asan_default_options(void)
{
	static char path[4096];
	long n = syscall(SYS_readlink, "/proc/self/exe", path, sizeof path);

	if ((holds(path, n, "/amap-router") || holds(path, n, "/amap-session") || holds(path, n, "/inbox-") ||
	    holds(path, n, "/fuzz/")) && syscall(SYS_faccessat, AT_FDCWD, "/opt/amap/payload", F_OK) != 0)
		return "detect_leaks=1";
	return "detect_leaks=0";
}
