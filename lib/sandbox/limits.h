/*
 * limits - what one sandbox may use at most.
 *
 * Kept and handed on as words "NAME=NUMBER". The kernel is told by setrlimit(2)
 * in amap-confine, and by a cgroup where one may be made (cgroup.h), which holds
 * memory and processes of the whole sandbox together.
 */
#ifndef AMS_LIMITS_H
#define AMS_LIMITS_H

enum { AMS_MEMORY, AMS_PROCESSES, AMS_FILES, AMS_TIME, AMS_N_LIMITS };

struct ams_limits {
	unsigned long long max[AMS_N_LIMITS];	/* bytes, number, number, seconds; 0: none */
};

extern const char *const ams_limit_names[AMS_N_LIMITS];

/*
 * Who asks for nothing gets these. No memory limit is among them: setrlimit
 * counts what a process reserves, and runtimes reserve without end.
 */
extern const struct ams_limits ams_limits_default;

/* "NAME=NUMBER"; -1 when it is none. */
int ams_limit_read(struct ams_limits *l, const char *word);

#endif
