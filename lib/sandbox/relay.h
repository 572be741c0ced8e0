/*
 * relay - a terminal between a caller and a sandbox.
 *
 * A sandbox never gets the caller's own terminal: a process left behind could
 * go on reading what is typed. Whatever is a terminal is carried byte by byte.
 */
#ifndef AM_SANDBOX_RELAY_H
#define AM_SANDBOX_RELAY_H

#include <termios.h>

/* The caller's terminal in raw mode until ams_raw_end, also after a signal. 0 when stdin is none. */
int ams_raw_begin(void);
void ams_raw_end(void);

/* Size of the caller's terminal to another one. */
void ams_copy_size(int to);

/* The word for amap-confine that asks for a terminal of the caller's size. Static. */
const char *ams_tty_word(void);

#endif
