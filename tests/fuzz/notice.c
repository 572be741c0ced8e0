/*
 * A notice and a message, parted by a NUL byte: what is admitted becomes an
 * envelope that is read back as a delegation of the notice's sender, with the
 * message's text in it; what is not has a reason that is fit to print.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connector/delegation.h"
#include "connector/turn.h"
#include "diag.h"

#define ID "0123456789abcdef0123456789abcdef"
#define NAME "notice-" ID ".json"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[] = "/tmp/amap-fuzz-XXXXXX";
static int dir, notices, messages;

static void
clean_up(void)
{
	unlinkat(notices, NAME, 0);
	unlinkat(messages, NAME, 0);
	unlinkat(dir, "n", AT_REMOVEDIR);
	unlinkat(dir, "m", AT_REMOVEDIR);
	rmdir(root);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (mkdtemp(root) == NULL || (dir = open(root, O_RDONLY | O_DIRECTORY)) < 0 ||
	    mkdirat(dir, "n", 0700) != 0 || mkdirat(dir, "m", 0700) != 0 ||
	    (notices = openat(dir, "n", O_RDONLY | O_DIRECTORY)) < 0 ||
	    (messages = openat(dir, "m", O_RDONLY | O_DIRECTORY)) < 0)
		return 1;
	atexit(clean_up);
	return 0;
}

static void
put(int at, const uint8_t *bytes, size_t len)
{
	int fd = openat(at, NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	close(fd);
}

static void
check_turn(jv text)
{
	static const char end[] = "\n</cross-session-message>";
	size_t len = (size_t)jv_string_length_bytes(jv_copy(text));
	const char *s = jv_string_value(text);
	struct am_turn t;

	am_turn_parse(s, len, &t);
	if (strcmp(t.kind, "peer") != 0 || t.from == NULL || len < sizeof end - 1 ||
	    memcmp(s + len - (sizeof end - 1), end, sizeof end - 1) != 0 || memchr(t.from, '"', strlen(t.from)) != NULL)
		abort();
	am_turn_free(&t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *cut = size > 0 ? memchr(data, 0, size) : NULL;
	size_t first = cut == NULL ? size : (size_t)(cut - data);
	char why[500] = "";
	jv text;

	put(notices, data, first);
	put(messages, cut == NULL ? data : cut + 1, cut == NULL ? 0 : size - first - 1);
	if (am_peer_admit(notices, messages, ID, "beta@f.example", &text, why) == AM_ADMITTED) {
		check_turn(text);
		jv_free(text);
	} else if (why[0] == '\0' || strpbrk(why, "\n\033") != NULL) {
		abort();
	}
	if (am_mail_admit(notices, ID, NULL, &text, why) == AM_ADMITTED)
		jv_free(text);
	return 0;
}
