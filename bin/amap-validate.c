/*
 * amap-validate - check AMAP documents against the rules of their class
 *
 * One line for each sound document and for each problem of the others
 * (spec protocol, sections 9 and 13).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "doc.h"
#include "file.h"
#include "json.h"

static const char usage[] =
    "usage: amap-validate [-q] [--class CLASS] [FILE ...] | --list\n"
    "  --class CLASS   the class of every document; else the prefix of each file's\n"
    "                  name selects it (\"request-1.json\"); needed for standard input\n"
    "  -q, --quiet     print nothing, only exit\n"
    "  --list          print the classes, and what no validator can check\n";

/* What holds or fails outside the bytes of one document (spec protocol, section 14). */
static const char *const unchecked[] = {
	"1   the sidecar directory holds a file for each descriptor and no other, and is absent when there are no descriptors",
	"2   the bytes of each sidecar have the size and the digest that its descriptor states",
	"3   a filename is cleaned before it is shown, and nothing ever opens it as a path",
	"4   entry N of the array speaks of the file named N in the directory",
	"5   the directory of delivered sidecars is named after the runtime's notice id, never after an id of the mail provider",
	"6   the runtime keeps its working copies where no sandbox can reach them",
	"7   sidecars are in place before the request is, and each file appears whole by a rename",
	"8   limits hold: permitted types, sizes, room on the volume",
	"9   a message that was withheld has no body on disk",
	"10  a connector whose inbound tree cannot be written starts, relays, resolves bodies and submits",
	"11  the runtime judges and composes from one private copy that it took first",
	"12  the runtime writes through pinned directories, follows no link on the way, and creates the last name exclusively",
	"13  the runtime reads through no link, does not block, takes regular files only, and stops at its limits",
	"14  one connector writes a namespace and one runtime drains it, at any moment",
	"15  line ends and NUL are kept out of mail headers once more when a message is composed",
	"16a who takes in traffic from anybody cannot write the peer tree; a write from there fails",
	"16b traffic of a shared transport waits apart from both trees and from every agent, and is placed once",
	"16c signatures are checked by a part that may write the peer tree and hashes the bytes itself",
	"16d a sender cannot state its own exposure: such a request is rejected, and a demoted message loses the statement",
	"16e a peer notice names what it replies to exactly when the ledger resolved it; an unknown key is rejected, not dropped",
	"16f a peer message is acted on once at most, and is held when its target is not clear",
};

static void
list(void)
{
	printf("classes (name, prefix, content):\n");
	for (const struct am_doc_class *c = am_doc_classes; c->name != NULL; c++)
		printf("  %-15s %-10s %s\n", c->name, c->prefix, c->about);
	printf("not checked here:\n");
	for (size_t i = 0; i < sizeof unchecked / sizeof unchecked[0]; i++)
		printf("  %s\n", unchecked[i]);
}

static int
judge(const char *name, const char *doc_class, jv doc, int quiet)
{
	jv problems = am_doc_problems(doc_class, doc);
	int n = jv_array_length(jv_copy(problems));
	int refused = am_doc_version_refused(doc_class, doc);

	if (!quiet && refused)
		printf("FAIL %s %s version refused: contract_version is not \"2\"\n", name, doc_class);
	else if (!quiet && n == 0)
		printf("PASS %s %s\n", name, doc_class);
	for (int i = 0; i < n && !quiet && !refused; i++) {
		jv p = jv_array_get(jv_copy(problems), i);

		printf("FAIL %s %s %s\n", name, doc_class, jv_string_value(p));
		jv_free(p);
	}
	jv_free(problems);
	return n == 0 && !refused ? AM_OK : AM_PROBLEM;
}

static int
validate(const char *path, const char *doc_class, int quiet)
{
	int from_stdin = strcmp(path, "-") == 0, rc;
	char name[1024];		/* a copy: each member that is quoted after it takes one of the quotes' buffers */
	size_t len;
	char *text;
	jv doc;
	int fd;

	snprintf(name, sizeof name, "%s", from_stdin ? "<stdin>" : am_quotes(path));
	if (doc_class == NULL && !from_stdin)
		doc_class = am_doc_class_of(path);
	if (doc_class == NULL) {
		am_warnx("%s: no class is known for it; name one with --class", name);
		return AM_TROUBLE;
	}
	fd = from_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	text = fd < 0 ? NULL : am_read_fd(fd, AM_JSON_MAX, &len);
	if (text == NULL && errno != EFBIG) {
		am_warn("%s", name);
		rc = AM_TROUBLE;
	} else {
		doc = text == NULL ? jv_invalid_with_msg(jv_string("too large")) : am_json_parse(text, len);
		if (jv_is_valid(doc)) {
			rc = judge(name, doc_class, doc, quiet);
			jv_free(doc);
		} else {
			const char *why = am_json_why(doc);

			if (!quiet)
				printf("FAIL %s %s $: %s\n", name, doc_class, am_quotes(why));
			rc = AM_PROBLEM;
		}
	}
	free(text);
	if (fd >= 0 && !from_stdin)
		close(fd);
	return rc;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "class", required_argument, NULL, 'c' },
		{ "list", no_argument, NULL, 'l' },
		{ "quiet", no_argument, NULL, 'q' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *doc_class = NULL;
	int c, listing = 0, quiet = 0, rc = AM_OK, one;

	am_prog = "amap-validate";
	while ((c = getopt_long(argc, argv, "+q", longopts, NULL)) != -1) {
		switch (c) {
		case 'c':
			if ((doc_class = am_doc_class(optarg)) == NULL)
				am_diex("--class %s: no such class; --list prints them", am_quotes(optarg));
			break;
		case 'l': listing = 1; break;
		case 'q': quiet = 1; break;
		default: am_std_option(c, usage);
		}
	}
	if (listing) {
		if (optind < argc)
			am_usage(usage);
		list();
		return am_finish(AM_OK);
	}
	if (optind == argc)
		rc = validate("-", doc_class, quiet);
	for (; optind < argc; optind++) {
		one = validate(argv[optind], doc_class, quiet);
		rc = one > rc ? one : rc;
	}
	return am_finish(rc);
}
