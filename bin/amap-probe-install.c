/*
 * amap-probe-install - is what install made still there, byte for byte?
 *
 * Checks I1 to I4 of spec verify, section 4: the payload against its sources,
 * the layout, the record against the fleet, and the sandboxes that exist
 * against both. Reads the answer "list". Page: amap-probe-install(1).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "check.h"
#include "diag.h"
#include "file.h"
#include "members.h"
#include "membership.h"

#define DEPTH_MAX 32

static const char usage[] =
"usage: amap-probe-install --home DIR --payload FILE --members FILE [--list-may-be-cut] [ANSWERS ...]\n"
"\n"
"Prints four checks: the payload is its sources, the layout is there, every\n"
"member is recorded, no other sandbox is in the workspace.\n"
"\n"
"  --home DIR         the home\n"
"  --payload FILE     the files stream that install publishes the payload from\n"
"  --members FILE     the fleet's members (amap-lanes)\n"
"  --list-may-be-cut  a list of exactly 100 sandboxes proves nothing\n";

static char why[600];		/* why a side could not be read */

static int
cannot(const char *what, const char *path)
{
	snprintf(why, sizeof why, "%s %s: %s", what, am_quotes(path), strerror(errno));
	return -1;
}

/* Owns: "MODE SHA256" of an open file; invalid with why set. */
static jv
digest(int fd, const char *path, unsigned mode)
{
	uint8_t block[65536];
	char hex[SHA256_DIGEST_STRING_LENGTH];
	SHA256_CTX ctx;
	ssize_t n;

	SHA256Init(&ctx);
	while ((n = read(fd, block, sizeof block)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			cannot("cannot read", path);
			return jv_invalid();
		}
		SHA256Update(&ctx, block, (size_t)n);
	}
	SHA256End(&ctx, hex);
	return jv_string_fmt("%04o %s", mode, hex);
}

/* 1 when both files hold the same from here on; else both stand at their beginning again. */
static int
same_bytes(int a, int b)
{
	static char block[2][65536];
	ssize_t n;

	do {
		n = read(a, block[0], sizeof block[0]);
		if (n < 0 || read(b, block[1], sizeof block[1]) != n || memcmp(block[0], block[1], (size_t)n) != 0) {
			lseek(a, 0, SEEK_SET);
			lseek(b, 0, SEEK_SET);
			return 0;
		}
	} while (n > 0);
	return 1;
}

/*
 * Owns: an installed file as digest says it. Nearly always it is its source, byte for byte, whose
 * digest is known; comparing costs a fifth of computing.
 */
