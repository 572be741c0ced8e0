/*
 * inbox-submit - leave requests for the router in the outbox
 *
 * A tool server for an agent's client (mcp) and the same as a command
 * (spec connector, section 5). It sends nothing: it writes files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connector/place.h"
#include "connector/submit.h"
#include "diag.h"
#include "file.h"
#include "json.h"
#include "mcp.h"

static const char usage[] =
    "usage: inbox-submit mcp | submit --to ADDRESS[,ADDRESS] [option ...] | submit-result NUMBER | peers [QUERY]\n"
    "  --to ADDRESS[,...]   whom to send to\n"
    "  --cc ADDRESS[,...]   who else gets it\n"
    "  --subject TEXT       the subject\n"
    "  --body TEXT          the text; else it is read from standard input\n"
    "  --reply-to-id ID     the id of the message that this one answers\n"
    "  --attach FILE        a file to go with it; up to 16 times\n"
    "$OUTBOX_DIR is the outbox, or $MAILBOX_ROOT_DIR/dropbox.\n";

static const char instructions[] =
    "This server writes requests to send; it sends nothing itself. A request waits in a directory until "
    "the host takes it up. The host alone decides: it may deliver, hold for a person, or reject. `submit` "
    "answers with a number and `queued`, which only says that the request was written. `submit_result` with "
    "that number tells the verdict; a message has gone out only when its outcome is `accepted`. "
    "`queued_for_human` waits for a person and `rejected` was refused.\n"
    "To ANSWER A DELEGATION use `submit` here: `to` is the sender's address (the from-name of the message), "
    "`in_reply_to` is the id on its `message id:` line. SendMessage and other means of the client do not "
    "reach an address of the fleet.\n"
    "Nothing here scans an attachment; the host may refuse one. `peers` looks addresses up.";

#define TEXT(about) "{\"type\":\"string\",\"description\":\"" about "\"}"
#define LIST(about, more) "{\"type\":\"array\",\"items\":{\"type\":\"string\"}," more "\"description\":\"" about "\"}"
#define SCHEMA(properties, required) \
	"{\"type\":\"object\",\"properties\":{" properties "}," required "\"additionalProperties\":false}"

static const struct am_tool tools[] = {
	{
		.name = "submit",
		.description =
		    "Write a request to send a message to other agents or to mail addresses. It is written, not sent: "
		    "the host decides and may hold or reject it. The answer holds `req_id`; only the outcome `accepted` "
		    "from `submit_result` means that it was sent. This is how to ANSWER A DELEGATION: put the sender's "
		    "address (the from-name of the turn) into `to`, and the id from its `message id:` line into "
		    "`in_reply_to`. Do not use SendMessage for that: it cannot reach these addresses. Attachments are "
		    "copied when this is called; nothing scans them.",
		.schema = SCHEMA(
		    "\"to\":" LIST("Addresses of the recipients.", "\"minItems\":1,") ","
		    "\"cc\":" LIST("Addresses that get a copy.", "") ","
		    "\"subject\":" TEXT("One line.") ","
		    "\"body_text\":" TEXT("The message, as plain text.") ","
		    "\"in_reply_to\":" TEXT("The id of the message answered: what stands on its `message id:` line.") ","
		    "\"attachments\":{\"type\":\"array\",\"maxItems\":16,\"description\":\"Files to send along.\","
		    "\"items\":{\"type\":\"object\",\"properties\":{"
		    "\"path\":" TEXT("The file, from the working directory or absolute.") ","
		    "\"filename\":" TEXT("The name to show; else that of the file.") ","
		    "\"media_type\":" TEXT("The type; else told by the name.") "},"
		    "\"required\":[\"path\"],\"additionalProperties\":false}}",
		    "\"required\":[\"to\",\"body_text\"],"),
		.call = am_submit,
	},
	{
		.name = "submit_result",
		.description =
		    "What became of a request. `pending` until the host has decided, for ever if it never does. Else its "
		    "result: `outcome` is `accepted` (sent), `queued_for_human` (held for a person) or `rejected`.",
		.schema = SCHEMA("\"req_id\":" TEXT("The number that submit answered."), "\"required\":[\"req_id\"],"),
		.call = am_submit_result,
	},
	{
		.name = "peers",
		.description =
		    "Look up the addresses of the fleet. It is a directory, NOT AN ALLOWLIST: that somebody is in it says "
		    "nothing about whether a message would be delivered. When `ambiguous` is true, several match: ask the "
		    "user, never pick one. An entry with `self` is your own address. A missing or old list means that "
		    "the members are unknown, not that there are none.",
		.schema = SCHEMA("\"query\":" TEXT("An address, a name, or the beginning or a part of one; empty lists all."), ""),
		.call = am_peers,
	},
	{ .name = NULL }
};

/* Prints the answer's text, or its error; the exit status. */
static int
tell(struct am_answer *answer)
{
	int rc = answer->is_error ? AM_PROBLEM : AM_OK;

	if (answer->is_error)
		am_warnx("%s", answer->text);
	else
		puts(answer->text);
	free(answer->text);
	return am_finish(rc);
}

