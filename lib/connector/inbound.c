#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "connector/inbound.h"
#include "connector/place.h"
#include "id.h"
#include "json.h"

/* ---- the socket ---- */

/* Makes or takes a directory that only this user can enter. */
static int
private_dir(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return -1;
	if (lstat(path, &st) != 0)
		return -1;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
		errno = EPERM;
		return -1;
	}
	return (st.st_mode & 0777) == 0700 ? 0 : chmod(path, 0700);
}

/* The directory for sockets: where a claude of this environment would have its own. */
static int
socket_dir(char out[108], char why[300])
{
	static const char *const roots[] = { "XDG_RUNTIME_DIR", "CLAUDE_CODE_TMPDIR", "TMPDIR" };
	const char *root = "/tmp";
	int n;

	for (size_t i = 3; i-- > 0; )
		if (am_env(roots[i]) != NULL)
			root = am_env(roots[i]);
	/* A reply socket beside it has a name of 21 characters. */
	n = snprintf(out, 108, "%s/cc-socks", root);
	if (n < 108 - 22 && private_dir(out) == 0)
		return 0;
	n = snprintf(out, 108, "/tmp/cc-socks-%ld", (long)geteuid());
	if (private_dir(out) == 0)
		return 0;
	snprintf(why, 300, "no private directory for the socket: %s: %s", out, strerror(errno));
	return -1;
}

int
am_inbound_open(struct am_inbound *in, char why[300])
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char dir[108];

	in->fd = -1;
	in->path[0] = '\0';
	in->count = 0;
	if (socket_dir(dir, why) != 0)
		return -1;
	snprintf(sun.sun_path, sizeof sun.sun_path, "%.84s/%ld.sock", dir, (long)getpid());
	unlink(sun.sun_path);		/* the number is ours now: whoever made it is gone */
	am_random_hex(in->token, 16);
	in->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (in->fd < 0 || bind(in->fd, (struct sockaddr *)&sun, sizeof sun) != 0 ||
	    chmod(sun.sun_path, 0600) != 0 || listen(in->fd, 64) != 0) {
		snprintf(why, 300, "%s: %s", sun.sun_path, strerror(errno));
		return -1;
	}
	strlcpy(in->path, sun.sun_path, sizeof in->path);
	return 0;
}

static void
drop(struct am_conn *c)
{
	close(c->fd);
	free(c->buf);
	c->fd = -1;
}

void
am_inbound_close(struct am_inbound *in)
{
	for (size_t i = 0; i < in->count; i++)
		drop(&in->conns[i]);
	if (in->path[0] != '\0')
		unlink(in->path);
	close(in->fd);
}

int
am_inbound_poll(const struct am_inbound *in, struct pollfd fds[AM_INBOUND_FDS])
{
	int n = 0;

	for (size_t i = 0; i < in->count; i++)
		fds[n++] = (struct pollfd){ .fd = in->conns[i].fd, .events = POLLIN };
	if (in->count < AM_INBOUND_CONNS)
		fds[n++] = (struct pollfd){ .fd = in->fd, .events = POLLIN };
	return n;
}

/* ---- messages ---- */

static pid_t
peer_of(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof cred;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : 0;
}

/* Borrows the line's object. -1 ends the connection. */
static int
take_line(struct am_inbound *in, struct am_conn *c, jv line, void (*take)(struct am_message *m))
{
	const char *type = am_str(line, "type"), *s;
	jv message, content;
	struct am_message m = { 0 };

	if (type != NULL && strcmp(type, "auth") == 0) {
		s = am_str(line, "token");
		c->known = s != NULL && strcmp(s, in->token) == 0;
		return c->known ? 0 : -1;
	}
	if (type == NULL || strcmp(type, "user") != 0)
		return 0;
	if (!c->known)
		return -1;
	message = am_get(line, "message", JV_KIND_OBJECT);
	content = am_get(message, "content", JV_KIND_STRING);
	if (jv_is_valid(content) && (m.len = (size_t)jv_string_length_bytes(jv_copy(content))) > 0) {
		if ((m.text = malloc(m.len + 1)) == NULL)
			abort();
		memcpy(m.text, jv_string_value(content), m.len + 1);
		if ((s = am_str(line, "from")) != NULL && strncmp(s, "uds:", 4) == 0)
			strlcpy(m.reply, s + 4, sizeof m.reply);
		if ((s = am_str(line, "msg_id")) != NULL)
			strlcpy(m.msg_id, s, sizeof m.msg_id);
		m.sender = c->peer;
		take(&m);
	}
	jv_free(content);
	jv_free(message);
	return 0;
}

