#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "diag.h"
#include "json.h"
#include "mcp.h"
#include "mcpline.h"

enum { PARSE_ERROR = -32700, NO_REQUEST = -32600, NO_METHOD = -32601, BAD_PARAMS = -32602, INTERNAL = -32603 };

/* ---- answers ---- */

static void
set_answer(struct am_answer *a, int is_error, const char *fmt, va_list ap)
{
	char *text;
	int n = vasprintf(&text, fmt, ap);

	if (n < 0)
		abort();
	free(a->text);
	*a = (struct am_answer){ .text = text, .len = (size_t)n, .is_error = is_error };
}

void
am_answer(struct am_answer *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_answer(a, 0, fmt, ap);
	va_end(ap);
}

void
am_answer_error(struct am_answer *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_answer(a, 1, fmt, ap);
	va_end(ap);
}

/* ---- serving ---- */

static int
send_all(int fd, const char *bytes, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t n;

	while (len > 0) {
		if ((n = write(fd, bytes, len)) < 0) {
			/* A client may have made the pipe non-blocking for its own end's sake. */
			if (errno == EAGAIN)
				poll(&p, 1, -1);
			else if (errno != EINTR)
				return -1;
			continue;
		}
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

struct server {
	const struct am_mcp *mcp;
	struct am_input in;
	int out;
	int broken;		/* errno of a failed write */
	int misframed;		/* the client was told so, and nothing has been readable since */
};

/* Sends a response with this id and this member, which is from malloc and freed here. */
static void
respond(struct server *s, const char *id, char *result)
{
	char *line;
	int n = asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", id, result);

	if (n < 0)
		abort();
	if (send_all(s->out, line, (size_t)n) != 0)
		s->broken = errno;
	free(line);
	free(result);
}

/* "KEY":VALUE from malloc. Consumes v. */
static char *
member(const char *key, jv v)
{
	char *text = am_json_text(v, AM_COMPACT, NULL), *m;

	if (asprintf(&m, "\"%s\":%s", key, text) < 0)
		abort();
	free(text);
	jv_free(v);
	return m;
}

static char *
error(int code, const char *message)
{
	jv e = am_set(jv_object(), "code", jv_number(code));

	return member("error", am_set_str(e, "message", message));
}

static jv
initialize(const struct am_mcp *mcp, jv params)
{
	static const char *const known[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07" };
	const char *wanted = am_str(params, "protocolVersion"), *version = known[0];
	jv result = jv_object(), server = jv_object();

	for (size_t i = 0; wanted != NULL && i < sizeof known / sizeof known[0]; i++)
		if (strcmp(wanted, known[i]) == 0)
			version = known[i];
	server = am_set_str(am_set_str(server, "name", mcp->server), "version", "0.1");
	result = am_set(am_set_str(result, "protocolVersion", version), "serverInfo", server);
	result = am_set(result, "capabilities", am_set(jv_object(), "tools", jv_object()));
	return am_set_str(result, "instructions", mcp->instructions);
}

static jv
tools_list(const struct am_mcp *mcp)
{
	jv list = jv_array();

	for (const struct am_tool *t = mcp->tools; t->name != NULL; t++) {
		jv tool = am_set_str(am_set_str(jv_object(), "name", t->name), "description", t->description);

		list = jv_array_append(list, am_set(tool, "inputSchema", jv_parse(t->schema)));
	}
	return am_set(jv_object(), "tools", list);
}

static char *
tools_call(const struct am_mcp *mcp, jv params)
{
	const char *name = am_str(params, "name");
	const struct am_tool *t = mcp->tools;
	struct am_answer answer = { 0 };
	jv arguments, item, result;
	char message[300];

	while (name != NULL && t->name != NULL && strcmp(t->name, name) != 0)
		t++;
	if (name == NULL || t->name == NULL) {
		snprintf(message, sizeof message, "unknown tool: %s", name == NULL ? "(no name)" : am_quotes(name));
		return error(BAD_PARAMS, message);
	}
	arguments = am_get(params, "arguments", JV_KIND_OBJECT);
	if (!jv_is_valid(arguments))
		arguments = jv_object();
	t->call(arguments, &answer);
	jv_free(arguments);
	item = am_set_str(jv_object(), "type", "text");
	item = am_set(item, "text", jv_string_sized(answer.text, (int)answer.len));
	free(answer.text);
	result = am_set(jv_object(), "content", jv_array_append(jv_array(), item));
	if (answer.is_error)
		result = am_set(result, "isError", jv_true());
	return member("result", result);
}

/* 1 when input that is already here takes this request back; then nothing may be answered to it. */
static int
cancelled(struct server *s, const char *id)
{
	const char *line, *nl, *params, *which;
	int found = 0;
	size_t n;

	while (s->in.len - s->in.start <= AM_MCP_LINE_MAX && am_input_fill(&s->in, 0))
		;
	for (line = s->in.buf + s->in.start; !found; line = nl + 1) {
		char *copy;
		jv v;

		if ((nl = memchr(line, '\n', (size_t)(s->in.buf + s->in.len - line))) == NULL)
			return 0;
		if (memmem(line, (size_t)(nl - line), "notifications/cancelled", 23) == NULL)
			continue;
		if ((copy = strndup(line, (size_t)(nl - line))) == NULL)
			abort();
		v = am_json_parse(copy, strlen(copy));
		if (am_str(v, "method") != NULL && strcmp(am_str(v, "method"), "notifications/cancelled") == 0 &&
		    (params = am_raw_member(copy, "params", &n)) != NULL &&
		    (which = am_raw_member(params, "requestId", &n)) != NULL)
			found = n == strlen(id) && memcmp(which, id, n) == 0;
		free(copy);
		jv_free(v);
	}
	return found;
}

/* What a request is answered, NULL for silence. Borrows both. */
static char *
answer_to(const struct am_mcp *mcp, jv msg, jv params, int null_id)
{
	const char *method = am_str(msg, "method");
	char text[900];

	if (method == NULL)	/* a response to a request that was never made needs no answer */
		return am_has(msg, "result") || am_has(msg, "error") ? NULL : error(NO_REQUEST, "no method");
	if (strcmp(method, "notifications/initialized") == 0)
		return NULL;
	if (jv_get_kind(params) != JV_KIND_OBJECT)
		return error(INTERNAL, "params is no object");
	if (strcmp(method, "initialize") == 0)
		return member("result", initialize(mcp, params));
	if (strcmp(method, "tools/list") == 0)
		return member("result", tools_list(mcp));
	if (strcmp(method, "tools/call") == 0)
		return tools_call(mcp, params);
	if (strcmp(method, "ping") == 0)
		return member("result", jv_object());
	if (null_id)
		return NULL;
	snprintf(text, sizeof text, "method not found: %s", am_quotes(method));
	return error(NO_METHOD, text);
}

/* Borrows msg, an object; id is the text that came. */
static void
handle_request(struct server *s, jv msg, const char *id)
{
	jv params = jv_object_get(jv_copy(msg), jv_string("params"));
	char *answer = NULL;

	if (jv_get_kind(params) == JV_KIND_INVALID || jv_get_kind(params) == JV_KIND_NULL) {
		jv_free(params);
		params = jv_object();
	}
	/* Looked for before the work, so that nothing is done, and after it, so that nothing is said. */
	if (!cancelled(s, id))
		answer = answer_to(s->mcp, msg, params, strcmp(id, "null") == 0);
	jv_free(params);
	if (answer != NULL && !cancelled(s, id))
		respond(s, id, answer);
	else
		free(answer);
}

/*
 * A line that is no JSON. Noise gets no answer; a client that frames its
 * messages in another way is told so, once, because it would wait for ever.
 */
static void
handle_noise(struct server *s, const char *line, const char *why)
{
	line = am_skip_space(line);
	if (s->misframed)
		return;
	am_warnx("ignored a line that is not JSON: %s", why);
	if (strncasecmp(line, "Content-Length:", 15) != 0 &&
	    ((*line != '{' && *line != '[') || *am_skip_space(line + 1) != '\0'))
		return;
	s->misframed = 1;
	respond(s, "null", error(PARSE_ERROR, "a message must be one line of JSON, without a header before it"));
}

static void
handle_line(struct server *s, const char *line, size_t len)
{
	const char *id;
	char *copy;
	size_t n;
	jv msg;

	if (strspn(line, " \t\r") == len)
		return;
	msg = am_json_parse(line, len);
	if (!jv_is_valid(msg)) {
		handle_noise(s, line, am_json_why(msg));
		return;
	}
	if (jv_get_kind(msg) != JV_KIND_OBJECT) {
		if (!s->misframed)
			am_warnx("ignored a line that is no JSON object");
		jv_free(msg);
		return;
	}
	s->misframed = 0;
	/* Without an id it is a notification: never answered, and none asks for anything to be done. */
	if ((id = am_raw_member(line, "id", &n)) != NULL) {
		if ((copy = strndup(id, n)) == NULL)	/* reading on may move the line */
			abort();
		handle_request(s, msg, copy);
		free(copy);
	}
	jv_free(msg);
}

int
am_mcp_serve(const struct am_mcp *mcp)
{
	struct server s = { .mcp = mcp };
	int too_long = 0, idle = mcp->idle != NULL;
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char *line;
	size_t len;

	fflush(stdout);
	if ((s.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -1;
	while (s.broken == 0) {
		if ((line = am_input_line(&s.in, &len, &too_long)) != NULL) {
			handle_line(&s, line, len);
		} else if (too_long) {
			too_long = 0;
			respond(&s, "null", error(NO_REQUEST, "a line of more than 4 MiB"));
		} else {
			break;
		}
		if (idle && s.in.start == s.in.len && poll(&p, 1, 0) == 0) {
			mcp->idle();
			idle = 0;
		}
	}
	free(s.in.buf);
	close(s.out);
	errno = s.broken;
	return s.broken == 0 ? 0 : -1;
}
