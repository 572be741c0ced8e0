#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "../id.h"
#include "../path.h"
#include "cli.h"
#include "preflight.h"
#include "say.h"
#include "supervise.h"

#define MOUNTS_MAX (1u << 20)
#define READY_S 30

/* A service's name is the operator's word, as docker takes it. */
static int
valid_name(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= 63 && s[0] != '-' && s[0] != '.' &&
	    strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n;
}

/*
 * The table of mounts: PATH, a tab, ro or rw; and after another tab, where it
 * is to be seen, when that is not the same path. Each of these once, parents
 * first, so that what stands later is mounted over what stands before.
 */
static jv
read_mounts(const char *path)
{
	char *text, *line, *next, *access, *target;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), number = 0;
	jv list = jv_array();
	size_t len;

	if (fd < 0 || (text = am_read_fd(fd, MOUNTS_MAX, &len)) == NULL) {
		am_warn("%s", am_quotes(path));
		return jv_invalid();
	}
	close(fd);
	for (line = text; line < text + len; line = next) {
		const char *why;

		number++;
		if ((next = memchr(line, '\n', (size_t)(text + len - line))) == NULL) {
			am_warnx("%s:%d: the last line is cut", am_quotes(path), number);
			goto bad;
		}
		*next++ = '\0';
		if ((access = strchr(line, '\t')) != NULL)
			*access++ = '\0';
		target = line;
		if (access != NULL && strlen(access) > 3 && access[2] == '\t') {
			access[2] = '\0';
			target = access + 3;
		}
		if (access == NULL || (strcmp(access, "ro") != 0 && strcmp(access, "rw") != 0)) {
			am_warnx("%s:%d: not PATH, a tab, and ro or rw: %s", am_quotes(path), number, am_quotes(line));
			goto bad;
		}
		if ((why = line[0] != '/' ? "it is not absolute" : am_path_problem(target)) != NULL) {
			am_warnx("%s:%d: %s: %s", am_quotes(path), number, am_quotes(line[0] != '/' ? line : target), why);
			goto bad;
		}
		jv_array_foreach(list, i, row) {
			int twice = strcmp(am_str(row, "target"), target) == 0, late = am_path_under(am_str(row, "target"), target);

			jv_free(row);
			if (twice || late) {
				am_warnx("%s:%d: %s: %s", am_quotes(path), number, am_quotes(target),
				    twice ? "stands twice" : "stands after what lies beneath it");
				goto bad;
			}
		}
		list = jv_array_append(list, am_set(am_set_str(am_set_str(jv_object(), "source", line), "target", target),
		    "read_only", strcmp(access, "ro") == 0 ? jv_true() : jv_false()));
	}
	free(text);
	return list;
bad:
	free(text);
	jv_free(list);
	return jv_invalid();
}

static int
is_rw(jv row)
{
	jv ro = jv_object_get(jv_copy(row), jv_string("read_only"));
	int rw = jv_get_kind(ro) == JV_KIND_FALSE;

	jv_free(ro);
	return rw;
}

/*
 * Who a service of root's runs as: whoever owns what it may write. Nothing
 * runs as root here, and a router must own what it publishes.
 */
static int
identity(jv mounts, const char *run_as, uid_t *uid, gid_t *gid)
{
	unsigned long u, g;
	int found = 0;
	char more;

	*uid = geteuid();
	*gid = getegid();
	if (run_as != NULL) {
		if (sscanf(run_as, "%lu:%lu%c", &u, &g, &more) != 2 || u == 0 || g == 0 || u > 4294967294ul || g > 4294967294ul)
			return ams_cli_usage("--run-as: not UID:GID, both from 1 to 4294967294: %s", am_quotes(run_as));
		*uid = (uid_t)u;
		*gid = (gid_t)g;
		return 0;
	}
	if (geteuid() != 0)
		return 0;
	jv_array_foreach(mounts, i, row) {
		struct stat st;

		if (is_rw(row) && stat(am_str(row, "source"), &st) == 0) {
			if (found && (st.st_uid != *uid || st.st_gid != *gid))
				*uid = 0;
			else if (!found) {
				*uid = st.st_uid;
				*gid = st.st_gid;
			}
			found = 1;
		}
		jv_free(row);
	}
	if (!found || *uid == 0 || *gid == 0) {
		am_warnx("service: its writable mounts do not all belong to one user and group other than root: give --run-as UID:GID");
		return 1;
	}
	return 0;
}