/* Takes every whole line, and at the end of the connection the last one as well. */
static int
take_lines(struct am_inbound *in, struct am_conn *c, int ended, void (*take)(struct am_message *m))
{
	size_t start = 0;
	int rc = 0;

	while (rc == 0 && start < c->len) {
		char *line = c->buf + start, *nl = memchr(line, '\n', c->len - start);
		size_t n = nl == NULL ? c->len - start : (size_t)(nl - line);
		jv v;

		if (nl == NULL && !ended)
			break;
		line[n] = '\0';
		v = am_json_parse(line, n);
		if (jv_get_kind(v) == JV_KIND_OBJECT)
			rc = take_line(in, c, v, take);
		jv_free(v);
		start += n + 1;
	}
	start = start > c->len ? c->len : start;
	c->len -= start;
	memmove(c->buf, c->buf + start, c->len);
	return rc;
}

static void
read_conn(struct am_inbound *in, struct am_conn *c, void (*take)(struct am_message *m))
{
	ssize_t n;

	for (;;) {
		if (c->len + 65536 > c->cap) {
			c->cap = c->len + 131072;
			if ((c->buf = realloc(c->buf, c->cap + 1)) == NULL)
				abort();
		}
		n = recv(c->fd, c->buf + c->len, c->cap - c->len, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n > 0)
			c->len += (size_t)n;
		if (take_lines(in, c, n <= 0, take) != 0 || n <= 0 || c->len > AM_INBOUND_LINE_MAX) {
			drop(c);
			return;
		}
	}
}

void
am_inbound_step(struct am_inbound *in, void (*take)(struct am_message *m))
{
	size_t kept = 0;
	int fd;

	/* First all that came, then what they say: so the messages of one sender keep their order. */
	while (in->count < AM_INBOUND_CONNS && (fd = accept4(in->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		in->conns[in->count++] = (struct am_conn){ .fd = fd, .peer = peer_of(fd) };
	for (size_t i = 0; i < in->count; i++) {
		read_conn(in, &in->conns[i], take);
		if (in->conns[i].fd >= 0)
			in->conns[kept++] = in->conns[i];
	}
	in->count = kept;
}

/* ---- receipts ---- */

/* Only a socket beside our own, and no name that would lead elsewhere. */
static int
is_beside(const struct am_inbound *in, const char *path)
{
	size_t dir = (size_t)(strrchr(in->path, '/') - in->path) + 1, len = strlen(path);

	return len > dir + 5 && strncmp(path, in->path, dir) == 0 && strchr(path + dir, '/') == NULL &&
	    strcmp(path + len - 5, ".sock") == 0 && strpbrk(path + dir, " \t\n") == NULL;
}

int
am_inbound_receipt(const struct am_inbound *in, const struct am_message *m, const char *status,
    const char *detail, const char *reason)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char uuid[37], from[120], *line, *text;
	jv v = am_set_str(am_set_str(jv_object(), "type", "control"), "action", "peer_message_status");
	int fd, rc = -1, n;

	v = am_set_str(v, "status", status);
	if (detail != NULL)
		v = am_set_str(v, strcmp(status, "dropped") == 0 ? "drop_reason" : "status_detail", detail);
	v = am_set_str(v, "reason", reason);
	snprintf(from, sizeof from, "uds:%s", in->path);
	v = am_set_str(v, "from", from);
	if (m->msg_id[0] != '\0')
		v = am_set_str(v, "orig_msg_id", m->msg_id);
	am_random_uuid(uuid);
	v = am_set_str(am_set(v, "msgV", jv_number(1)), "msg_id", uuid);
	text = am_json_text(v, AM_COMPACT, NULL);
	jv_free(v);
	if ((n = asprintf(&line, "%s\n", text)) < 0)
		abort();
	free(text);
	errno = EINVAL;
	fd = !is_beside(in, m->reply) ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		strlcpy(sun.sun_path, m->reply, sizeof sun.sun_path);
		if (connect(fd, (struct sockaddr *)&sun, sizeof sun) == 0) {
			if (peer_of(fd) != m->sender)
				errno = EPERM;		/* somebody else listens there */
			else if (send(fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n)
				rc = 0;
		}
		close(fd);
	}
	free(line);
	return rc;
}
