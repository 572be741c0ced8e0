#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "connector/clean.h"
#include "connector/inject.h"
#include "id.h"
#include "json.h"

#define KEY_MAX 65536
#define SEND_MS 10000

/* ---- opening ---- */

/* The token, from malloc; NULL with the cause in why. */
static char *
read_token(const char *key_file, char why[512])
{
	jv key = am_json_read_regular(key_file, 1, KEY_MAX);
	const char *token = am_str(key, "peerToken");
	char *copy = NULL;

	if (!jv_is_valid(key))
		snprintf(why, 512, "key file %s: %s", key_file, am_json_why(jv_copy(key)));
	else if (token == NULL || token[0] == '\0')
		snprintf(why, 512, "key file %s: it holds no peerToken", key_file);
	else
		copy = strdup(token);
	jv_free(key);
	return copy;
}

static int
address(struct sockaddr_un *sun, const char *path)
{
	memset(sun, 0, sizeof *sun);
	sun->sun_family = AF_UNIX;
	if (strlcpy(sun->sun_path, path, sizeof sun->sun_path) >= sizeof sun->sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return 0;
}

/* Binds and listens on a fresh name in the directory of the session's socket. */
static int
open_reply(struct am_injection *in, const char *socket_path)
{
	char path[256], name[17];
	const char *slash = strrchr(socket_path, '/');
	int dir = slash == NULL ? 0 : (int)(slash - socket_path) + 1;

	am_random_hex(name, 8);
	if (snprintf(path, sizeof path, "%.*s%s.sock", dir, socket_path, name) >= (int)sizeof path ||
	    address(&in->reply, path) != 0) {
		errno = ENAMETOOLONG;
		return -1;
	}
	in->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (in->listener < 0 || bind(in->listener, (struct sockaddr *)&in->reply, sizeof in->reply) != 0) {
		in->reply.sun_path[0] = '\0';
		return -1;
	}
	return chmod(in->reply.sun_path, 0600) != 0 ? -1 : listen(in->listener, 8);
}

/* The two lines. Borrows the text. */
static void
make_frame(struct am_injection *in, const char *token, jv text)
{
	char from[sizeof in->reply.sun_path + 4], *auth, *user;
	jv message = am_set(am_set_str(jv_object(), "role", "user"), "content", jv_copy(text)), v;
	size_t n;

	snprintf(from, sizeof from, "uds:%s", in->reply.sun_path);
	am_random_uuid(in->msg_id);
	v = am_set_str(am_set_str(jv_object(), "type", "auth"), "token", token);
	auth = am_json_text(v, AM_COMPACT, &in->auth);
	jv_free(v);
	v = am_set_str(am_set_str(jv_object(), "type", "user"), "from", from);
	v = am_set(am_set_str(v, "msg_id", in->msg_id), "message", message);
	user = am_json_text(v, AM_COMPACT, &n);
	jv_free(v);
	if (asprintf(&in->frame, "%s\n%s\n", auth, user) < 0)
		abort();
	in->auth++;
	in->len = in->auth + n + 1;
	free(auth);
	free(user);
}

int
am_inject_open(struct am_injection *in, const char *socket_path, const char *key_file, jv text)
{
	struct sockaddr_un session;
	char *token;

	*in = (struct am_injection){ .conn = -1, .listener = -1 };
	if ((token = read_token(key_file, in->detail)) == NULL)
		return -1;
	in->conn = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (address(&session, socket_path) != 0 || in->conn < 0 ||
	    connect(in->conn, (struct sockaddr *)&session, sizeof session) != 0)
		snprintf(in->detail, sizeof in->detail, "%s: %s", socket_path, strerror(errno));
	else if (open_reply(in, socket_path) != 0)
		snprintf(in->detail, sizeof in->detail, "reply socket beside %s: %s", socket_path, strerror(errno));
	else {
		make_frame(in, token, text);
		free(token);
		return 0;
	}
	free(token);
	am_inject_close(in);
	return -1;
}

void
am_inject_close(struct am_injection *in)
{
	for (int i = 0; i < AM_INJECT_REPLIES; i++)
		if (in->replies[i] != NULL) {
			close(in->replies[i]->fd);
			free(in->replies[i]);
		}
	if (in->reply.sun_path[0] != '\0')
		unlink(in->reply.sun_path);
	if (in->listener >= 0)
		close(in->listener);
	if (in->conn >= 0)
		close(in->conn);
	free(in->frame);
	in->frame = NULL;
}

/* ---- sending ---- */

int
am_inject_sent(const struct am_injection *in)
{
	/* A session takes a last line without its line feed as well. */
	return in->sent + 1 >= in->len;
}

void
am_inject_send(struct am_injection *in, long long wait_ms, long long hold_ms)
{
	in->wait_ms = wait_ms;
	in->hold_ms = hold_ms;
	/* The wait for receipts begins when all is sent; this is the limit for the sending. */
	in->deadline = am_now() + (wait_ms < SEND_MS ? wait_ms : SEND_MS);
}

static enum am_verdict
send_more(struct am_injection *in)
{
	while (in->sent < in->len) {
		ssize_t n = send(in->conn, in->frame + in->sent, in->len - in->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			in->sent += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN) {		/* the session is gone, and drops what is not whole */
			snprintf(in->detail, sizeof in->detail, "error: send: %s", strerror(errno));
			return am_inject_sent(in) ? AM_V_UNCERTAIN : AM_V_GONE;
		}
		if (am_now() < in->deadline)
			return AM_V_WAITING;
		snprintf(in->detail, sizeof in->detail, "the session stopped reading after %zu of %zu bytes", in->sent, in->len);
		return in->sent > in->auth ? AM_V_UNCERTAIN : AM_V_GONE;
	}
	in->deadline = am_now() + in->wait_ms;
	free(in->frame);
	in->frame = NULL;
	return AM_V_WAITING;
}

/* ---- receipts ---- */

/* "STATUS: REASON", the reason cleaned and cut. */
static void
describe(struct am_injection *in, const char *status, const char *reason, size_t max)
{
	char *s = am_clean(AM_CLEAN_LINE, status, strlen(status), 40);
	char *r = am_clean(AM_CLEAN_LINE, reason, strlen(reason), max);

	if (strcmp(status, "denied") == 0)
		snprintf(in->detail, sizeof in->detail, "%s", r);
	else if (strcmp(status, "held") == 0)
		snprintf(in->detail, sizeof in->detail, "held by the session: \"%s\"; no hold cause is on the wire", r);
	else
		snprintf(in->detail, sizeof in->detail, "%s: %s", s, r);
	free(s);
	free(r);
}

/* Borrows. What a receipt says; waiting when it says nothing to us. */
static enum am_verdict
receipt(struct am_injection *in, jv v)
{
	const char *type = am_str(v, "type"), *action = am_str(v, "action"), *status = am_str(v, "status");
	const char *more = am_str(v, "status_detail"), *dropped = am_str(v, "drop_reason"), *reason = am_str(v, "reason");
	const char *orig = am_str(v, "orig_msg_id");

	if (type == NULL || strcmp(type, "control") != 0 || action == NULL ||
	    strcmp(action, "peer_message_status") != 0 || status == NULL || status[0] == '\0')
		return AM_V_WAITING;
	if (orig != NULL && strcmp(orig, in->msg_id) != 0)
		return AM_V_WAITING;
	if (reason == NULL)
		reason = dropped == NULL ? "" : dropped;
	if (strcmp(status, "delivered") == 0) {
		snprintf(in->detail, sizeof in->detail, "receipt: delivered");
		return AM_V_DELIVERED;
	}
	if (strcmp(status, "refused") == 0 || (strcmp(status, "expired") == 0 && more != NULL && strcmp(more, "refused") == 0)) {
		snprintf(in->detail, sizeof in->detail, "the session takes no messages: its crossSessionInbound, "
		    "or a policy, refuses them");
		return AM_V_REFUSED;
	}
	if (strcmp(status, "held") == 0) {
		describe(in, status, reason, 160);
		in->deadline = am_now() + in->hold_ms;
		if (in->held || in->hold_ms == 0)
			return AM_V_WAITING;
		in->held = 1;
		return AM_V_HELD;
	}
	if (strcmp(status, "denied") != 0 && strcmp(status, "dropped") != 0 && strcmp(status, "expired") != 0) {
		snprintf(in->unknown, sizeof in->unknown, "%.40s", status);
		return AM_V_WAITING;
	}
	describe(in, status, reason, 200);
	if (strcmp(status, "denied") == 0)
		return AM_V_DENIED;
	return dropped != NULL && strcmp(dropped, "duplicate") == 0 ? AM_V_DUPLICATE : AM_V_GONE;
}

/* Takes the whole lines off what was read, up to the first that says something. */
static enum am_verdict
take_lines(struct am_injection *in, struct am_reply *r)
{
	enum am_verdict verdict = AM_V_WAITING;
	char *nl;

	while (verdict == AM_V_WAITING && (nl = memchr(r->line, '\n', r->len)) != NULL) {
		jv v;

		*nl = '\0';
		v = am_json_parse(r->line, (size_t)(nl - r->line));
		verdict = receipt(in, v);
		jv_free(v);
		r->len -= (size_t)(nl + 1 - r->line);
		memmove(r->line, nl + 1, r->len);
	}
	return verdict;
}

/* Reads one connection to its present end. */
static enum am_verdict
read_reply(struct am_injection *in, int i)
{
	struct am_reply *r = in->replies[i];
	enum am_verdict verdict;
	ssize_t n;

	for (;;) {
		if ((verdict = take_lines(in, r)) != AM_V_WAITING)
			return verdict;
		if (r->len == sizeof r->line)
			break;			/* no receipt is that long */
		n = recv(r->fd, r->line + r->len, sizeof r->line - r->len, MSG_DONTWAIT);
		if (n > 0)
			r->len += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return AM_V_WAITING;
		else if (n == 0 || errno != EINTR)
			break;
	}
	close(r->fd);		/* the session, having spoken, waits for this side to close */
	free(r);
	in->replies[i] = NULL;
	return AM_V_WAITING;
}

static void
accept_replies(struct am_injection *in)
{
	for (int i = 0; i < AM_INJECT_REPLIES; i++) {
		int fd;

		if (in->replies[i] != NULL)
			continue;
		if ((fd = accept4(in->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0)
			return;
		if ((in->replies[i] = malloc(sizeof *in->replies[i])) == NULL)
			abort();
		in->replies[i]->fd = fd;
		in->replies[i]->len = 0;
	}
}

static enum am_verdict
out_of_time(struct am_injection *in)
{
	if (in->held)
		return AM_V_HOLD_OVER;
	if (in->unknown[0] != '\0') {
		describe(in, in->unknown, "", 0);
		return AM_V_UNCERTAIN;
	}
	snprintf(in->detail, sizeof in->detail, "inferred: there was no negative receipt within %gs of sending",
	    (double)in->wait_ms / 1000);
	return AM_V_SILENT;
}

int
am_inject_poll(const struct am_injection *in, struct pollfd fds[AM_INJECT_FDS])
{
	int n = 0, room = 0;

	if (in->sent < in->len)
		fds[n++] = (struct pollfd){ .fd = in->conn, .events = POLLOUT };
	for (int i = 0; i < AM_INJECT_REPLIES; i++) {
		room |= in->replies[i] == NULL;
		if (in->replies[i] != NULL)
			fds[n++] = (struct pollfd){ .fd = in->replies[i]->fd, .events = POLLIN };
	}
	if (room)
		fds[n++] = (struct pollfd){ .fd = in->listener, .events = POLLIN };
	return n;
}

enum am_verdict
am_inject_step(struct am_injection *in)
{
	enum am_verdict verdict = in->sent < in->len ? send_more(in) : AM_V_WAITING;

	if (verdict == AM_V_WAITING)
		accept_replies(in);
	for (int i = 0; i < AM_INJECT_REPLIES && verdict == AM_V_WAITING; i++)
		if (in->replies[i] != NULL)
			verdict = read_reply(in, i);
	if (verdict == AM_V_WAITING && in->sent == in->len && am_now() >= in->deadline)
		verdict = out_of_time(in);
	return verdict;
}
