#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "connector/clean.h"
#include "connector/outcome.h"
#include "connector/place.h"
#include "file.h"
#include "id.h"
#include "json.h"

#define DETAIL_MAX 500

int
am_outcome_write(const char *dir, const char *id, const char *outcome, const char *detail)
{
	char name[64], ts[21], *cut, *text;
	jv doc = jv_object();
	int fd, rc = -1, saved;
	size_t len;

	if (am_make_dirs(dir) != 0 || (fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return -1;
	am_timestamp(time(NULL), ts);
	cut = am_clean(AM_CLEAN_LINE, detail, strlen(detail), DETAIL_MAX);
	doc = am_set_str(am_set_str(doc, "outcome", outcome), "ts", ts);
	doc = am_set_str(am_set_str(doc, "tree", "peer"), "notice_id", id);
	if (cut[0] != '\0')
		doc = am_set_str(doc, "detail", cut);
	text = am_json_text(doc, AM_COMPACT, &len);
	snprintf(name, sizeof name, "peer-%s.json", id);
	rc = am_publish(fd, name, text, len, 0644);
	saved = errno;
	jv_free(doc);
	free(text);
	free(cut);
	close(fd);
	errno = saved;
	return rc;
}
