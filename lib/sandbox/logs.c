#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "cli.h"
#include "record.h"
#include "say.h"

static const char *const levels[] = { "error", "warn", "info", "debug", "trace", NULL };

/* Seconds of "5m", "30s", "2h", "1d"; -1 when it is none. */
static double
span(const char *s)
{
	char *end;
	double n = strtod(s, &end);

	if (end == s || n < 0 || end[0] == '\0' || end[1] != '\0')
		return -1;
	switch (*end) {
	case 's': return n;
	case 'm': return n * 60;
	case 'h': return n * 3600;
	case 'd': return n * 86400;
	default: return -1;
	}
}

struct view {
	long lines;
	double since;		/* epoch */
	int source;		/* g, s, or a */
	size_t level;
};

/* "[123.456] [sandbox] [INFO ] ..."; no sscanf, which would measure all that follows at every line */
static int
shown(const struct view *v, const char *line)
{
	double when = line[0] == '[' ? strtod(line + 1, (char **)&line) : 0;

	if (strncmp(line, "] [", 3) != 0 || when < v->since || (v->source != 'a' && line[3] != v->source))
		return 0;
	if (strnlen(line, 3 + 7 + 3 + 5) < 3 + 7 + 3 + 5)
		return 0;
	line += 3 + 7 + 3;
	for (size_t i = 0; levels[i] != NULL; i++)
		if (strncasecmp(line, levels[i], 4) == 0)
			return i <= v->level;
	return v->level >= 2;		/* OCSF counts as info */
}

static void
print_log(int unit, const struct view *v)
{
	size_t len = 0;
	char *text = ams_ring_last(unit, "log", 2 * AMS_RING_MAX, &len), *line, *next;
	long skip = 0;

	if (text == NULL)
		return;
	for (line = text; *line != '\0'; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		skip += shown(v, line);
	}
	for (line = text; *line != '\0'; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (shown(v, line) && skip-- <= v->lines)
			fwrite(line, 1, (size_t)(next - line), stdout);
	}
	free(text);
}

/* What has come since the last time; a line that is not whole yet is left for the next. */
static void
print_new(FILE *fp, const struct view *v)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	clearerr(fp);
	while ((n = getline(&line, &cap, fp)) > 0) {
		if (line[n - 1] != '\n') {
			fseek(fp, -n, SEEK_CUR);
			break;
		}
		if (shown(v, line))
			fputs(line, stdout);
	}
	free(line);
}

/* Follows the growing file; a new one begins when the old is full, and is read when nothing more comes there. */
static int
follow(int unit, const struct view *v)
{
	struct timespec nap = { 0, 200000000 };
	FILE *fp = NULL;
	ino_t ino = 0;

	for (;;) {
		int fd = am_open_regular(unit, "log", 4 * AMS_RING_MAX), first = fp == NULL, there;
		struct stat st;

		there = fd >= 0 && fstat(fd, &st) == 0;
		if (!first)
			print_new(fp, v);
		if (there && (first || st.st_ino != ino)) {
			if (!first)
				fclose(fp);
			if ((fp = fdopen(fd, "r")) == NULL)
				break;
			fd = -1;
			ino = st.st_ino;
			if (first)
				fseek(fp, 0, SEEK_END);
			print_new(fp, v);
		}
		if (fd >= 0)
			close(fd);
		/* deleted, or for a moment between the old one and the new one */
		if (!there && (fstat(unit, &st) != 0 || st.st_nlink == 0))
			break;
		if (fflush(stdout) != 0)
			break;
		nanosleep(&nap, NULL);
	}
	return am_finish(0);
}

int
ams_cli_logs(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "lines", required_argument, NULL, 'n' },
		{ "tail", no_argument, NULL, 't' },
		{ "since", required_argument, NULL, 's' },
		{ "source", required_argument, NULL, 'S' },
		{ "level", required_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 }
	};
	struct view v = { 200, 0, 'a', 4 };
	int c, tail = 0, unit;
	struct timespec now;
	double ago;
	char *end;

	optind = 0;
	while ((c = getopt_long(argc, argv, "n:", longopts, NULL)) != -1) {
		switch (c) {
		case 'n':
			v.lines = strtol(optarg, &end, 10);
			if (*optarg < '0' || *optarg > '9' || *end != '\0')
				return ams_cli_usage("-n: not a number of lines: %s", am_quotes(optarg));
			break;
		case 't': tail = 1; break;
		case 's':
			if ((ago = span(optarg)) < 0)
				return ams_cli_usage("--since: not like 30s, 5m, 2h or 1d: %s", am_quotes(optarg));
			clock_gettime(CLOCK_REALTIME, &now);
			v.since = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - ago;
			break;
		case 'S':
			if (strcmp(optarg, "gateway") != 0 && strcmp(optarg, "sandbox") != 0 && strcmp(optarg, "all") != 0)
				return ams_cli_usage("--source: must be gateway, sandbox or all: %s", am_quotes(optarg));
			v.source = optarg[0];
			break;
		case 'l':
			for (v.level = 0; levels[v.level] != NULL && strcmp(levels[v.level], optarg) != 0; v.level++)
				;
			if (levels[v.level] == NULL)
				return ams_cli_usage("--level: must be error, warn, info, debug or trace: %s", am_quotes(optarg));
			break;
		default: return ams_cli_usage("logs: usage");
		}
	}
	if (optind + 1 != argc)
		return ams_cli_usage("logs: needs one NAME");
	/* a service has no workspace; a sandbox of the same name goes first */
	unit = ams_name_problem(argv[optind]) == NULL
	    ? ams_unit_open(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, argv[optind])) : -1;
	if (unit < 0)
		unit = ams_unit_open(cli->state, AMS_SERVICES, argv[optind]);
	if (unit < 0)
		return ams_refuse(AMS_NOT_FOUND, "sandbox not found");
	print_log(unit, &v);
	if (tail)
		return follow(unit, &v);
	close(unit);
	return am_finish(0);
}
