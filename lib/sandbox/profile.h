/*
 * profile - a provider profile, read from JSON or YAML and judged.
 *
 * Which of the two it is says the file's name (spec openshell, section 7).
 */
#ifndef AMS_PROFILE_H
#define AMS_PROFILE_H

#include "../json.h"

#define AMS_PROVIDER_NAME_MAX 253

/* Names of profiles and of providers. */
int ams_profile_id_fits(const char *s);

/* What is wrong with a file; each fault is printed as it is found. */
struct ams_diagnosis {
	const char *source;
	int faults;
};
void ams_diagnose(struct ams_diagnosis *d, const char *id, const char *field, const char *text);

/* Owns; invalid after naming everything that is wrong. */
jv ams_profile_read(struct ams_diagnosis *d);

/* Borrows. Prints it as block YAML. */
void ams_profile_yaml(jv profile);

#endif
