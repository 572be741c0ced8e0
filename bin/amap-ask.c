/*
 * amap-ask - run commands that only look, and record what they answered.
 *
 * A command is run once, or once for each record of a stream with words of
 * the record in its arguments; several at a time, each without standard
 * input, under a time limit, and killed with all it started when that is
 * over. What it printed is data for the probes (amap-probe-*), which decide;
 * a command that fails here is an answer too. Page: amap-ask(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask/words.h"
#include "child.h"
#include "diag.h"
#include "id.h"
#include "json.h"
#include "utf8.h"

#define JOBS_MAX 64
#define TIMEOUT_MAX 86400
#define OUT_MAX (2u << 20)	/* bytes of standard output; escaped, one record still fits in a line */
#define ERR_MAX (64u << 10)	/* of standard error; the rest is dropped */
#define GRACE_MS 2000		/* how long a command's children may hold its output open */

static const char usage[] =
"usage: amap-ask [--each FILE [--of ASK]] [--jobs N] [--timeout SECONDS] NAME -- COMMAND [ARGUMENT ...]\n"
"       amap-ask --batch FILE [--jobs N] [--timeout SECONDS]\n"
"\n"
"Runs COMMAND and prints its answer as a stream of records (amap-answers(5)).\n"
"\n"
"  --each FILE        once for each record of this stream (-: standard input),\n"
"                     with {KEY}, {stdout.KEY} and {stdout} replaced\n"
"  --of ASK           only for the records that are answers of this name\n"
"  --batch FILE       the questions of this stream: ask, subject, argv, timeout\n"
"  --jobs N           at most N at a time (default 4)\n"
"  --timeout SECONDS  for each command (default 120)\n";

enum state { WAITING, RUNNING, GONE, DONE };	/* GONE: ended, its output may still be open */

struct job {
	jv rec;			/* the answer so far, owned */
	struct am_words words;	/* none: it is not run */
	int timeout;		/* seconds */
	enum state state;
	struct am_child child;
	long long deadline;	/* of am_now */
	siginfo_t how;		/* it ended */
	int timed_out;
};

static struct job *jobs;
static size_t job_count;
static int wake[2];		/* the signal handler's pipe */

static void
on_signal(int sig)
{
	int saved = errno;
	unsigned char b = (unsigned char)sig;

	(void)!write(wake[1], &b, 1);
	errno = saved;
}

/* ---- answers ---- */

static void
answer(struct job *j, int status, const char *reason, jv out, jv err)
{
	if (!am_has(j->rec, "argv"))
		j->rec = am_set(j->rec, "argv", jv_array());
	j->rec = am_set(j->rec, "status", status < 0 ? jv_null() : jv_number(status));
	j->rec = am_set_str(j->rec, "reason", reason);
	j->rec = am_set(j->rec, "stdout", out);
	j->rec = am_set(j->rec, "stderr", err);
	j->state = DONE;
}

static struct job *
new_job(const char *name, jv subject, int timeout)
{
	struct job *j;

	if ((jobs = realloc(jobs, (job_count + 1) * sizeof *jobs)) == NULL)
		abort();
	j = &jobs[job_count++];
	*j = (struct job){ .timeout = timeout };
	j->rec = am_set_str(jv_object(), "ask", name);
	j->rec = am_set(j->rec, "subject", subject);
	return j;
}

static void
set_words(struct job *j, struct am_words *w)
{
	jv argv = jv_array();

	for (size_t i = 0; i < w->n; i++)
		argv = jv_array_append(argv, jv_string(w->v[i]));
	j->rec = am_set(j->rec, "argv", argv);
	j->words = *w;
}

/* Text is UTF-8 without a NUL: the length of as much of it as is. */
static size_t
text_length(const char *s, size_t len)
{
	size_t p = 0;
	uint32_t c;
	int n;

	while (p < len && (n = am_utf8_next(s + p, len - p, &c)) > 0 && c != 0)
		p += (size_t)n;
	return p;
}

static void
finish(struct job *j)
{
	const struct am_output *o = j->child.out;
	size_t n = text_length(o[0].bytes, o[0].len);
	int text = n == o[0].len && !o[0].cut;
	jv out = text ? jv_string_sized(n == 0 ? "" : o[0].bytes, (int)n) : jv_null();
	jv err = jv_string_sized(o[1].bytes == NULL ? "" : o[1].bytes, (int)text_length(o[1].bytes, o[1].len));
	char reason[64];

	if (j->timed_out) {
		answer(j, -1, "ran out of time", out, err);
	} else if (o[0].cut) {
		answer(j, -1, "printed too much", out, err);
	} else if (j->how.si_code != CLD_EXITED) {
		snprintf(reason, sizeof reason, "killed by signal %d", j->how.si_status);
		answer(j, -1, reason, out, err);
	} else {
		answer(j, j->how.si_status, text ? NULL : "its output is not text", out, err);
	}
	am_child_free(&j->child);
}

