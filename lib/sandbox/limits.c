#include <stdlib.h>
#include <string.h>

#include "limits.h"

const char *const ams_limit_names[AMS_N_LIMITS] = { "memory", "processes", "files", "time" };

const struct ams_limits ams_limits_default = { .max = { [AMS_PROCESSES] = 512, [AMS_FILES] = 4096 } };

int
ams_limit_read(struct ams_limits *l, const char *word)
{
	size_t len = strcspn(word, "=");
	const char *number = word + len + (word[len] == '=');
	char *end;

	for (size_t i = 0; i < AMS_N_LIMITS; i++) {
		if (strlen(ams_limit_names[i]) != len || strncmp(ams_limit_names[i], word, len) != 0)
			continue;
		if (number[0] < '1' || number[0] > '9')
			return -1;
		l->max[i] = strtoull(number, &end, 10);
		return *end == '\0' ? 0 : -1;
	}
	return -1;
}
