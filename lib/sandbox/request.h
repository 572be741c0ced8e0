/*
 * request - what the words of sandbox create ask for, and whether they may.
 *
 * The checks are the gateway's, each a step, because their order is part of
 * what a caller sees. All return an exit status: 0 goes on.
 */
#ifndef AMS_REQUEST_H
#define AMS_REQUEST_H

#include <limits.h>

#include "cli.h"
#include "policy.h"

/* What the words asked for. Every jv is an array or an object. */
struct ams_request {
	const char *name, *image, *policy_path, *restart;
	jv driver;		/* invalid: none given */
	jv env, labels, providers, command;
	struct ams_limits limits;
	int detach, keep, tty, auto_providers;
	char *policy;		/* its text */
	size_t policy_len;
	char root[PATH_MAX];	/* the image as it is bound: "host" or a directory */
	char invented[20];
};

int ams_request_read(struct ams_request *r, int argc, char *argv[]);
void ams_request_free(struct ams_request *r);

/* Names, sizes and counts. */
int ams_request_fields(const struct ams_request *r);

/* The policy file's text; then what it says: with judge also whether it is safe. */
int ams_request_policy_text(struct ams_request *r);
int ams_request_policy(const struct ams_request *r, int judge, struct ams_policy *p);

/* Where the image is; in r->root. */
int ams_request_image(struct ams_cli *cli, struct ams_request *r);

/* Owns. The CreateSandboxRequest as the gateway shows it to an interceptor. */
jv ams_request_operation(struct ams_cli *cli, const struct ams_request *r, const struct ams_policy *p);

#endif
