/*
 * amap-probe-inside - what the two probes that ran inside each sandbox mean.
 *
 * Checks M6 and M7 of spec verify, section 7, from the answers "write"
 * (amap-probe-write of a fresh name in the inbox lane) and "delivery"
 * (amap-probe-running inbox-delivery), one each a member. Page:
 * amap-probe-inside(1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "check.h"
#include "diag.h"
#include "members.h"

static const char usage[] =
"usage: amap-probe-inside --members FILE [ANSWERS ...]\n"
"\n"
"Prints two checks a member: a write to its inbox is denied by the mount;\n"
"its delivery daemon runs.\n"
"\n"
"  --members FILE  the fleet's members (amap-lanes)\n";

/* The last line with anything on it, without its blanks; the result is from malloc. */
static char *
last_word(const char *text)
{
	const char *from = "", *p = text;
	size_t n, len = 0;
	char *word;

	if (text == NULL)
		text = p = "";
	for (; *p != '\0'; p += n + (p[n] == '\n')) {
		size_t blank = strspn(p, " \t\r");

		n = strcspn(p, "\n");
		if (blank >= n)
			continue;
		from = p + blank;
		for (len = n - blank; strchr(" \t\r", from[len - 1]) != NULL; )
			len--;
	}
	if ((word = strndup(from, len)) == NULL)
		abort();
	return word;
}

static void
check_write(struct am_checks *out, const struct am_member *m, jv answers)
{
	char claim[80];
	struct am_check c = { .section = "members", .id = "M6", .subject = m->name, .claim = claim,
	    .provenance = "the errno of a read-only mount", .remedy = "make exec into the sandbox work, then verify again" };
	struct am_asked a;
	int ok = am_asked(answers, "write", m->name, &a);
	char *word = last_word(a.out);

	snprintf(claim, sizeof claim, "%s: a write to its inbox is denied by the mount", m->name);
	if (!ok && strcmp(word, "OPENED") != 0) {
		am_check_unknown(out, &c, a.why);
	} else if (word[0] == '\0') {
		am_check_unknown(out, &c, "the probe inside printed nothing");
	} else {
		c.remedy = "stop the member and make it anew: its inbox must be a read-only mount (see its mounts above)";
		c.avoid = "do not make the directory read-only on the host: the router must write there";
		c.expected = jv_string("EROFS");
		c.actual = jv_string(word);
		am_check_equal(out, &c);
	}
	free(word);
}

static void
check_delivery(struct am_checks *out, const struct am_member *m, jv answers)
{
	char claim[80], remedy[120];
	struct am_check c = { .section = "members", .id = "M7", .subject = m->name, .claim = claim,
	    .provenance = "the payload's main process, which keeps it running",
	    .remedy = "make exec into the sandbox work, then verify again" };
	struct am_asked a;
	int ok = am_asked(answers, "delivery", m->name, &a);
	char *word = last_word(a.out);

	snprintf(claim, sizeof claim, "%s: its delivery daemon runs", m->name);
	if (!ok) {
		am_check_unknown(out, &c, a.why);
	} else if (word[0] == '\0' || word[strspn(word, "0123456789")] != '\0') {
		am_check_unknown(out, &c, "the probe inside printed no number");
	} else {
		snprintf(remedy, sizeof remedy, "look at \"sandbox logs %s\", then stop and start the sandbox", m->name);
		c.remedy = remedy;
		c.expected = jv_true();
		c.actual = word[strspn(word, "0")] == '\0' ? jv_false() : jv_true();
		am_check_equal(out, &c);
	}
	free(word);
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "members", required_argument, NULL, 'm' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct am_checks out = { .fp = stdout };
	const char *members_path = NULL;
	struct am_members members;
	jv answers;
	int ch;

	am_prog = "amap-probe-inside";
	while ((ch = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (ch) {
		case 'm': members_path = optarg; break;
		default: am_std_option(ch, usage);
		}
	}
	if (members_path == NULL)
		am_usage(usage);
	answers = am_answers_read(argv + optind, argc - optind);
	if (!jv_is_valid(answers))
		am_diex("%s", am_json_why(answers));
	am_members_read(&members, members_path);	/* not known: amap-probe-identity says so, once */
	for (size_t i = 0; i < members.n; i++) {
		check_write(&out, &members.v[i], answers);
		check_delivery(&out, &members.v[i], answers);
	}
	am_members_free(&members);
	jv_free(answers);
	return am_finish(am_check_end(&out));
}
