/*
 * files - the files stream (amap-files(5)), and how the home stands to it.
 *
 * Read the whole stream, look at every target, then act: nothing is written
 * on the word of a stream that is cut, or whose last target is refused.
 */
#ifndef AM_FILES_H
#define AM_FILES_H

#include <stdio.h>
#include <sys/types.h>

#include "json.h"

enum am_item_kind { AM_BEFORE, AM_REMOVE, AM_DIRECTORY, AM_FILE, AM_NOTE };	/* in the order of work */
enum am_item_state { AM_ABSENT, AM_DIFFERS, AM_PRESENT };

struct am_item {
	jv rec;				/* owned; what the strings below point into */
	enum am_item_kind kind;
	enum am_item_state state;	/* after am_files_look */
	const char *path;		/* NULL for a note */
	const char *member, *remove, *source;
	const char *text;		/* of a note, or the bytes of a file */
	size_t len;
	mode_t mode;			/* when has_mode */
	uid_t uid;			/* when has_owner */
	gid_t gid;
	int has_mode, has_owner;
};

struct am_files {
	struct am_item *items;
	size_t count, cap;
	jv planned;		/* the paths of the directories that the stream makes */
	int home_fd;		/* -1: the home is still to be made */
	/* Told of each target that must not be touched, and why. */
	void (*refuse)(const char *path, const char *why);
};

void am_files_init(struct am_files *f, int home_fd, void (*refuse)(const char *, const char *));
void am_files_free(struct am_files *f);

/* Owns nothing of in. -1 when the stream is cut or a record is not sound; am_stream_why says how. */
int am_files_read(struct am_files *f, struct am_stream *in);

/* Loads every source and sets every state. -1 with errno and the path in *where when it cannot. */
int am_files_look(struct am_files *f, const char **where);

/* "0644" into *mode; -1 when it is not an octal number. */
int am_files_mode(const char *text, mode_t *mode);

/* The directory part of a path below the home, "." when there is none; from malloc. */
char *am_files_parent(const char *path);

#endif
