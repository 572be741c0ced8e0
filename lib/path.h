/*
 * path - which strings may be host paths (spec deployment, section 4).
 */
#ifndef AM_PATH_H
#define AM_PATH_H

/*
 * The rule for every bound host path: absolute, normalised (no trailing "/",
 * no "." or "..", no doubled "/"), not "/", no ":", no white space, nothing
 * unprintable (bytes that are not UTF-8, controls, and the Unicode space and
 * format characters). NULL when the path is fit, else the reason as a clause
 * ("it is not absolute").
 */
const char *am_path_problem(const char *path);

/* 1 when a is b or lies under it, by components; both absolute and normalised. */
int am_path_under(const char *a, const char *b);

/* "dir/name" from malloc; aborts when memory runs out. */
char *am_path_join(const char *dir, const char *name);

#endif
