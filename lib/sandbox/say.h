/*
 * say - errors in the form that openshell gives them.
 *
 * On standard error, as a report wrapped at 80 columns (spec openshell,
 * section 3). Scripts compare after taking out white space and the bars, so
 * the words are what counts. All return 1, the exit status of every refusal.
 */
#ifndef AM_SANDBOX_SAY_H
#define AM_SANDBOX_SAY_H

enum ams_code {
	AMS_INVALID_ARGUMENT,
	AMS_NOT_FOUND,
	AMS_PERMISSION_DENIED,
	AMS_FAILED_PRECONDITION,
	AMS_ABORTED
};

/* As the gateway refuses: code and message in their envelope. */
int ams_refuse(enum ams_code code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As the command line itself refuses; a newline in the text begins a new line of the report. */
int ams_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
