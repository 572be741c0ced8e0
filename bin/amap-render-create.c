/* amap-render-create - print the commands that create the members' sandboxes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "lane.h"
#include "render.h"
#include "utf8.h"

static const char usage[] =
    "usage: amap-render-create (--member NAME [--json] | --files) [--image IMAGE] [--restart-policy] [MEMBERS]\n"
    "Reads a members stream (default: standard input) and prints create commands.\n"
    "  --member NAME     the command of this member, one line for sh\n"
    "  --json            its words as a JSON array instead\n"
    "  --files           a files stream with the scripts of all members\n"
    "  --image IMAGE     the image of the sandboxes (default: amap-openshell-agent)\n"
    "  --restart-policy  let the gateway restart a sandbox that failed; OpenShell 0.1.2 cannot\n";

struct job {
	const char *image;
	int files, json, restart_policy;
	struct am_buf text;	/* of the member at hand; the one artifact is printed when the stream was sound */
	struct am_buf record;
};

static void
json_words(struct am_buf *out, const struct am_words *words)
{
	const char *s = words->text.s;

	for (size_t i = 0; i < words->n; i++, s += strlen(s) + 1) {
		am_buf_byte(out, i == 0 ? '[' : ',');
		am_json_string(out, s, strlen(s), AM_COMPACT);
	}
	am_buf_strings(out, "]\n");
}

static int
render(const struct am_member *m, void *arg, char *why, size_t size)
{
	struct job *job = arg;
	struct am_words words;
	struct am_rendering r = { .member = m, .words = &words };
	char *problems, path[64];
	int rc = 0;

	am_render_words(&words, m, job->image, job->restart_policy);
	job->text.n = 0;
	if ((problems = am_render_problems(&r)) != NULL) {
		snprintf(why, size, "%s: not rendered: %s", m->name, problems);
		free(problems);
		rc = -1;
	} else if (job->json)
		json_words(&job->text, &words);
	else if ((rc = am_render_script(&job->text, &words)) != 0)
		snprintf(why, size, "%s: not rendered: a word of the command holds a newline", m->name);
	free(words.text.s);
	if (!job->files || rc != 0)
		return rc;
	snprintf(path, sizeof path, "commands/create-%s.sh", m->name);
	job->record.n = 0;
	am_file_record(&job->record, path, job->text.s, job->text.n);
	fwrite(job->record.s, 1, job->record.n, stdout);
	return 0;
}

/* Not empty, and nothing that would end or split the word. */
static int
image_is_sound(const char *image)
{
	uint32_t c;
	int n;

	if (*image == '\0')
		return 0;
	for (; *image != '\0'; image += n)
		if ((n = am_utf8_next(image, strlen(image), &c)) < 0 || c == ' ' || !am_printable(c))
			return 0;
	return 1;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "member", required_argument, NULL, 'm' },
		{ "json", no_argument, NULL, 'j' },
		{ "files", no_argument, NULL, 'f' },
		{ "image", required_argument, NULL, 'i' },
		{ "restart-policy", no_argument, NULL, 'r' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	struct job job = { .image = "amap-openshell-agent" };
	const char *member = NULL;
	char why[1024];
	long n;
	int c;

	am_prog = "amap-render-create";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'm': member = optarg; break;
		case 'j': job.json = 1; break;
		case 'f': job.files = 1; break;
		case 'i': job.image = optarg; break;
		case 'r': job.restart_policy = 1; break;
		default: am_std_option(c, usage);
		}
	}
	if ((member == NULL) == !job.files || (job.json && job.files) || argc - optind > 1)
		am_usage(usage);
	if (!image_is_sound(job.image))
		am_diex("--image \"%s\": it is empty or holds white space", am_quotes(job.image));
	n = am_members_each(argv[optind], member, render, &job, why, sizeof why);
	if (n < 0)
		am_diex("%s", why);
	if (job.files)
		am_put_end(stdout, n);
	else if (n > 0)
		fwrite(job.text.s, 1, job.text.n, stdout);
	else
		am_warnx("%s: not one of the members", am_quotes(member));
	free(job.text.s);
	free(job.record.s);
	return am_finish(job.files || n > 0 ? AM_OK : AM_PROBLEM);
}