static char *
policy_text(jv mounts, uid_t uid, gid_t gid, size_t *len)
{
	static const char *const ro[] = { "/bin", "/usr", "/lib", "/lib64", "/proc", "/etc", "/dev/urandom" };
	char *text;
	FILE *fp = open_memstream(&text, len);

	if (fp == NULL)
		abort();
	fputs("version: 1\nfilesystem_policy:\n  include_workdir: false\n  read_only:\n", fp);
	for (size_t i = 0; i < sizeof ro / sizeof ro[0]; i++)
		fprintf(fp, "    - \"%s\"\n", ro[i]);
	for (int rw = 0; rw < 2; rw++) {
		if (rw)
			fputs("  read_write:\n    - \"/dev/null\"\n", fp);
		jv_array_foreach(mounts, i, row) {
			/* valid paths hold nothing that double quotes would not keep */
			if (is_rw(row) == rw)
				fprintf(fp, "    - \"%s\"\n", am_str(row, "target"));
			jv_free(row);
		}
	}
	fprintf(fp, "landlock:\n  compatibility: \"hard_requirement\"\nprocess:\n  run_as_user: \"%u\"\n  run_as_group: \"%u\"\n",
	    (unsigned)uid, (unsigned)gid);
	fclose(fp);
	return text;
}

static jv
record(const char *name, jv mounts, const char *restart, char *command[])
{
	char id[37], stamp[21];
	jv v = jv_object(), words = jv_array(), env = jv_object();

	am_random_uuid(id);
	am_timestamp(time(NULL), stamp);
	stamp[10] = ' ';
	stamp[19] = '\0';
	for (; *command != NULL; command++)
		words = jv_array_append(words, jv_string(*command));
	env = am_set_str(env, "PATH", "/usr/local/bin:/usr/bin:/bin");
	env = am_set_str(env, "HOME", "/tmp");
	env = am_set_str(env, "LANG", "C.UTF-8");
	v = am_set_str(v, "kind", "service");
	v = am_set_str(v, "id", id);
	v = am_set_str(v, "name", name);
	v = am_set_str(v, "created_at", stamp);
	v = am_set(v, "command", words);
	v = am_set(v, "tty", jv_false());
	v = am_set(v, "env", env);
	v = am_set(v, "mounts", mounts);
	v = am_set(v, "limits", jv_array());
	return am_set_str(v, "restart_policy", restart);
}

static int
launch_service(struct ams_cli *cli, const char *name, jv rec, const char *policy, size_t policy_len)
{
	struct ams_launch launch = { 0 };
	const char *why;
	char temp[32], *text;
	int unit, report, failed;
	size_t len;

	if (ams_launch_preflight(launch.why) != 0) {
		am_warnx("service %s: %s", name, launch.why);
		return AMS_CANNOT;
	}
	ams_state_sweep(cli->state);
	if ((unit = ams_unit_new(cli->state, temp)) < 0) {
		am_warn("%s: a new service", ams_state_path());
		return 1;
	}
	text = am_json_text(rec, AM_COMPACT, &len);
	failed = ams_unit_put(unit, "policy.yaml", policy, policy_len) != 0 || ams_unit_put(unit, "record.json", text, len) != 0;
	free(text);
	if (failed) {
		am_warn("%s: a new service", ams_state_path());
		goto discard;
	}
	if (ams_unit_launch(cli->state, unit, rec, &launch) != 0) {
		am_warnx("service %s: %s", name, launch.why);
		goto discard;
	}
	if (ams_unit_publish(cli->state, temp, AMS_SERVICES, name) != 0) {
		if (errno == EEXIST || errno == ENOTEMPTY)
			am_warnx("service %s: runs already: stop it first with %s service stop %s", name, am_prog, name);
		else
			am_warn("service %s", name);
		goto discard;
	}
	report = ams_supervise(&launch, "Provisioning");
	ams_launch_free(&launch);
	why = report < 0 ? strerror(errno) : NULL;
	if (why == NULL) {
		ams_unit_sync(unit);
		why = ams_wait_ready(report, READY_S);
	}
	if (why == NULL)
		return 0;
	am_warnx("service %s: %s", name, why[0] != '\0' ? why : "did not start in time");
	ams_unit_halt(unit, AMS_STOP_GRACE);
	ams_unit_remove(cli->state, AMS_SERVICES, name);
	return AMS_CANNOT;
discard:
	ams_launch_free(&launch);
	ams_unit_discard(cli->state, temp);
	return 1;
}

