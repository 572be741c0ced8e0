#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../diag.h"
#include "../file.h"
#include "../toml.h"
#include "embedded.h"
#include "say.h"
#include "state.h"

#define TOML_MAX 65536
#define REASONS_MAX 65536

/* ---- the file ---- */

static int
flag(const struct am_toml *table, const char *key)
{
	const struct am_toml *v = am_toml_get(table, key);

	return v != NULL && v->kind == AM_TOML_BOOL && strcmp(v->text, "true") == 0;
}

/* From malloc, or NULL; the key in *wrong when it is there and no string. */
static char *
string(const struct am_toml *table, const char *key, const char **wrong)
{
	const struct am_toml *v = am_toml_get(table, key);

	if (v == NULL)
		return NULL;
	if (v->kind == AM_TOML_STRING)
		return strdup(v->text);
	*wrong = key;
	return NULL;
}

static char **
strings(const struct am_toml *table, const char *key, const char **wrong)
{
	const struct am_toml *list = am_toml_get(table, key), *v;
	char **out;
	size_t n = 0;

	if (list == NULL)
		return NULL;
	for (v = list->first; list->kind == AM_TOML_ARRAY && v != NULL && v->kind == AM_TOML_STRING; v = v->next)
		n++;
	if (list->kind != AM_TOML_ARRAY || v != NULL) {
		*wrong = key;
		return NULL;
	}
	if ((out = calloc(n + 1, sizeof *out)) == NULL)
		abort();
	n = 0;
	for (v = list->first; v != NULL; v = v->next)
		out[n++] = strdup(v->text);
	return out;
}

/* Our own table is ours to be strict about: a key misspelt there would be a limit not set. */
static const char *
own_table(const struct am_toml *own, struct ams_embedded *g)
{
	static const char *const known[] = { "home", "image", "workspaces" };
	const char *wrong = NULL;

	for (const struct am_toml *v = own != NULL ? own->first : NULL; v != NULL; v = v->next) {
		size_t i = 0;

		while (i < sizeof known / sizeof known[0] && strcmp(known[i], v->key) != 0)
			i++;
		if (i == sizeof known / sizeof known[0])
			return v->key;
	}
	g->home = string(own, "home", &wrong);
	g->image = string(own, "image", &wrong);
	g->workspaces = strings(own, "workspaces", &wrong);
	return wrong;
}

int
ams_embedded_read(int state, struct ams_embedded *g)
{
	const struct am_toml *docker;
	struct am_toml *root;
	const char *wrong;
	char why[256], *text;
	size_t len;

	memset(g, 0, sizeof *g);
	if ((text = am_read_regular(state, "gateway.toml", TOML_MAX, &len)) == NULL) {
		if (errno == ENOENT)
			return 0;
		am_warn("%s/gateway.toml", am_quotes(ams_state_path()));
		return -1;
	}
	root = am_toml_parse(text, len, why, sizeof why);
	free(text);
	if (root == NULL) {
		am_warnx("%s/gateway.toml: %s", am_quotes(ams_state_path()), why);
		return -1;
	}
	docker = am_toml_get(am_toml_get(am_toml_get(root, "openshell"), "drivers"), "docker");
	g->allow_driver_config = flag(docker, "allow_driver_config");
	g->enable_bind_mounts = flag(docker, "enable_bind_mounts");
	if ((wrong = own_table(am_toml_get(am_toml_get(root, "amap"), "embedded"), g)) != NULL)
		am_warnx("%s/gateway.toml: [amap.embedded]: %s: unknown, or of another type than it must be",
		    am_quotes(ams_state_path()), am_quotes(wrong));
	am_toml_free(root);
	return wrong != NULL ? -1 : 0;
}

void
ams_embedded_free(struct ams_embedded *g)
{
	for (size_t i = 0; g->workspaces != NULL && g->workspaces[i] != NULL; i++)
		free(g->workspaces[i]);
	free(g->workspaces);
	free(g->home);
	free(g->image);
}

int
ams_embedded_knows(const struct ams_embedded *g, const char *workspace)
{
	if (g->workspaces == NULL)
		return 1;
	for (size_t i = 0; g->workspaces[i] != NULL; i++)
		if (strcmp(g->workspaces[i], workspace) == 0)
			return 1;
	return 0;
}

