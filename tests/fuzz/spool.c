/*
 * Whatever lies in the spool: it loads with every text cleaned, or it does not
 * and the reason is fit to print.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connector/spool.h"
#include "utf8.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[] = "/tmp/amap-fuzz-XXXXXX";
static int dir;

static void
clean_up(void)
{
	unlinkat(dir, "notice-n.json", 0);
	rmdir(root);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (mkdtemp(root) == NULL || (dir = open(root, O_RDONLY | O_DIRECTORY)) < 0)
		return 1;
	atexit(clean_up);
	return 0;
}

static void
must_be_clean(const char *s, int lines)
{
	uint32_t c;
	int n;

	for (; *s != '\0'; s += n)
		if ((n = am_utf8_next(s, strlen(s), &c)) < 0 || (!am_printable(c) && !(lines && (c == '\n' || c == '\t'))))
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = openat(dir, "notice-n.json", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	char why[300] = "", *text;
	struct am_spooled m;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
	if (am_spool_load(dir, "notice-n.json", &m, why) != 0) {
		must_be_clean(why, 0);
		if (why[0] == '\0')
			abort();
	} else {
		const char *const lines[] = { m.id, m.date, m.from, m.to, m.cc, m.subject };

		for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
			must_be_clean(lines[i], 0);
		must_be_clean(m.body, 1);
		for (size_t i = 0; i < m.count; i++) {
			must_be_clean(m.files[i].filename, 0);
			must_be_clean(m.files[i].media_type, 0);
			must_be_clean(m.files[i].disposition, 0);
			/* Nothing is published here. */
			if (m.files[i].readable && am_spool_attachment(dir, &m, i, &text, why) == 0)
				abort();
		}
	}
	am_spool_free(&m);
	return 0;
}
