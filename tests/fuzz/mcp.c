/*
 * Whatever a client sends, each line that comes back is a response, no more of
 * them than lines came, and the server ends with its input.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "mcp.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int in, out, null;

/* A tool that gives back what it got. */
static void
echo(jv arguments, struct am_answer *answer)
{
	char *text = am_json_text(arguments, AM_SORTED, NULL);

	if (am_has(arguments, "fail"))
		am_answer_error(answer, "%s", text);
	else
		am_answer(answer, "%s", text);
	free(text);
}

static const struct am_tool tools[] = {
	{ .name = "echo", .description = "d", .schema = "{\"type\":\"object\"}", .call = echo },
	{ .name = NULL }
};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char name[] = "/tmp/amap-fuzz-XXXXXX", other[] = "/tmp/amap-fuzz-XXXXXX";

	(void)argc;
	(void)argv;
	in = mkstemp(name);
	out = mkstemp(other);
	unlink(name);
	unlink(other);
	/* What the server says to people would bury what the fuzzer says. */
	null = open("/dev/null", O_WRONLY);
	return in < 0 || out < 0 || null < 0;
}

static void
check(char *line)
{
	jv v = am_json_parse(line, strlen(line));

	if (am_str(v, "jsonrpc") == NULL || !am_has(v, "id") || am_has(v, "result") == am_has(v, "error"))
		abort();
	jv_free(v);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct am_mcp mcp = { .server = "s", .instructions = "i", .tools = tools };
	int saved = dup(STDERR_FILENO);
	size_t came = 1, went = 0, cap = 0;
	char *line = NULL;
	FILE *fp;

	for (size_t i = 0; i < size; i++)
		came += data[i] == '\n';
	if (ftruncate(in, 0) != 0 || ftruncate(out, 0) != 0 || pwrite(in, data, size, 0) != (ssize_t)size)
		abort();
	lseek(in, 0, SEEK_SET);
	lseek(out, 0, SEEK_SET);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	if (am_mcp_serve(&mcp) != 0)
		abort();
	dup2(saved, STDERR_FILENO);
	close(saved);
	lseek(out, 0, SEEK_SET);
	if ((fp = fdopen(dup(out), "r")) == NULL)
		abort();
	for (ssize_t n; (n = getline(&line, &cap, fp)) > 0; went++) {
		if (line[n - 1] != '\n')
			abort();
		line[n - 1] = '\0';
		check(line);
	}
	if (went > came)
		abort();
	free(line);
	fclose(fp);
	return 0;
}