/* ---- admission ---- */

/* The program beside our own executable: what decides is never searched for on a path. */
static int
beside(char *path, size_t size, const char *name)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (n <= 0)
		return -1;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash == NULL || (size_t)(slash - path) + strlen(name) + 2 > size)
		return -1;
	strcpy(slash + 1, name);
	return 0;
}

/* Feeds text to the child and collects what it answers, both at once, so neither can wait for ever. */
static char *
converse(int to, int from, const char *text, size_t len)
{
	char *answer = malloc(REASONS_MAX + 1);
	size_t n = 0;

	if (answer == NULL)
		abort();
	while (from >= 0) {
		struct pollfd p[2] = { { from, POLLIN, 0 }, { to, POLLOUT, 0 } };
		ssize_t got;

		if (poll(p, to >= 0 ? 2 : 1, -1) < 0 && errno != EINTR)
			break;
		if (to >= 0 && p[1].revents != 0) {
			got = len > 0 ? write(to, text, len) : 0;
			if (got > 0) {
				text += got;
				len -= (size_t)got;
			}
			if (len == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
				close(to);
				to = -1;
			}
		}
		if (p[0].revents != 0) {
			char spill[4096];

			got = n < REASONS_MAX ? read(from, answer + n, REASONS_MAX - n) : read(from, spill, sizeof spill);
			if (got == 0 || (got < 0 && errno != EINTR))
				break;
			if (got > 0 && n < REASONS_MAX)
				n += (size_t)got;
		}
	}
	if (to >= 0)
		close(to);
	close(from);
	while (n > 0 && answer[n - 1] == '\n')
		n--;
	answer[n] = '\0';
	return answer;
}

/* Every reason, as the interceptor of a real gateway puts them; NULL when the answer is none. From malloc. */
static char *
reasons(const char *answer)
{
	jv v = am_json_parse(answer, strlen(answer)), list = am_get(v, "reasons", JV_KIND_ARRAY);
	char *text = NULL;
	size_t len;
	FILE *fp;

	if (jv_is_valid(list) && jv_array_length(jv_copy(list)) > 0 && (fp = open_memstream(&text, &len)) != NULL) {
		fputs("amap-openshell interceptor: ", fp);
		jv_array_foreach(list, i, one) {
			const char *reason = am_str(one, "reason");

			fprintf(fp, "%s%s", i > 0 ? "; " : "", reason != NULL ? reason : "a reason that cannot be read");
			jv_free(one);
		}
		fclose(fp);
	}
	jv_free(list);
	jv_free(v);
	return text;
}

static int
closed(const char *object, const char *why)
{
	return ams_refuse(AMS_PERMISSION_DENIED, "gateway interceptor 'amap-openshell-mounts' failed closed: %s: %s", object, why);
}

int
ams_embedded_admit(const struct ams_embedded *g, jv request)
{
	char program[4096], *text, *answer, *denied;
	char *argv[] = { program, "--home", g->home, NULL };
	posix_spawn_file_actions_t fa;
	int in[2], out[2], status = 0, rc;
	size_t len;
	pid_t pid;

	if (g->home == NULL)
		return closed("gateway.toml", "names no home in [amap.embedded]");
	if (beside(program, sizeof program, "amap-admit") != 0 || pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		return closed("amap-admit", strerror(errno));
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, in[0], 0);
	posix_spawn_file_actions_adddup2(&fa, out[1], 1);
	posix_spawn_file_actions_adddup2(&fa, out[1], 2);
	rc = posix_spawn(&pid, program, &fa, NULL, argv, (char *[]){ "LC_ALL=C", "PATH=/usr/bin:/bin", NULL });
	posix_spawn_file_actions_destroy(&fa);
	close(in[0]);
	close(out[1]);
	if (rc != 0) {
		close(in[1]);
		close(out[0]);
		return closed(am_quotes(program), strerror(rc));
	}
	text = am_json_text(request, AM_COMPACT, &len);
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	answer = converse(in[1], out[0], text, len);
	free(text);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		free(answer);
		return 0;
	}
	denied = reasons(answer);
	rc = denied != NULL ? ams_refuse(AMS_PERMISSION_DENIED, "%s", denied) : closed("amap-admit", am_quotes(answer));
	free(denied);
	free(answer);
	return rc;
}
