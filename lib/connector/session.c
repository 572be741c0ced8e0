#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connector/session.h"
#include "file.h"
#include "json.h"

jv
am_session_file(int home, const char *path)
{
	size_t len;
	char *text = am_read_regular(home, path, AM_SESSION_FILE_MAX, &len);
	jv v;

	if (text == NULL)
		return jv_invalid();
	v = am_json_parse(text, len);
	free(text);
	if (jv_get_kind(v) == JV_KIND_OBJECT)
		return v;
	jv_free(v);
	return jv_invalid();
}

void
am_session_key_name(pid_t pid, const char *socket, char out[128])
{
	char sha[SHA256_DIGEST_STRING_LENGTH];

	SHA256Data((const uint8_t *)socket, strlen(socket), sha);
	snprintf(out, 128, "%ld.%s.key", (long)pid, sha);
}

void
am_pid_domain(char out[160])
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
