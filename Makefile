# Everything is built under build/. See README for the two commands that use this file.
.POSIX:
.SUFFIXES:

PREFIX = /usr/local
DESTDIR =
CC = cc
CFLAGS = -O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2
LDFLAGS =
WARN = -std=c11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
VERSION = 0.1.0
# Where everything is built; the sanitized build of the tests has its own place.
BUILD = build
# libbsd-overlay: <string.h> and friends carry strlcpy, err and closefrom.
DEFS = -D_GNU_SOURCE -DAM_VERSION='"$(VERSION)"' -DLIBBSD_OVERLAY -isystem /usr/include/bsd -Ilib

# --as-needed: a program loads only the libraries it calls, which is most of its start-up time.
LIBS = -Wl,--as-needed -ljq -l:libyaml.a -l:libbsd.a -l:libmd.a -Wl,--no-as-needed

BINS = $(wildcard bin/*.c)
PROGS = $(BINS:bin/%.c=$(BUILD)/bin/%)
ROOMS = $(wildcard lib/*.c lib/*/*.c)
ROOM_OBJS = $(ROOMS:%.c=$(BUILD)/%.o)

all: $(PROGS) inside

$(BUILD)/bin/%: $(BUILD)/bin/%.o $(BUILD)/libamap.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/libamap.a $(LIBS)

# Starts inside foreign root file systems. The sanitizers have no static form.
$(BUILD)/bin/amap-confine: $(BUILD)/bin/amap-confine.o $(BUILD)/libamap.a
	$(CC) $(CFLAGS) $(LDFLAGS) $(if $(findstring -fsanitize,$(CFLAGS)),,-static-pie) -o $@ $< $(BUILD)/libamap.a -lyaml

# The system call filter, compiled once by libseccomp. The compiler of it runs here, with no flag meant for ours.
$(BUILD)/filter-tables.h: lib/sandbox/filter/compile.c lib/sandbox/refused.c lib/sandbox/filter.h
	@mkdir -p $(@D)
	$(CC) $(WARN) -Wno-missing-field-initializers $(DEFS) -o $(BUILD)/compile-filter lib/sandbox/filter/compile.c lib/sandbox/refused.c -lseccomp
	$(BUILD)/compile-filter >$@.tmp && mv $@.tmp $@
$(BUILD)/lib/sandbox/filter.o: CPPFLAGS += -I$(BUILD)
$(BUILD)/lib/sandbox/filter.o: $(BUILD)/filter-tables.h

# What starts inside a sandbox brings its own loader and libraries, because the image may be of
# another distribution: payload.list names the programs and the libraries, and where they are there.
# An rpath of the old kind comes before LD_LIBRARY_PATH, and holds for the libraries' libraries too.
INSIDE = $(shell sed -n 's|.*\tinside/\([^/]*\)$$|\1|p' payload/payload.list)
INSIDE_LIBS = $(shell sed -n 's|.*\tinside/lib/||p' payload/payload.list)
AT_HOME = -Wl,--dynamic-linker=/opt/amap/payload/lib/ld.so -Wl,--disable-new-dtags,-rpath,/opt/amap/payload/lib
$(BUILD)/inside/%: $(BUILD)/bin/%.o $(BUILD)/libamap.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) $(if $(findstring -fsanitize,$(CFLAGS)),-static-libgcc) \
	    -s $(AT_HOME) -o $@ $< $(BUILD)/libamap.a $(LIBS)	# -s: every home has a copy

# Copied again when the host's are others.
inside: $(INSIDE:%=$(BUILD)/inside/%) $(PROGS)
	@mkdir -p $(BUILD)/inside/lib
	@for lib in $(INSIDE_LIBS); do \
	    case $$lib in \
	    ld.so) from=$$(ldd $(BUILD)/bin/inbox-delivery | sed -n 's|^[[:space:]]*\(/[^ ]*\) .*|\1|p') ;; \
	    *) from=$$($(CC) -print-file-name=$$lib) ;; \
	    esac; \
	    cmp -s "$$from" $(BUILD)/inside/lib/$$lib || cp -L "$$from" $(BUILD)/inside/lib/$$lib || exit; \
	done

$(BUILD)/libamap.a: $(ROOM_OBJS)
	rm -f $@ && ar qcs $@ $(ROOM_OBJS)	# q: rooms of two programs may bear one name

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(WARN) $(DEFS) -MMD -MP $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

.SECONDARY: $(BINS:bin/%.c=$(BUILD)/bin/%.o)

-include $(BINS:bin/%.c=$(BUILD)/bin/%.d) $(ROOMS:%.c=$(BUILD)/%.d)

# The tree as it stands, below one directory, with the commands on the path.
# The scripts find the programs in bin/ beside sh/, as here in build/bin.
HOUSE = $(DESTDIR)$(PREFIX)/lib/amap-openshell
install: all
	mkdir -p "$(HOUSE)/bin" "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/share/man/man1" "$(DESTDIR)$(PREFIX)/share/man/man5"
	cp --remove-destination $(PROGS) "$(HOUSE)/bin"	# a program that runs keeps its old file
	rm -rf "$(HOUSE)/inside" "$(HOUSE)/sh" "$(HOUSE)/payload" "$(HOUSE)/examples" "$(HOUSE)/image"	# what an older version had
	cp -R $(BUILD)/inside sh payload examples image "$(HOUSE)"
	cd "$(HOUSE)/sh" && rm -f demo.sh check.sh setup.sh	# they work on a source tree
	cp man/*.1 "$(DESTDIR)$(PREFIX)/share/man/man1"
	cp man/*.5 "$(DESTDIR)$(PREFIX)/share/man/man5"
	for p in $(PROGS); do ln -sf "../lib/amap-openshell/bin/$${p##*/}" "$(DESTDIR)$(PREFIX)/bin"; done
	ln -sf ../lib/amap-openshell/sh/amap-openshell "$(DESTDIR)$(PREFIX)/bin"

uninstall:
	rm -rf "$(HOUSE)"
	cd "$(DESTDIR)$(PREFIX)/bin" && rm -f amap-openshell $(notdir $(PROGS))
	cd "$(DESTDIR)$(PREFIX)/share/man" && rm -f $(patsubst man/%.1,man1/%.1,$(wildcard man/*.1)) $(patsubst man/%.5,man5/%.5,$(wildcard man/*.5))

check: all
	sh/check.sh --quick

# What it costs, as ratios to a floor measured in the same run.
bench: all
	d=$$(cd $(BUILD) && pwd); for b in tests/bench/*.sh; do AMAP_BUILD_DIR=$$d sh $$b || exit; done

# The other compiler, with what finds faults while a program runs; for the tests and the fuzzers.
SANITIZED = BUILD=$(BUILD)/sanitized CC=clang LDFLAGS=tests/tools/sanitizer-options.c \
    CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined'
sanitized:
	$(MAKE) $(SANITIZED) all

# FUZZ_SECONDS for each, but 30 at least for the long ones of run.sh; what is found new stays in $(BUILD)/sanitized/corpus.
FUZZ_SECONDS = 30
fuzz:
	$(MAKE) $(SANITIZED) fuzzers
	sh tests/fuzz/run.sh $(FUZZ_SECONDS) $(BUILD)/sanitized

FUZZERS = $(wildcard tests/fuzz/*.c)
fuzzers: $(FUZZERS:%.c=$(BUILD)/%)
$(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/libamap.a
	$(CC) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $< $(BUILD)/libamap.a $(LIBS)

clean:
	rm -rf $(BUILD)

.PHONY: all inside install check bench sanitized fuzz fuzzers clean
