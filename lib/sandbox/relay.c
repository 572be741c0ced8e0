#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "relay.h"

static struct termios before;
static int raw;

int
ams_raw_begin(void)
{
	struct termios t;

	if (tcgetattr(0, &before) != 0)
		return 0;
	t = before;
	cfmakeraw(&t);
	raw = tcsetattr(0, TCSADRAIN, &t) == 0;
	return raw;
}

void
ams_raw_end(void)
{
	if (raw)
		tcsetattr(0, TCSADRAIN, &before);
	raw = 0;
}

void
ams_copy_size(int to)
{
	struct winsize size;

	if (ioctl(0, TIOCGWINSZ, &size) == 0)
		ioctl(to, TIOCSWINSZ, &size);
}

const char *
ams_tty_word(void)
{
	static char word[32] = "--tty";
	struct winsize size;

	if (ioctl(0, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		snprintf(word, sizeof word, "--tty=%hux%hu", size.ws_row, size.ws_col);
	return word;
}
