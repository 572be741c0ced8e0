#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "router/log.h"
#include "router/sweep.h"

int
amr_is_temporary(const char *name)
{
	size_t len = strlen(name);

	return len > 1 + 1 + 12 + 4 && name[0] == '.' && strcmp(name + len - 4, ".tmp") == 0 && name[len - 17] == '.' &&
	    strspn(name + len - 16, "0123456789abcdef") == 12;
}

static int
sweep_directory(int at, const char *path)
{
	int fd = am_open_beneath(at, path, O_RDONLY | O_DIRECTORY, 0), n = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(d)) != NULL)
		n += amr_is_temporary(e->d_name) && unlinkat(fd, e->d_name, 0) == 0;
	closedir(d);
	return n;
}

void
amr_sweep(const struct amr_router *r)
{
	static const char *const kept[] = { "", "/results", "/held", "/quarantine", "/delivered", "/outcomes", "/decided" };
	static const struct { char lane; const char *leaf; } leaves[] = {
		{ 'i', "notices" }, { 'i', "messages" }, { 'p', "notices" }, { 'p', "messages" }, { 'o', "results" }
	};
	int n = sweep_directory(r->state, ".");
	char path[256];

	for (size_t i = 0; i < r->conf->n; i++) {
		const struct amr_member *m = &r->conf->members[i];
		int root = amr_root(m);

		for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++) {
			snprintf(path, sizeof path, "%s%s", m->name, kept[k]);
			n += sweep_directory(r->state, path);
		}
		for (size_t k = 0; k < sizeof leaves / sizeof leaves[0] && root >= 0; k++) {
			snprintf(path, sizeof path, "%s/%s", amr_lane(m, leaves[k].lane), leaves[k].leaf);
			n += sweep_directory(root, path);
		}
		if (root >= 0)
			close(root);
	}
	if (n > 0)
		amr_log(AM_INFO, "", "%d temporary files of an earlier run removed", n);
}
