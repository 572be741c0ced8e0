/*
 * embedded - the settings of the embedded gateway, and admission.
 *
 * gateway.toml in the state directory holds the same table that OpenShell's
 * Docker driver reads, so verify reads both alike, and one of our own:
 *
 *	[openshell.drivers.docker]
 *	allow_driver_config = true
 *	enable_bind_mounts = true
 *
 *	[amap.embedded]
 *	home = "/srv/amap"		whose fleet.json decides who may mount what
 *	image = "host"			what the deployment's image name stands for
 *	workspaces = ["default"]	absent: any
 *
 * Absent is refused: without the file nothing is ever mounted.
 */
#ifndef AM_SANDBOX_EMBEDDED_H
#define AM_SANDBOX_EMBEDDED_H

#include "../json.h"

struct ams_embedded {
	int allow_driver_config, enable_bind_mounts;
	char *home, *image;
	char **workspaces;		/* NULL-ended; NULL: any */
};

/* -1 after saying why. */
int ams_embedded_read(int state, struct ams_embedded *g);
void ams_embedded_free(struct ams_embedded *g);
int ams_embedded_knows(const struct ams_embedded *g, const char *workspace);

/* Borrows request. 0 admitted; else 1, the refusal printed with its reasons verbatim. */
int ams_embedded_admit(const struct ams_embedded *g, jv request);

#endif
