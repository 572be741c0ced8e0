#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "connector/place.h"
#include "connector/session.h"
#include "file.h"
#include "id.h"
#include "json.h"
#include "path.h"

jv
am_session_file(int home, const char *path)
{
	return am_json_object_at(home, path, AM_SESSION_FILE_MAX);
}

void
am_session_key_name(pid_t pid, const char *socket, char out[128])
{
	char sha[SHA256_DIGEST_STRING_LENGTH];

	SHA256Data((const uint8_t *)socket, strlen(socket), sha);
	snprintf(out, 128, "%ld.%s.key", (long)pid, sha);
}

/* "linux:MACHINE-ID:pid:[INODE]", the pid namespace in which a pid means something. */
static void
pid_domain(char out[160])
{
	char id[64] = "", ns[64] = "";
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd >= 0) {
		n = read(fd, id, sizeof id - 1);
		close(fd);
	}
	id[n > 0 ? n : 0] = '\0';
	id[strcspn(id, "\n")] = '\0';
	if ((n = readlink("/proc/self/ns/pid", ns, sizeof ns - 1)) > 0)
		ns[n] = '\0';
	snprintf(out, 160, "linux:%s:%s", id, ns);
}

/* Consumes. */
static int
publish(int dir, const char *name, jv doc, mode_t perm)
{
	size_t len;
	char *text = am_json_text(doc, AM_COMPACT, &len);
	int rc = am_publish(dir, name, text, len, perm);

	jv_free(doc);
	free(text);
	return rc;
}

static int
open_registry(const char *home)
{
	char *path = am_path_join(home, AM_SESSIONS);
	int dir = am_make_dirs(path) != 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	free(path);
	if (dir >= 0 && fchmod(dir, 0700) != 0) {
		close(dir);
		return -1;
	}
	return dir;
}

int
am_session_enter(struct am_session_entry *e, const char *home, const char *entrypoint, const char *socket, const char *token)
{
	char domain[160], uuid[37], *cwd;
	struct timespec now;
	struct am_proc self;
	jv key = jv_object(), entry = jv_object();
	int rc;

	if (am_proc_read(0, &self) != 0 || (e->dir = open_registry(home)) < 0) {
		jv_free(key);
		jv_free(entry);
		return -1;
	}
	cwd = getcwd(NULL, 0);
	pid_domain(domain);
	am_random_uuid(uuid);
	clock_gettime(CLOCK_REALTIME, &now);
	am_session_key_name(getpid(), socket, e->key);
	snprintf(e->entry, sizeof e->entry, "%ld.json", (long)getpid());
	key = am_set_str(am_set_str(key, "peerToken", token), "procStart", self.start);
	key = am_set_str(key, "pidDomain", domain);
	entry = am_set_str(am_set(entry, "pid", jv_number((double)getpid())), "sessionId", uuid);
	entry = am_set_str(entry, "cwd", cwd);
	entry = am_set(entry, "startedAt", jv_number((double)now.tv_sec * 1000 + (double)(now.tv_nsec / 1000000)));
	entry = am_set_str(am_set_str(entry, "procStart", self.start), "version", AM_VERSION);
	entry = am_set(entry, "peerProtocol", jv_number(1));
	entry = am_set_str(am_set_str(entry, "kind", "interactive"), "entrypoint", entrypoint);
	entry = am_set_str(am_set_str(entry, "pidDomain", domain), "messagingSocketPath", socket);
	free(cwd);
	if ((rc = publish(e->dir, e->key, key, 0600)) != 0)
		jv_free(entry);
	else if ((rc = publish(e->dir, e->entry, entry, 0644)) != 0)
		unlinkat(e->dir, e->key, 0);
	return rc;
}

void
am_session_leave(const struct am_session_entry *e)
{
	unlinkat(e->dir, e->entry, 0);
}

void
am_session_forget(struct am_session_entry *e)
{
	unlinkat(e->dir, e->key, 0);
	close(e->dir);
}
