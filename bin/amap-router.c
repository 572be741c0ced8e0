/*
 * amap-router - the trusted side: decides about every request of the fleet
 *
 * Spec router. Its rooms are in lib/router/.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "diag.h"
#include "json.h"
#include "router/lock.h"
#include "router/log.h"
#include "router/loop.h"
#include "router/mounts.h"
#include "router/status.h"

static const char usage[] =
    "usage: amap-router --config FILE run --interval SECONDS | once [--json] |\n"
    "           status [--json | --check | --prometheus] | mounts | check-config\n"
    "  run           serve until SIGTERM; SIGHUP reads the configuration at once\n"
    "  once          handle what is there, then end\n"
    "  status        what the last poll of a running router found\n"
    "  mounts        the directories that a confined router needs, PATH TAB rw|ro\n"
    "  check-config  say whether the configuration is sound\n";

static struct amr_router router = { .state = -1, .lock = -1, .intent_fd = -1, .notify = -1 };

static int
take_lock(void)
{
	char why[512];
	int rc = amr_lock(&router, router.conf->state_dir, why, sizeof why);

	if (rc != 0)
		am_warnx("%s", why);
	return rc > 0 ? AM_PROBLEM : rc < 0 ? AM_TROUBLE : AM_OK;
}

static void
tell_discovery(void)
{
	int n = jv_array_length(jv_copy(router.conf->report));

	for (int i = 0; i < n; i++) {
		jv line = jv_array_get(jv_copy(router.conf->report), i);

		amr_log(AM_WARNING, "", i == 0 ? "discovery:\n%s" : "%s", jv_string_value(line));
		jv_free(line);
	}
}

static int
run(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "interval", required_argument, NULL, 'i' }, { NULL, 0, NULL, 0 }
	};
	double interval = 0;
	char *end;
	int c, rc;

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		if (c != 'i')
			am_usage(usage);
		interval = strtod(optarg, &end);
		if (*end != '\0' || end == optarg || !isfinite(interval) || interval <= 0 || interval > 86400)
			am_diex("--interval %s: not a number of seconds above 0, at most 86400", am_quotes(optarg));
	}
	if (optind < argc || interval == 0)
		am_usage(usage);
	if ((rc = take_lock()) != AM_OK)
		return rc;
	tell_discovery();
	amr_run(&router, interval);
	amr_unlock(&router);
	return AM_OK;
}

static int
once(int argc, char *argv[])
{
	static const struct option longopts[] = { { "json", no_argument, NULL, 'j' }, { NULL, 0, NULL, 0 } };
	int c, json = 0, rc;
	const char *sep = "\n";

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		if (c != 'j')
			am_usage(usage);
		json = 1;
	}
	if (optind < argc)
		am_usage(usage);
	if (json)
		amr_log_threshold = AM_WARNING;
	else
		tell_discovery();
	if ((rc = take_lock()) != AM_OK)
		return rc;
	amr_once(&router);
	amr_unlock(&router);
	if (!json)
		return AM_OK;
	printf("{");
	for (size_t i = 0; i < router.n; i++, sep = ",\n") {
		printf("%s  \"%s\": ", sep, router.inst[i]->name);
		amr_summary_print(stdout, &router, router.inst[i], 0);
	}
	printf(router.n > 0 ? "\n}\n" : "}\n");
	return AM_OK;
}

static int
status(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "json", no_argument, NULL, 'j' }, { "check", no_argument, NULL, 'c' },
		{ "prometheus", no_argument, NULL, 'p' }, { NULL, 0, NULL, 0 }
	};
	int c, json = 0, check = 0, prometheus = 0, healthy;
	char line[256];
	jv doc;

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		switch (c) {
		case 'j': json = 1; break;
		case 'c': check = 1; break;
		case 'p': prometheus = 1; break;
		default: am_usage(usage);
		}
	if (optind < argc)
		am_usage(usage);
	doc = amr_status_read(router.conf->state_dir);
	if (check) {
		healthy = amr_status_health(doc, line, sizeof line);
		fprintf(healthy ? stdout : stderr, "%s\n", line);
		jv_free(doc);
		return healthy ? AM_OK : AM_PROBLEM;
	}
	if (!json && !prometheus)
		amr_status_print(stdout, doc, router.conf);
	if (!jv_is_valid(doc)) {
		am_warnx("%s/status.json: nothing to read; no router has polled yet", am_quotes(router.conf->state_dir));
		return AM_PROBLEM;
	}
	if (json)
		am_put(stdout, jv_copy(doc));
	else if (prometheus)
		amr_status_prometheus(stdout, doc);
	jv_free(doc);
	return AM_OK;
}

static int
mounts(int argc, char *argv[])
{
	(void)argv;
	if (argc > 1)
		am_usage(usage);
	return amr_mounts_print(stdout, router.conf) == 0 ? AM_OK : AM_PROBLEM;
}

static int
check_config(int argc, char *argv[])
{
	(void)argv;
	if (argc > 1)
		am_usage(usage);
	printf("%s: sound, %zu instances\n", am_quotes(router.config_path), router.conf->n);
	return AM_OK;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = { { "config", required_argument, NULL, 'c' }, AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	static const struct command { const char *name; int (*run)(int, char *[]); } commands[] = {
		{ "run", run }, { "once", once }, { "status", status }, { "mounts", mounts }, { "check-config", check_config }
	};
	const struct command *command = NULL;
	char why[512];
	int c;

	am_prog = "amap-router";
	router.line_end = &router.line;
	router.admitted = jv_invalid();
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		if (c == 'c')
			router.config_path = optarg;
		else
			am_std_option(c, usage);
	}
	for (size_t i = 0; optind < argc && i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(argv[optind], commands[i].name) == 0)
			command = &commands[i];
	if (command == NULL || router.config_path == NULL)
		am_usage(usage);
	router.conf = amr_conf_load(router.config_path, NULL, why, sizeof why);
	if (router.conf == NULL) {
		fprintf(stderr, "router: config error: %s: %s\n", am_quotes(router.config_path), why);
		return command->run == mounts ? AM_PROBLEM : AM_TROUBLE;
	}
	argc -= optind;
	argv += optind;
	optind = 1;
	return am_finish(command->run(argc, argv));
}
