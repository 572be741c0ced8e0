# Everything is built under build/. See README for the two commands that use this file.
.POSIX:
.SUFFIXES:

PREFIX = /usr/local
DESTDIR =
CC = cc
CFLAGS = -O2 -g
LDFLAGS =
WARN = -std=c11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
VERSION = 0.1.0
# libbsd-overlay: <string.h> and friends carry strlcpy, err and closefrom.
DEFS = -D_GNU_SOURCE -DAM_VERSION='"$(VERSION)"' -DLIBBSD_OVERLAY -isystem /usr/include/bsd -Ilib

# --as-needed: a program loads only the libraries it calls, which is most of its start-up time.
LIBS = -Wl,--as-needed -ljq -lyaml -l:libbsd.a -l:libmd.a -lseccomp -Wl,--no-as-needed

BINS = $(wildcard bin/*.c)
PROGS = $(BINS:bin/%.c=build/bin/%)
ROOMS = $(wildcard lib/*.c lib/*/*.c)
ROOM_OBJS = $(ROOMS:%.c=build/%.o)

all: $(PROGS)

build/bin/%: build/bin/%.o build/libamap.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< build/libamap.a $(LIBS)

build/libamap.a: $(ROOM_OBJS)
	rm -f $@ && ar rcs $@ $(ROOM_OBJS)

build/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(WARN) $(DEFS) -MMD -MP $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

.SECONDARY: $(BINS:bin/%.c=build/bin/%.o)

-include $(BINS:bin/%.c=build/bin/%.d) $(ROOMS:%.c=build/%.d)

check: all
	sh/check.sh --tests-only

clean:
	rm -rf build

.PHONY: all check clean
