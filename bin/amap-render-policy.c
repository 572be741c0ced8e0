/* amap-render-policy - print the sandbox policies of members */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "lane.h"
#include "render.h"

static const char usage[] =
    "usage: amap-render-policy (--member NAME | --files) --run-as UID:GID [MEMBERS]\n"
    "Reads a members stream (default: standard input) and prints sandbox policies.\n"
    "  --member NAME     the policy of this member\n"
    "  --files           a files stream with the policies of all members\n"
    "  --run-as UID:GID  whom the processes of the sandboxes run as; neither may be 0\n";

struct job {
	struct am_run_as run_as;
	int files;
	struct am_buf text;	/* of the member at hand; the one artifact is printed when the stream was sound */
	struct am_buf sound;	/* the last text that was checked for rows of the table */
	struct am_buf record;
};

/*
 * The policy is read back and compared with the rows. Members with the rows of
 * the table have the same text, which is read back once.
 */
static int
check(struct job *job, const struct am_member *m, char *why, size_t size)
{
	struct am_rendering r = { .member = m, .policy = &job->text, .run_as = &job->run_as };
	int own = am_rows_are_own(m);
	char *problems;

	if (own && job->sound.n == job->text.n && memcmp(job->sound.s, job->text.s, job->text.n) == 0)
		return 0;
	if ((problems = am_render_problems(&r)) != NULL) {
		snprintf(why, size, "%s: not rendered: %s", m->name, problems);
		free(problems);
		return -1;
	}
	if (own) {
		job->sound.n = 0;
		am_buf_add(&job->sound, job->text.s, job->text.n);
	}
	return 0;
}

static int
render(const struct am_member *m, void *arg, char *why, size_t size)
{
	struct job *job = arg;
	char path[64];

	job->text.n = 0;
	am_render_policy(&job->text, m, &job->run_as);
	if (check(job, m, why, size) != 0)
		return -1;
	if (!job->files)
		return 0;
	snprintf(path, sizeof path, "policies/%s.yaml", m->name);
	job->record.n = 0;
	am_file_record(&job->record, path, job->text.s, job->text.n);
	fwrite(job->record.s, 1, job->record.n, stdout);
	return 0;
}

int
main(int argc, char *argv[])
{
	static const struct option longopts[] = {
		{ "member", required_argument, NULL, 'm' },
		{ "files", no_argument, NULL, 'f' },
		{ "run-as", required_argument, NULL, 'r' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *member = NULL, *run_as = NULL;
	struct job job = { 0 };
	char why[1024];
	long n;
	int c;

	am_prog = "amap-render-policy";
	while ((c = getopt_long(argc, argv, "+", longopts, NULL)) != -1) {
		switch (c) {
		case 'm': member = optarg; break;
		case 'f': job.files = 1; break;
		case 'r': run_as = optarg; break;
		default: am_std_option(c, usage);
		}
	}
	if ((member == NULL) == !job.files || run_as == NULL || argc - optind > 1)
		am_usage(usage);
	if (am_run_as_parse(run_as, &job.run_as) != 0)
		am_diex("--run-as %s: it is not UID:GID with two numbers from 1 to 4294967294", am_quotes(run_as));
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
	free(job.sound.s);
	free(job.record.s);
	return am_finish(job.files || n > 0 ? AM_OK : AM_PROBLEM);
}
