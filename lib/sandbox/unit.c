#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "cli.h"
#include "policy.h"
#include "say.h"
#include "supervise.h"

#define KILL_WAIT_MS 10000

int
ams_cli_usage(const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	am_warnx("%s (--help says more)", why);
	return 2;
}

int
ams_cli_print(jv v)
{
	char *text = am_json_text(v, AM_DOCUMENT, NULL);

	fputs(text, stdout);
	free(text);
	jv_free(v);
	return am_finish(0);
}

const char *
ams_name_problem(const char *name)
{
	static char why[80];
	size_t n = strlen(name);

	if (n == 0)
		return "name is required";
	if (n > 19) {
		snprintf(why, sizeof why, "name exceeds maximum length (%zu > 19)", n);
		return why;
	}
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != n)
		return "name must contain only lowercase alphanumeric characters or hyphens";
	if (name[0] == '-' || name[n - 1] == '-')
		return "name must not start or end with a hyphen";
	if (strstr(name, "--") != NULL)
		return "name must not contain consecutive hyphens";
	return NULL;
}

const char *
ams_cli_name(int argc, char *argv[])
{
	int i = argc > 2 && strcmp(argv[1], "--") == 0 ? 2 : 1;

	return argc == i + 1 && (i == 2 || argv[i][0] != '-') ? argv[i] : NULL;
}

int
ams_cli_open(struct ams_cli *cli, const char *name)
{
	int unit = -1;

	if (ams_name_problem(name) == NULL && ams_name_problem(cli->workspace) == NULL)
		unit = ams_unit_open(cli->state, AMS_SANDBOXES, ams_sandbox_key(cli->workspace, name));
	if (unit < 0)
		ams_refuse(AMS_NOT_FOUND, "sandbox not found");
	return unit;
}

/* ---- from a record to a launch ---- */

static char **
words(jv list)
{
	int n = jv_get_kind(list) == JV_KIND_ARRAY ? jv_array_length(jv_copy(list)) : 0;
	char **v = calloc((size_t)n + 1, sizeof *v);

	if (v == NULL)
		abort();
	for (int i = 0; i < n; i++) {
		jv s = jv_array_get(jv_copy(list), i);

		v[i] = strdup(jv_get_kind(s) == JV_KIND_STRING ? jv_string_value(s) : "");
		jv_free(s);
	}
	return v;
}

static char **
pairs(jv env)
{
	int n = jv_get_kind(env) == JV_KIND_OBJECT ? jv_object_length(jv_copy(env)) : 0;
	char **v = calloc((size_t)n + 1, sizeof *v);

	if (v == NULL)
		abort();
	n = 0;
	jv_object_foreach(env, key, value) {
		if (jv_get_kind(value) == JV_KIND_STRING && asprintf(&v[n++], "%s=%s", jv_string_value(key), jv_string_value(value)) < 0)
			abort();
		jv_free(key);
		jv_free(value);
	}
	return v;
}

static void
free_words(char **v)
{
	for (size_t i = 0; v[i] != NULL; i++)
		free(v[i]);
	free(v);
}

static char **
words_of(jv record, const char *key)
{
	jv list = am_get(record, key, JV_KIND_ARRAY);
	char **v = words(list);

	jv_free(list);
	return v;
}

static int
place_mounts(jv record, struct ams_launch *l)
{
	jv list = am_get(record, "mounts", JV_KIND_ARRAY);
	size_t n = jv_is_valid(list) ? (size_t)jv_array_length(jv_copy(list)) : 0;
	struct ams_mount *m = calloc(n + 1, sizeof *m);
	const char *kind = am_str(record, "kind"), *image = am_str(record, "image"), *name = am_str(record, "name");
	int rc;

	if (m == NULL)
		abort();
	for (size_t i = 0; i < n; i++) {
		jv row = jv_array_get(jv_copy(list), (int)i), ro = jv_object_get(jv_copy(row), jv_string("read_only"));

		m[i].source = am_str(row, "source");
		m[i].target = am_str(row, "target");
		m[i].writable = jv_get_kind(ro) == JV_KIND_FALSE;
		jv_free(ro);
		jv_free(row);		/* the list keeps its own */
		if (m[i].source == NULL || m[i].target == NULL) {
			snprintf(l->why, sizeof l->why, "record.json: a mount without source or target");
			n = (size_t)-1;
			break;
		}
	}
	if (n == (size_t)-1)
		rc = -1;
	else if (strcmp(kind, "service") == 0)
		rc = ams_launch_service(l, m, n);
	else
		rc = ams_launch_image(l, image != NULL ? image : "host", name, m, n);
	free(m);
	jv_free(list);
	return rc;
}

/* The words of the record for amap-confine: memory is left to the cgroup where there is one. */
static char **
limit_words(jv record, struct ams_launch *l)
{
	char **v = words_of(record, "limits");
	const char *kind = am_str(record, "kind");
	size_t n = 0;

	l->no_cgroup = "a service has none";
	l->expendable = strcmp(kind, "sandbox") == 0;
	if (l->expendable)
		l->cgroup_home = ams_cgroup_home(&l->no_cgroup);
	for (size_t i = 0; v[i] != NULL; i++) {
		ams_limit_read(&l->limits, v[i]);
		if (l->cgroup_home != NULL && strncmp(v[i], "memory=", 7) == 0)
			free(v[i]);
		else
			v[n++] = v[i];
	}
	v[n] = NULL;
	return v;
}