/* A service that ended, or whose supervisor was killed, no longer holds its name. */
static int
clear_ended(struct ams_cli *cli, const char *name)
{
	int unit = ams_unit_open(cli->state, AMS_SERVICES, name);
	struct ams_run run;

	if (unit < 0)
		return 0;
	ams_unit_run(unit, &run);
	close(unit);
	if (run.supervisor.pid > 0) {
		am_warnx("service %s: runs already: stop it first with %s service stop %s", name, am_prog, name);
		return 1;
	}
	return ams_unit_remove(cli->state, AMS_SERVICES, name) != 0 && errno != ENOENT;
}

static int
start(struct ams_cli *cli, int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "mounts", required_argument, NULL, 'm' },
		{ "restart", required_argument, NULL, 'r' },
		{ "run-as", required_argument, NULL, 'u' },
		{ NULL, 0, NULL, 0 }
	};
	const char *name = NULL, *file = NULL, *restart = "never", *run_as = NULL;
	char *policy;
	size_t len;
	jv mounts, rec;
	uid_t uid;
	gid_t gid;
	int c, rc;

	if (argc > 1 && argv[1][0] != '-') {
		name = argv[1];
		argv++;
		argc--;
	}
	optind = 0;
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'm': file = optarg; break;
		case 'r': restart = optarg; break;
		case 'u': run_as = optarg; break;
		default: return ams_cli_usage("service start: usage");
		}
	}
	if (name == NULL || !valid_name(name))
		return ams_cli_usage("service start: needs a NAME of letters, digits, - _ and .");
	if (file == NULL || optind == argc)
		return ams_cli_usage("service start: needs --mounts FILE and a command after --");
	if (strcmp(restart, "never") != 0 && strcmp(restart, "on-failure") != 0 && strcmp(restart, "always") != 0 &&
	    strcmp(restart, "unless-stopped") != 0)
		return ams_cli_usage("--restart: must be never, on-failure, always or unless-stopped: %s", am_quotes(restart));
	mounts = read_mounts(file);
	if (!jv_is_valid(mounts)) {
		jv_free(mounts);
		return 1;
	}
	if ((rc = identity(mounts, run_as, &uid, &gid)) != 0 || (rc = clear_ended(cli, name)) != 0) {
		jv_free(mounts);
		return rc;
	}
	policy = policy_text(mounts, uid, gid, &len);
	rec = record(name, mounts, restart, argv + optind);
	rc = launch_service(cli, name, rec, policy, len);
	free(policy);
	jv_free(rec);
	if (rc != 0)
		return rc;
	printf("\xe2\x9c\x93 Started service %s\n", name);
	return am_finish(0);
}

/* Stopped, it keeps its log; deleted, it keeps nothing. */
static int
stop(struct ams_cli *cli, int argc, char *argv[], int delete)
{
	int unit;

	if (argc != 2 || !valid_name(argv[1]))
		return ams_cli_usage("service %s: needs one NAME", argv[0]);
	if ((unit = ams_unit_open(cli->state, AMS_SERVICES, argv[1])) < 0) {
		am_warnx("service %s: not found", argv[1]);
		return 1;
	}
	ams_unit_halt(unit, AMS_STOP_GRACE + 5);
	close(unit);
	if (delete && ams_unit_remove(cli->state, AMS_SERVICES, argv[1]) != 0) {
		am_warn("service %s", argv[1]);
		return 1;
	}
	printf("\xe2\x9c\x93 %s service %s\n", delete ? "Deleted" : "Stopped", argv[1]);
	return am_finish(0);
}

static int
list_one(int unit, const char *key, void *arg)
{
	struct ams_run run;

	(void)arg;
	ams_unit_run(unit, &run);
	printf("%s\t%s\t%d\n", key, run.phase, (int)run.main.pid);
	return 0;
}

int
ams_cli_service(struct ams_cli *cli, int argc, char *argv[])
{
	if (argc > 1 && strcmp(argv[1], "start") == 0)
		return start(cli, argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "stop") == 0)
		return stop(cli, argc - 1, argv + 1, 0);
	if (argc > 1 && strcmp(argv[1], "delete") == 0)
		return stop(cli, argc - 1, argv + 1, 1);
	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		if (ams_unit_each(cli->state, AMS_SERVICES, list_one, NULL) < 0)
			return ams_fail("%s: %s", ams_state_path(), strerror(errno));
		return am_finish(0);
	}
	return ams_cli_usage("service: must be start, stop, delete or list");
}