static jv
digest_of_installed(int fd, const char *name, unsigned mode, jv expected, jv sources)
{
	const char *known = am_str(expected, name), *source = am_str(sources, name);
	int from = known == NULL || source == NULL ? -1 : open(source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int same = from >= 0 && same_bytes(fd, from);

	if (from >= 0)
		close(from);
	return same ? jv_string_fmt("%04o %s", mode, strchr(known, ' ') + 1) : digest(fd, name, mode);
}

/* Owns: the payload as its sources are, from the files stream; invalid with why set. *sources: where they are. */
static jv
expected_payload(const char *path, jv *sources)
{
	struct am_stream in = { .fp = fopen(path, "re"), .name = path };
	jv map = jv_object(), rec, value;
	int got, rc = 0;

	if (in.fp == NULL) {
		cannot("cannot open", path);
		jv_free(map);
		return jv_invalid();
	}
	while ((got = am_next(&in, &rec)) > 0) {
		const char *name = am_str(rec, "path"), *source = am_str(rec, "source"), *mode = am_str(rec, "mode");
		struct stat st;
		int fd = -1;

		if (name == NULL || strncmp(name, "payload/", 8) != 0 || am_has(rec, "directory")) {
			jv_free(rec);
			continue;
		}
		if (source == NULL || mode == NULL) {
			snprintf(why, sizeof why, "%s:%ld: a payload file without source or mode", path, in.line);
			rc = -1;
		} else if ((fd = open(source, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0 || fstat(fd, &st) != 0) {
			rc = cannot("its source", source);
		} else if (!S_ISREG(st.st_mode)) {
			snprintf(why, sizeof why, "its source %s is no regular file", am_quotes(source));
			rc = -1;
		} else {
			value = digest(fd, source, (unsigned)strtoul(mode, NULL, 8));
			rc = jv_is_valid(value) ? 0 : -1;
			map = am_set(map, name + 8, value);
			*sources = am_set_str(*sources, name + 8, source);
		}
		if (fd >= 0)
			close(fd);
		jv_free(rec);
		if (rc != 0)
			break;
	}
	if (got < 0) {
		snprintf(why, sizeof why, "the list of the payload's sources: %s", am_stream_why(&in));
		rc = -1;
	}
	if (got > 0)
		free(in.buf);
	fclose(in.fp);
	if (rc == 0)
		return map;
	jv_free(map);
	return jv_invalid();
}

/* Adds every file below an open directory, which is closed. 0, or -1 with why set. */
static int
walk(int fd, const char *prefix, jv *map, jv expected, jv sources, int depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	int rc = 0;

	if (dir == NULL || depth > DEPTH_MAX) {
		if (dir != NULL)
			errno = ELOOP;
		cannot("the installed directory", prefix);
		dir != NULL ? closedir(dir) : close(fd);
		return -1;
	}
	while (rc == 0 && (errno = 0, e = readdir(dir)) != NULL) {
		char target[4096], *name;
		struct stat st;
		ssize_t n;
		int child;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (asprintf(&name, "%s%s", prefix, e->d_name) < 0)
			abort();
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
			rc = cannot("the installed file", name);
		} else if (S_ISLNK(st.st_mode)) {
			if ((n = readlinkat(fd, e->d_name, target, sizeof target - 1)) < 0)
				rc = cannot("the installed link", name);
			else {
				target[n] = '\0';
				*map = am_set(*map, name, jv_string_fmt("symlink to %s", target));
			}
		} else if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
			*map = am_set(*map, name, jv_string("neither a file nor a directory"));
		} else if ((child = am_open_beneath(fd, e->d_name, O_RDONLY | O_NONBLOCK, 0)) < 0) {
			rc = cannot("the installed file", name);
		} else if (S_ISDIR(st.st_mode)) {
			char *below;

			if (asprintf(&below, "%s/", name) < 0)
				abort();
			rc = walk(child, below, map, expected, sources, depth + 1);
			free(below);
		} else {
			jv value = digest_of_installed(child, name, st.st_mode & 07777, expected, sources);

			close(child);
			rc = jv_is_valid(value) ? 0 : -1;
			*map = am_set(*map, name, value);
		}
		free(name);
	}
	if (rc == 0 && errno != 0)
		rc = cannot("the installed directory", prefix);
	closedir(dir);
	return rc;
}

static void
check_payload(struct am_checks *out, int home, const char *sources)
{
	struct am_check c = { .section = "install", .id = "I1", .claim = "the payload is exactly its sources",
	    .provenance = "the payload's sources",
	    .remedy = "every source and every installed file must be readable" };
	int fd, rc = 0;
	jv where = jv_object();

	c.actual = jv_object();
	c.expected = expected_payload(sources, &where);
	if (!jv_is_valid(c.expected)) {
		jv_free(where);
		am_check_unknown(out, &c, why);
		return;
	}
	fd = am_open_beneath(home, "payload", O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0)
		rc = walk(fd, "", &c.actual, c.expected, where, 0);
	else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		rc = cannot("the installed directory", "payload");
	jv_free(where);
	if (rc != 0) {
		am_check_unknown(out, &c, why);
		return;
	}
	c.remedy = "publish it again: amap-openshell install --apply; remove by hand what is unexpected";
	c.avoid = "do not edit files below payload/: every member runs them";
	am_check_equal(out, &c);
}

static void
check_layout(struct am_checks *out, int home)
{
	static const char *const layout[] = { "payload", "payload/bin", "roster", "instances", "policies", "commands",
	    "router-state" };
	struct am_check c = { .section = "install", .id = "I2", .claim = "every directory of the layout is there",
	    .provenance = "the layout of a home",
	    .remedy = "make what is missing: amap-openshell install --apply" };
	struct stat st;

	c.expected = jv_array();
	c.actual = jv_array();
	for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++) {
		int fd = am_open_beneath(home, layout[i], O_PATH | O_DIRECTORY, 0);

		c.expected = jv_array_append(c.expected, jv_string(layout[i]));
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			c.actual = jv_array_append(c.actual, jv_string(layout[i]));
		if (fd >= 0)
			close(fd);
	}
	am_check_equal(out, &c);
}

