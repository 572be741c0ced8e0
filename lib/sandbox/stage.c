#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"

int
ams_launch_stage(struct ams_launch *l)
{
	int trees[AMS_MAX_BINDS];
	char at[64];

	if (geteuid() != 0)
		return 0;
	/* The clones are made where the descriptors come from, then carried over. */
	for (size_t i = 0; i < l->n_binds; i++)
		if ((trees[i] = open_tree(l->binds[i].fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE)) < 0)
			return -1;
	if ((l->outside = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) < 0 ||
	    unshare(CLONE_NEWNS) != 0 || (l->staged = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
	    mount("amap-sandbox", AMS_STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k") != 0)
		return -1;
	for (size_t i = 0; i < l->n_binds; i++) {
		int fd;

		snprintf(at, sizeof at, AMS_STAGE "/%zu", i);
		if (l->binds[i].dir) {
			if (mkdir(at, 0755) != 0)
				return -1;
		} else {
			if ((fd = open(at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0)
				return -1;
			close(fd);
		}
		if (move_mount(trees[i], "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) != 0)
			return -1;
		close(trees[i]);
	}
	return 0;
}

static int
renew(struct ams_launch *l, size_t i, int fd)
{
	char at[64];
	int tree, rc = -1;

	if (geteuid() != 0)
		return dup3(fd, l->binds[i].fd, O_CLOEXEC) < 0 ? -1 : 0;
	/* as for the stage: cloned where it comes from, then carried over */
	if (setns(l->outside, CLONE_NEWNS) != 0)
		return -1;
	tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (setns(l->staged, CLONE_NEWNS) != 0)
		return -1;
	snprintf(at, sizeof at, AMS_STAGE "/%zu", i);
	if (tree >= 0 && umount2(at, MNT_DETACH) == 0)
		rc = move_mount(tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH);
	if (tree >= 0)
		close(tree);
	return rc != 0 || dup3(fd, l->binds[i].fd, O_CLOEXEC) < 0 ? -1 : 0;
}

int
ams_launch_renew(struct ams_launch *l)
{
	struct stat now, was;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n_binds; i++) {
		int fd = l->binds[i].parent > 0 ? openat(l->binds[i].parent, l->binds[i].name, O_PATH | O_CLOEXEC) : -1;

		if (fd < 0)		/* nothing better than what is there */
			continue;
		if (fstat(fd, &now) == 0 && fstat(l->binds[i].fd, &was) == 0 &&
		    (now.st_dev != was.st_dev || now.st_ino != was.st_ino))
			rc = renew(l, i, fd);
		close(fd);
	}
	return rc;
}
