/*
 * gateway - what a gateway's configuration must say (spec bringup, section 5,
 * and spec interceptor, section 9), and whether it does.
 */
#ifndef AM_GATEWAY_H
#define AM_GATEWAY_H

#include <stddef.h>
#include <stdio.h>

#include "toml.h"

#define AM_GATEWAY_MAX (1u << 20)		/* bytes of a gateway.toml */
#define AM_DRIVER_SETTINGS 3
#define AM_REGISTRATION_ROWS 12

enum am_verdict { AM_PRESENT, AM_ABSENT, AM_UNSURE };

/* A setting of the Docker driver that bind mounts need. */
struct am_setting {
	const char *table, *key, *value;	/* value as TOML spells it */
	const char *why;			/* what it is for, as a clause */
};

extern const struct am_setting am_driver_settings[AM_DRIVER_SETTINGS];

/* A gateway.toml, read. */
struct am_gateway {
	struct am_toml *root;		/* NULL when it is absent or not understood */
	int unsure;			/* it could not be read, or not understood */
	char why[300];			/* of either */
};

/* path NULL: nobody knows where it is. am_gateway_free is due. */
void am_gateway_read(struct am_gateway *g, const char *path);
void am_gateway_free(struct am_gateway *g);

enum am_verdict am_gateway_setting(const struct am_gateway *g, int setting);

/* Does the embedded gateway decide about mounts by this home's fleet? */
enum am_verdict am_gateway_embedded(const struct am_gateway *g, const char *home);

/*
 * The registration of the interceptor for a home: met[i] for each of the rows
 * of section 5, whose texts are in row[i] (from malloc). AM_PRESENT when all
 * are met.
 */
struct am_registration {
	char *row[AM_REGISTRATION_ROWS];
	int met[AM_REGISTRATION_ROWS];
};

enum am_verdict am_gateway_registration(const struct am_gateway *g, const char *home, struct am_registration *out);
void am_registration_free(struct am_registration *r);

/* The socket of a home's interceptor below it, and what a socket's path may have at most. */
#define AM_INTERCEPTOR_SOCKET "/run/interceptor.sock"
#define AM_SOCKET_PATH_MAX 107

/* The fragments that an operator merges. */
void am_gateway_driver_fragment(FILE *fp);
void am_gateway_interceptor_fragment(FILE *fp, const char *home);

#endif