/* Owns. */
static jv
member_names(const struct am_members *members)
{
	jv names = jv_array();

	for (size_t i = 0; i < members->n; i++)
		names = jv_array_append(names, jv_string(members->v[i].name));
	return names;
}

static void
check_recorded(struct am_checks *out, const char *home, const struct am_members *members)
{
	struct am_check c = { .section = "install", .id = "I3", .claim = "every member is recorded, and nobody else",
	    .provenance = "fleet.json",
	    .remedy = "fleet.json and membership.json must be readable and sound; provision the members" };
	char *path;
	struct am_membership record;
	struct am_names names = { NULL, 0, 0 };
	int rc;

	if (asprintf(&path, "%s/membership.json", home) < 0)
		abort();
	rc = am_membership_read(&record, path);
	if (members->why[0] != '\0') {
		am_check_unknown(out, &c, members->why);
	} else if (rc != 0) {
		am_check_unknown(out, &c, record.why);
	} else if (record.absent) {
		am_check_unknown(out, &c, "membership.json is absent");
	} else {
		c.expected = member_names(members);
		c.actual = jv_array();
		am_membership_names(&record, &names);
		for (size_t i = 0; i < names.n; i++)
			c.actual = jv_array_append(c.actual, jv_string(names.v[i]));
		am_names_free(&names);
		c.remedy = "provision who is missing; deprovision who is no member any more";
		c.avoid = "do not edit membership.json by hand";
		am_check_equal(out, &c);
	}
	am_membership_free(&record);
	free(path);
}

static void
check_strays(struct am_checks *out, const struct am_members *members, jv answers, int may_be_cut)
{
	struct am_check c = { .section = "install", .id = "I4", .claim = "no other sandbox is in the fleet's workspace",
	    .provenance = "fleet.json", .remedy = "make \"sandbox list --all-workspaces --names\" work" };
	jv names, fleet;

	if (members->why[0] != '\0') {
		c.remedy = "fleet.json must be sound: amap-fleet says what is wrong with it";
		am_check_unknown(out, &c, members->why);
		return;
	}
	names = am_listed(answers, members->v[0].workspace, may_be_cut);
	if (!jv_is_valid(names)) {
		am_check_unknown(out, &c, am_json_why(names));
		return;
	}
	fleet = member_names(members);
	c.expected = jv_array();
	c.actual = jv_array();
	jv_array_foreach(names, i, name) {
		int member = 0;

		jv_array_foreach(fleet, k, other)
			member |= jv_equal(jv_copy(name), other);
		if (!member)
			c.actual = jv_array_append(c.actual, jv_copy(name));
		jv_free(name);
	}
	jv_free(fleet);
	jv_free(names);
	c.remedy = "delete the named sandbox, or put it into fleet.json and provision it";
	am_check_equal(out, &c);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "home", required_argument, NULL, 'H' },
		{ "payload", required_argument, NULL, 'p' },
		{ "members", required_argument, NULL, 'm' },
		{ "list-may-be-cut", no_argument, NULL, 'l' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *home = NULL, *payload = NULL, *members_path = NULL;
	struct am_checks out = { .fp = stdout };
	int ch, fd, may_be_cut = 0;
	struct am_members members;
	jv answers;

	am_prog = "amap-probe-install";
	while ((ch = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (ch) {
		case 'H': home = optarg; break;
		case 'p': payload = optarg; break;
		case 'm': members_path = optarg; break;
		case 'l': may_be_cut = 1; break;
		default: am_std_option(ch, usage);
		}
	}
	if (home == NULL || payload == NULL || members_path == NULL)
		am_usage(usage);
	answers = am_answers_read(argv + optind, argc - optind);
	if (!jv_is_valid(answers))
		am_diex("%s", am_json_why(answers));
	if ((fd = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		am_die("%s", am_quotes(home));
	am_members_read(&members, members_path);
	check_payload(&out, fd, payload);
	check_layout(&out, fd);
	check_recorded(&out, home, &members);
	check_strays(&out, &members, answers, may_be_cut);
	am_members_free(&members);
	jv_free(answers);
	close(fd);
	return am_finish(am_check_end(&out));
}