/* ---- running ---- */

static void
start(struct job *j)
{
	char reason[128];

	if (am_child_start(&j->child, j->words.v) != 0) {
		snprintf(reason, sizeof reason, "cannot be started: %s", strerror(errno));
		answer(j, -1, reason, jv_null(), jv_null());
		return;
	}
	j->state = RUNNING;
	j->deadline = am_now() + j->timeout * 1000LL;
}

static void
read_output(struct job *j, int i)
{
	struct am_output *o = &j->child.out[i];
	int was_cut = o->cut;

	am_output_read(o, i == 0 ? OUT_MAX : ERR_MAX, AM_FIRST);
	if (i == 0 && o->cut && !was_cut)
		kill(-j->child.pid, SIGKILL);
}

/* Where a job stands now: has it ended, has its time, is its answer whole? */
static void
advance(struct job *j)
{
	if (j->state == RUNNING) {
		memset(&j->how, 0, sizeof j->how);
		/* left a zombie until its answer is whole: its group keeps its number */
		if (waitid(P_PID, (id_t)j->child.pid, &j->how, WEXITED | WNOHANG | WNOWAIT) == 0 && j->how.si_pid == j->child.pid) {
			j->state = GONE;
			j->deadline = am_now() + GRACE_MS;
		} else if (j->deadline <= am_now() && !j->timed_out) {
			j->timed_out = 1;
			kill(-j->child.pid, SIGKILL);
			j->deadline = am_now() + 60000;		/* the kernel's part of it */
		}
	}
	if (j->state != GONE || ((j->child.out[0].fd >= 0 || j->child.out[1].fd >= 0) && j->deadline > am_now()))
		return;
	kill(-j->child.pid, SIGKILL);		/* nothing that it left behind outlives its answer */
	waitpid(j->child.pid, NULL, 0);
	finish(j);
}

/* Another signal than a child's: end everything, then ourselves the same way. */
static void
heed_signals(void)
{
	unsigned char sig;

	while (read(wake[0], &sig, 1) == 1) {
		if (sig == SIGCHLD)
			continue;
		for (size_t i = 0; i < job_count; i++)
			if (jobs[i].state == RUNNING || jobs[i].state == GONE)
				kill(-jobs[i].child.pid, SIGKILL);
		signal(sig, SIG_DFL);
		raise(sig);
	}
}

static void
run_all(size_t parallel)
{
	struct pollfd fds[2 * JOBS_MAX + 1];
	struct { struct job *job; int i; } who[2 * JOBS_MAX];
	size_t first = 0, next = 0, active = 0;		/* jobs before first are printed, from next on not begun */

	while (first < job_count) {
		long long wait = 60000;
		nfds_t n = 0;

		for (; next < job_count && active < parallel; next++) {
			if (jobs[next].state == WAITING)
				start(&jobs[next]);
			active += jobs[next].state == RUNNING;
		}
		for (; first < next && jobs[first].state == DONE; first++) {
			am_put(stdout, jobs[first].rec);	/* in the order of the records, whoever ended first */
			am_words_free(&jobs[first].words);
		}
		if (active == 0)
			continue;
		for (size_t k = first; k < next; k++) {
			long long left = jobs[k].deadline - am_now();

			if (jobs[k].state != RUNNING && jobs[k].state != GONE)
				continue;
			wait = left < 0 ? 0 : left < wait ? left : wait;
			for (int i = 0; i < 2; i++)
				if (jobs[k].child.out[i].fd >= 0) {
					who[n].job = &jobs[k];
					who[n].i = i;
					fds[n++] = (struct pollfd){ jobs[k].child.out[i].fd, POLLIN, 0 };
				}
		}
		fds[n] = (struct pollfd){ wake[0], POLLIN, 0 };
		if (poll(fds, n + 1, (int)wait + 1) < 0 && errno != EINTR)
			am_die("poll");
		heed_signals();
		for (nfds_t k = 0; k < n; k++)
			if (fds[k].revents != 0)
				read_output(who[k].job, who[k].i);
		for (size_t k = first; k < next; k++)
			if (jobs[k].state == RUNNING || jobs[k].state == GONE) {
				advance(&jobs[k]);
				active -= jobs[k].state == DONE;
			}
	}
}

/* ---- questions ---- */

