/*
 * erase - taking away what an agent filled: any depth, any mode, any name.
 */
#ifndef AMS_ERASE_H
#define AMS_ERASE_H

/* Empties an open directory. -1 with errno. */
int ams_empty(int dir);

/* Takes away a directory and all below it; one that is not there is no failure. */
int ams_erase(int at, const char *name);

#endif
