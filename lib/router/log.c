#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "router/log.h"

enum amr_level amr_log_threshold = AM_INFO;

void
amr_log(enum amr_level level, const char *logger, const char *fmt, ...)
{
	static const char *const names[] = { "DEBUG", "INFO", "WARNING", "ERROR" };
	char when[32], text[4096];
	struct timespec now;
	struct tm tm;
	va_list ap;
	int saved = errno;

	if (level < amr_log_threshold)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s,%03ld %s amap_router_local%s: %s\n", when, now.tv_nsec / 1000000, names[level], logger, text);
	errno = saved;
}