static jv
split(const char *list)
{
	jv out = jv_array();

	for (;;) {
		size_t n = strcspn(list, ",");

		out = jv_array_append(out, jv_string_sized(list, (int)n));
		if (list[n] == '\0')
			return out;
		list += n + 1;
	}
}

/* Owns the text of standard input. */
static jv
body_from_input(void)
{
	size_t len;
	char *text;
	jv body;

	if (isatty(STDIN_FILENO)) {
		am_warnx("standard input is a terminal: give the text with --body, or pipe it in");
		exit(AM_PROBLEM);
	}
	if ((text = am_read_fd(STDIN_FILENO, AM_JSON_MAX, &len)) == NULL) {
		am_warn("standard input");
		exit(AM_PROBLEM);
	}
	body = jv_string_sized(text, (int)len);
	free(text);
	return body;
}

static int
submit(int argc, char *argv[], const char *outbox)
{
	static const struct option longopts[] = {
		{ "to", required_argument, NULL, 't' },
		{ "cc", required_argument, NULL, 'c' },
		{ "subject", required_argument, NULL, 's' },
		{ "body", required_argument, NULL, 'b' },
		{ "reply-to-id", required_argument, NULL, 'r' },
		{ "attach", required_argument, NULL, 'a' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	jv args = jv_object(), files = jv_array();
	struct am_answer answer = { 0 };
	char copied[64] = "";
	int c, count;

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 't': args = am_set(args, "to", split(optarg)); break;
		case 'c': args = am_set(args, "cc", split(optarg)); break;
		case 's': args = am_set_str(args, "subject", optarg); break;
		case 'b': args = am_set_str(args, "body_text", optarg); break;
		case 'r': args = am_set_str(args, "in_reply_to", optarg); break;
		case 'a': files = jv_array_append(files, jv_string(optarg)); break;
		default: am_std_option(c, usage);
		}
	}
	if (optind != argc || !am_has(args, "to"))
		am_usage(usage);
	if (!am_has(args, "body_text"))
		args = am_set(args, "body_text", body_from_input());
	if ((count = jv_array_length(jv_copy(files))) > 0)
		args = am_set(args, "attachments", jv_copy(files));
	am_submit(args, &answer);
	jv_free(args);
	jv_free(files);
	if (!answer.is_error) {
		if (count > 0)
			snprintf(copied, sizeof copied, "\nAttachments copied: %d", count);
		am_answer(&answer, "Submitted request %s to the relay drop-box (%s/req-%s.json).\n"
		    "Result will appear at: %s/results/%s.json%s", am_submitted(), outbox, am_submitted(),
		    outbox, am_submitted(), copied);
	}
	return tell(&answer);
}

/* The two commands that take one word at most. */
static int
ask(int argc, char *argv[], const char *key, int required, void (*tool)(jv, struct am_answer *))
{
	static const struct option longopts[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	struct am_answer answer = { 0 };
	jv args;
	int c;

	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		am_std_option(c, usage);
	if (argc - optind > 1 || (required && argc - optind != 1))
		am_usage(usage);
	args = am_set_str(jv_object(), key, optind < argc ? argv[optind] : "");
	tool(args, &answer);
	jv_free(args);
	return tell(&answer);
}

static int
serve(int argc)
{
	const struct am_mcp mcp = { .server = "inbox-lab-submit", .instructions = instructions, .tools = tools };

	if (argc > 1)
		am_usage(usage);
	if (am_mcp_serve(&mcp) != 0) {
		am_warn("standard output");
		return AM_TROUBLE;
	}
	return AM_OK;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = { AM_STD_OPTIONS, { NULL, 0, NULL, 0 } };
	const char *command;
	char *outbox;
	int c;

	am_prog = "inbox-submit";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1)
		am_std_option(c, usage);
	if (optind == argc)
		am_usage(usage);
	command = argv[optind];
	argc -= optind;
	argv += optind;
	optind = 0;		/* getopt begins anew with the command's own options */
	if (strcmp(command, "mcp") != 0 && strcmp(command, "submit") != 0 &&
	    strcmp(command, "submit-result") != 0 && strcmp(command, "peers") != 0)
		am_usage(usage);
	am_identity_notice();
	if ((outbox = am_place("OUTBOX_DIR", "dropbox")) == NULL) {
		am_warnx("no outbox: set OUTBOX_DIR or MAILBOX_ROOT_DIR");
		return AM_PROBLEM;
	}
	am_submit_into(outbox);
	switch (command[0]) {
	case 'm':
		return serve(argc);
	case 'p':
		return ask(argc, argv, "query", 0, am_peers);
	default:
		return command[6] == '\0' ? submit(argc, argv, outbox) :
		    ask(argc, argv, "req_id", 1, am_submit_result);
	}
}
