/*
 * diag - what a program says to people, and how it ends.
 *
 * The only room of lib/ that prints or exits. A message is one line on
 * standard error, in one write: `PROG: OBJECT: REASON`. Bytes that come from a file, an
 * agent or a gateway go through am_quote first. A program that is started
 * with a standard descriptor closed cannot use it, nor can a file take its place.
 *
 * Exit status of every program here (launchers have their own, in their
 * pages): 0 yes, 1 no, 2 no answer.
 */
#ifndef AM_DIAG_H
#define AM_DIAG_H

#include <getopt.h>
#include <stddef.h>

enum { AM_OK = 0, AM_PROBLEM = 1, AM_TROUBLE = 2 };

/* Set first thing in main: the program's name, as it stands in messages. */
extern const char *am_prog;

void am_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* adds ": strerror(errno)" */
void am_warnx(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void am_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* adds strerror; exit 2 */
_Noreturn void am_diex(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* exit 2 */

/*
 * A program's usage text: its first line is the synopsis ("usage: ..."), the
 * rest says what the options do. --help prints all of it on standard output
 * and exits 0; a usage error prints the first line on standard error and
 * exits 2.
 */
_Noreturn void am_usage(const char *usage);

/* Rows for the option table, and the default case of its switch. */
#define AM_STD_OPTIONS { "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }
void am_std_option(int c, const char *usage);

/*
 * Untrusted bytes made fit for a terminal or a log: control and non-ASCII
 * bytes as \xNN, cut with "..." after about 200 bytes. The result lives in
 * one of eight static buffers, used in turn.
 */
const char *am_quote(const char *bytes, size_t len);
const char *am_quotes(const char *string);

/* Flushes and closes standard output; a failure is named and becomes 2. */
int am_finish(int rc);

#endif
