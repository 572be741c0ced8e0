#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "id.h"

/* libbsd asks for the process id at each call: bytes are taken by the handful. */
void
am_random_hex(char *out, size_t bytes)
{
	static const char digit[] = "0123456789abcdef";
	unsigned char raw[32];

	while (bytes > 0) {
		size_t n = bytes < sizeof raw ? bytes : sizeof raw;

		arc4random_buf(raw, n);
		for (size_t i = 0; i < n; i++) {
			*out++ = digit[raw[i] >> 4];
			*out++ = digit[raw[i] & 15];
		}
		bytes -= n;
	}
	*out = '\0';
}

void
am_random_uuid(char out[37])
{
	char hex[33];

	am_random_hex(hex, 16);
	hex[12] = '4';
	hex[16] = "89ab"[arc4random_uniform(4)];
	snprintf(out, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

void
am_timestamp(time_t t, char out[21])
{
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, 21, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

time_t
am_parse_timestamp(const char *s)
{
	static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
	struct tm tm = { 0 };
	char again[21];
	time_t t;

	if (strlen(s) != sizeof form - 1)
		return -1;
	for (size_t i = 0; form[i] != '\0'; i++)
		if (form[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != form[i])
			return -1;
	tm.tm_year = atoi(s) - 1900;
	tm.tm_mon = atoi(s + 5) - 1;
	tm.tm_mday = atoi(s + 8);
	tm.tm_hour = atoi(s + 11);
	tm.tm_min = atoi(s + 14);
	tm.tm_sec = atoi(s + 17);
	t = timegm(&tm);
	am_timestamp(t, again);		/* refuses 31 February and hour 25 */
	return strcmp(s, again) == 0 ? t : -1;
}

long long
am_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
