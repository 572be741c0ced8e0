#include "utf8.h"

int
am_utf8_next(const char *s, size_t len, uint32_t *c)
{
	const unsigned char *u = (const unsigned char *)s;
	int n;

	if (len == 0)
		return -1;
	if (u[0] < 0x80) {
		*c = u[0];
		return 1;
	}
	if (u[0] >= 0xc2 && u[0] <= 0xdf) {
		n = 2;
		*c = u[0] & 0x1f;
	} else if (u[0] >= 0xe0 && u[0] <= 0xef) {
		n = 3;
		*c = u[0] & 0x0f;
	} else if (u[0] >= 0xf0 && u[0] <= 0xf4) {
		n = 4;
		*c = u[0] & 0x07;
	} else {
		return -1;
	}
	if (len < (size_t)n)
		return -1;
	for (int i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return -1;
		*c = *c << 6 | (u[i] & 0x3f);
	}
	/* Overlong forms, surrogates, and what lies above Unicode. */
	if ((n == 3 && *c < 0x800) || (n == 4 && *c < 0x10000) || *c > 0x10ffff ||
	    (*c >= 0xd800 && *c <= 0xdfff))
		return -1;
	return n;
}

int
am_printable(uint32_t c)
{
	/* First and last code point of each run, in order (Unicode 14). */
	static const uint32_t runs[][2] = {
		{ 0x007f, 0x00a0 }, { 0x00ad, 0x00ad }, { 0x0600, 0x0605 },
		{ 0x061c, 0x061c }, { 0x06dd, 0x06dd }, { 0x070f, 0x070f }, { 0x0890, 0x0891 },
		{ 0x08e2, 0x08e2 }, { 0x1680, 0x1680 }, { 0x180e, 0x180e }, { 0x2000, 0x200f },
		{ 0x2028, 0x202f }, { 0x205f, 0x2064 }, { 0x2066, 0x206f }, { 0x3000, 0x3000 },
		{ 0xd800, 0xf8ff }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0x110bd, 0x110bd },
		{ 0x110cd, 0x110cd }, { 0x13430, 0x13438 }, { 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a }, { 0xe0001, 0xe0001 }, { 0xe0020, 0xe007f },
		{ 0xf0000, 0x10ffff },
	};

	if (c < 0x7f)
		return c >= 0x20;
	for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
		if (c >= runs[i][0] && c <= runs[i][1])
			return 0;
	return 1;
}