int
ams_unit_launch(int state, int unit, jv record, struct ams_launch *l)
{
	char *text, **env, **command, **limits, why[512];
	const char *restart = am_str(record, "restart_policy"), *kind = am_str(record, "kind");
	struct ams_policy policy;
	jv v = am_get(record, "tty", JV_KIND_TRUE);
	size_t len;
	int rc;

	memset(l, 0, sizeof *l);
	if (kind == NULL || am_str(record, "name") == NULL) {
		snprintf(l->why, sizeof l->why, "record.json: not a record: delete it and create it anew");
		jv_free(v);
		return -1;
	}
	l->state = state;
	l->unit = unit;
	l->tty = jv_is_valid(v);
	jv_free(v);
	snprintf(l->restart, sizeof l->restart, "%s", restart == NULL ? "never" : restart);
	if ((text = am_read_regular(unit, "policy.yaml", AM_YAML_MAX, &len)) == NULL ||
	    (l->policy = am_open_regular(unit, "policy.yaml", AM_YAML_MAX)) < 0) {
		snprintf(l->why, sizeof l->why, "policy.yaml: %s", strerror(errno));
		return -1;
	}
	rc = ams_policy_parse(text, len, &policy, why) != AMS_POLICY_FINE ? -1 : 0;
	free(text);
	if (rc != 0) {
		snprintf(l->why, sizeof l->why, "policy.yaml: %.480s", why);
		return -1;
	}
	rc = ams_launch_identity(l, policy.user, policy.group);
	ams_policy_free(&policy);
	limits = limit_words(record, l);
	if (rc != 0 || place_mounts(record, l) != 0) {
		free_words(limits);
		return -1;
	}
	v = am_get(record, "env", JV_KIND_OBJECT);
	env = pairs(v);
	jv_free(v);
	command = words_of(record, "command");
	if ((l->env = ams_launch_env(env)) < 0) {
		snprintf(l->why, sizeof l->why, "environment: %s", strerror(errno));
		rc = -1;
	} else {
		rc = ams_launch_command(l, kind != NULL && strcmp(kind, "service") == 0 ? NULL : AMS_WORKDIR, limits, command);
	}
	free_words(env);
	free_words(command);
	free_words(limits);
	return rc;
}

/* ---- with a supervisor ---- */

const char *
ams_wait_ready(int report, int timeout_s)
{
	static char word[1024];
	struct pollfd p = { report, POLLIN, 0 };
	ssize_t n;
	int rc;

	while ((rc = poll(&p, 1, timeout_s * 1000)) < 0 && errno == EINTR)
		;
	if (rc == 0)
		return "";
	n = read(report, word, sizeof word - 1);
	if (n <= 0)
		return "its supervisor died";
	word[n] = '\0';
	return strcmp(word, "R") == 0 ? NULL : word;
}

/* Kills and waits, if it still is that process. */
static void
kill_exactly(const struct ams_proc *who)
{
	struct pollfd p = { ams_proc_open(who), POLLIN, 0 };

	if (p.fd < 0)
		return;
	syscall(SYS_pidfd_send_signal, p.fd, SIGKILL, NULL, 0);
	poll(&p, 1, KILL_WAIT_MS);
	close(p.fd);
}

/*
 * A supervisor killed in the instant in which bubblewrap makes the namespaces
 * can leave a child of that which waits for ever. It still has bubblewrap's
 * environment, which names the unit.
 */
static int
kill_marked(int unit)
{
	DIR *d = opendir("/proc");
	char mark[64], path[300], text[4096];
	struct dirent *e;
	int fd, found = 0;
	ssize_t n;

	ams_launch_mark(unit, mark, sizeof mark);
	while (d != NULL && (e = readdir(d)) != NULL) {
		struct ams_proc who;

		snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || ams_proc_look((pid_t)atol(e->d_name), &who, NULL) != 0 ||
		    (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
			continue;
		n = read(fd, text, sizeof text);
		close(fd);
		if (n > 0 && memmem(text, (size_t)n, mark, strlen(mark) + 1) != NULL) {
			kill_exactly(&who);
			found = 1;
		}
	}
	if (d != NULL)
		closedir(d);
	return found;
}

void
ams_unit_halt(int unit, int grace_s)
{
	struct ams_run run;
	struct pollfd p = { -1, POLLIN, 0 };

	ams_unit_run(unit, &run);
	if ((p.fd = ams_proc_open(&run.supervisor)) >= 0) {
		syscall(SYS_pidfd_send_signal, p.fd, SIGTERM, NULL, 0);
		if (poll(&p, 1, grace_s * 1000) > 0) {
			close(p.fd);
			return;
		}
		close(p.fd);
		/* everything below it dies with it */
		kill_exactly(&run.supervisor);
	} else if (!run.orphaned) {
		return;
	}
	kill_exactly(&run.init);
	/* again, because what is killed may have had a child while the list was read */
	while (kill_marked(unit))
		;
	if (run.cgroup[0] != '\0')
		ams_cgroup_remove(run.cgroup);
}
