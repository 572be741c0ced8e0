#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "router/log.h"
#include "router/roster.h"
#include "router/status.h"

static int
by_address(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *
document(const struct amr_router *r, size_t *len)
{
	char **addresses = calloc(r->conf->n + 1, sizeof *addresses), out[AM_ADDRESS_MAX], ts[21], number[32], *text = NULL;
	FILE *fp = open_memstream(&text, len);

	if (addresses == NULL || fp == NULL)
		abort();
	for (size_t i = 0; i < r->conf->n; i++)
		if ((addresses[i] = strdup(amr_conf_address_of(r->conf, r->conf->members[i].name, out))) == NULL)
			abort();
	qsort(addresses, r->conf->n, sizeof *addresses, by_address);
	am_timestamp(time(NULL), ts);
	fprintf(fp, "{\n  \"contract_version\": \"2\",\n  \"router\": \"%s\",\n  \"written_at\": \"%s\",\n",
	    amr_conf_address_of(r->conf, NULL, out), ts);
	if (r->interval > 0)
		fprintf(fp, "  \"interval_s\": %s,\n", amr_float(r->interval, number));
	fprintf(fp, "  \"members\": [");
	for (size_t i = 0; i < r->conf->n; i++) {
		fprintf(fp, "%s\n    {\n      \"address\": \"%s\",\n      \"state\": \"admitted\"\n    }", i > 0 ? "," : "", addresses[i]);
		free(addresses[i]);
	}
	fprintf(fp, "%s]\n}\n", r->conf->n > 0 ? "\n  " : "");
	free(addresses);
	if (fclose(fp) != 0)
		abort();
	return text;
}

static void
tell(struct amr_router *r, enum amr_level level, const char *outcome, int always)
{
	if (always || r->roster_told == NULL || strcmp(r->roster_told, outcome) != 0)
		amr_log(level, "", "roster %s", outcome);
	free(r->roster_told);
	if ((r->roster_told = strdup(outcome)) == NULL)
		abort();
}

static const char *
skip(const struct amr_conf *c)
{
	if (c->instances_dir == NULL)
		return "skipped: the fleet is authored, not discovered";
	if (c->domain == NULL)
		return "skipped: the fleet has no domain";
	if (c->verdict_missing)
		return "skipped: the verdict is unavailable";
	if (c->instances_unreadable)
		return "skipped: the instances cannot be listed";
	return NULL;
}

void
amr_roster_publish(struct amr_router *r)
{
	const char *why = skip(r->conf), *slash;
	char *dir, *text, outcome[256];
	size_t len;
	int fd, rc;

	if (why != NULL) {
		tell(r, AM_WARNING, why, 0);
		return;
	}
	slash = strrchr(r->conf->selected_json, '/');
	if (asprintf(&dir, "%.*s/roster", (int)(slash - r->conf->selected_json), r->conf->selected_json) < 0)
		abort();
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	free(dir);
	rc = fd;
	if (fd >= 0) {
		text = document(r, &len);
		rc = am_publish(fd, "roster.json", text, len, 0644);
		free(text);
	}
	if (rc >= 0) {
		tell(r, AM_INFO, "written", 0);
	} else if (errno == ENOENT || errno == EROFS || errno == EACCES || errno == EPERM) {
		snprintf(outcome, sizeof outcome, "skipped: %s", fd < 0 && errno == ENOENT ? "its directory is absent" : strerror(errno));
		tell(r, AM_WARNING, outcome, 0);
	} else {
		snprintf(outcome, sizeof outcome, "not written: %s", strerror(errno));
		tell(r, AM_ERROR, outcome, 1);
	}
	if (fd >= 0)
		close(fd);
}