/* One question for a record of the stream of --each. */
static void
question_about(jv rec, const struct am_stream *in, const char *name, char *const template[], int timeout)
{
	const char *subject = am_str(rec, "name");
	struct am_words w = { NULL, 0 };
	char reason[160];
	struct job *j;

	if (subject == NULL && (subject = am_str(rec, "subject")) == NULL)
		am_diex("%s:%ld: the record has neither name nor subject", in->name, in->line);
	j = new_job(name, jv_string(subject), timeout);
	if (am_words_fill(&w, template, rec, reason, sizeof reason) == 0) {
		set_words(j, &w);
	} else {
		am_words_free(&w);
		answer(j, -1, reason, jv_null(), jv_null());
	}
}

/* One question that a record of the stream of --batch is. */
static void
question_is(jv rec, const struct am_stream *in, int timeout)
{
	const char *name = am_str(rec, "ask"), *subject = am_str(rec, "subject");
	jv argv = am_get(rec, "argv", JV_KIND_ARRAY), limit = am_get(rec, "timeout", JV_KIND_NUMBER);
	struct am_words w = { NULL, 0 };

	if (jv_is_valid(limit) && jv_number_value(limit) >= 1 && jv_number_value(limit) <= TIMEOUT_MAX)
		timeout = (int)jv_number_value(limit);
	if (name == NULL || !jv_is_valid(argv))
		am_diex("%s:%ld: the record has no ask or no argv", in->name, in->line);
	jv_array_foreach(argv, i, word) {
		if (jv_get_kind(word) != JV_KIND_STRING ||
		    strlen(jv_string_value(word)) != (size_t)jv_string_length_bytes(jv_copy(word)))
			am_diex("%s:%ld: a word of argv is no string or holds a NUL", in->name, in->line);
		am_words_add(&w, strdup(jv_string_value(word)));
		jv_free(word);
	}
	if (w.n == 0)
		am_diex("%s:%ld: argv is empty", in->name, in->line);
	set_words(new_job(name, subject == NULL ? jv_null() : jv_string(subject), timeout), &w);
	jv_free(argv);
	jv_free(limit);
}

/* template NULL: the records are the questions; of NULL: all records count. */
static void
read_records(const char *path, const char *of, const char *name, char *const template[], int timeout)
{
	int use_stdin = strcmp(path, "-") == 0;
	struct am_stream in = { .fp = use_stdin ? stdin : fopen(path, "re"), .name = use_stdin ? "<stdin>" : path };
	jv rec;
	int got;

	if (in.fp == NULL)
		am_die("%s", path);
	while ((got = am_next(&in, &rec)) > 0) {
		const char *ask = am_str(rec, "ask");

		if (template == NULL)
			question_is(rec, &in, timeout);
		else if (of == NULL || (ask != NULL && strcmp(ask, of) == 0))
			question_about(rec, &in, name, template, timeout);
		jv_free(rec);
	}
	if (got < 0)
		am_diex("%s", am_stream_why(&in));
	if (!use_stdin)
		fclose(in.fp);
}

static long
number(const char *text, long max, const char *option)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || v < 1 || v > max)
		am_diex("%s %s: a number from 1 to %ld is needed", option, am_quotes(text), max);
	return v;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "batch", required_argument, NULL, 'b' },
		{ "each", required_argument, NULL, 'e' },
		{ "of", required_argument, NULL, 'o' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "timeout", required_argument, NULL, 't' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	const char *each = NULL, *of = NULL, *batch = NULL;
	long parallel = 4, timeout = 120;
	int c;

	am_prog = "amap-ask";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'b': batch = optarg; break;
		case 'e': each = optarg; break;
		case 'o': of = optarg; break;
		case 'j': parallel = number(optarg, JOBS_MAX, "--jobs"); break;
		case 't': timeout = number(optarg, TIMEOUT_MAX, "--timeout"); break;
		default: am_std_option(c, usage);
		}
	}
	if (batch != NULL ? argc != optind || each != NULL || of != NULL
	    : argc - optind < 3 || strcmp(argv[optind + 1], "--") != 0 || (of != NULL && each == NULL))
		am_usage(usage);
	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0)
		am_die("pipe");
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		sigaction(signals[i], &sa, NULL);
	if (batch != NULL) {
		read_records(batch, NULL, NULL, NULL, (int)timeout);
	} else if (each != NULL) {
		read_records(each, of, argv[optind], argv + optind + 2, (int)timeout);
	} else {
		struct am_words w = { NULL, 0 };

		for (c = optind + 2; c < argc; c++)
			am_words_add(&w, strdup(argv[c]));
		set_words(new_job(argv[optind], jv_null(), (int)timeout), &w);
	}
	run_all((size_t)parallel);
	am_put_end(stdout, (long)job_count);
	free(jobs);
	return am_finish(AM_OK);
}
