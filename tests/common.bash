# Loaded by every test file: bats_load is "load common".
bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert
bats_load_library bats-file

TOP=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
BIN=${AMAP_BUILD_DIR:-$TOP/build}/bin
PATH=$BIN:$TOP/tests/tools:$PATH
DATA=$TOP/tests/data
export TOP BIN PATH DATA
LC_ALL=C
export LC_ALL
umask 022
unset AMAP_OPENSHELL_HOME ANTHROPIC_API_KEY ROUTER_CONFIG ROUTER_INTERVAL

# Every test works in its own directory, which bats removes.
setup() {
	cd "$BATS_TEST_TMPDIR" || exit
}

# usage_is_sound PROGRAM: --help, --version, an unknown option, and a standard
# output that cannot be written, as every program here must answer them.
usage_is_sound() {
	run -0 --separate-stderr "$1" --help
	assert_output --partial "usage: $1"
	[ -z "$stderr" ]
	run -0 "$1" --version
	assert_output --regexp "^$1 [0-9]+\.[0-9]+\.[0-9]+$"
	run -2 --separate-stderr "$1" --no-such-option
	[ -z "$output" ]
	assert_equal "$(printf '%s\n' "$stderr" | tail -n 1 | cut -c1-7)" "usage: "
	run -2 --separate-stderr sh -c '"$1" --help >/dev/full' sh "$1"
}

# eventually COMMAND...: until it succeeds, whatever it says. How long that may take is no claim: a busy
# machine, or a disk that others flush, can hold anything up for many seconds.
eventually() {
	local until=$((SECONDS + 60)) log
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$until" ]; then
			echo "never true: $*" >&2
			for log in log "${M-}/log"; do
				[ ! -f "$log" ] || tail -n 5 "$log" | cut -c1-200 >&2
			done
			return 1
		fi
		sleep 0.02
	done
}

# timed: for a test where a time is the claim, or stands for an event that cannot be seen. A busy machine
# can miss any time, so it counts when it is kept in one of three runs.
timed() { BATS_TEST_RETRIES=2; }

# For what cannot be tried in the sanitized build: a reason is given and counted.
not_sanitized() {
	[ "${AMAP_BUILD_DIR##*/}" != sanitized ] || skip "$1"
}

# build_of_links DIRECTORY: the build again, where a program can be another's.
build_of_links() {
	mkdir -p "$1/bin"
	ln -s "$BIN"/* "$1/bin"
	ln -s "$BIN/../inside" "$1/inside"
}

# installed_payload DIRECTORY: the payload as install publishes it.
installed_payload() {
	local mode path source
	mkdir -p "$1/bin" "$1/lib"
	while IFS=$(printf '\t') read -r mode path source; do
		case $source in
		inside/*) install -m "$mode" "$BIN/../$source" "$1/$path" ;;
		*) install -m "$mode" "$TOP/$source" "$1/$path" ;;
		esac
	done <"$TOP/payload/payload.list"
}

# musl_tree: ./tree with the libc and the shell of another distribution's kind, and,
# where this host's programs look for theirs, libraries that are none.
musl_tree() {
	local musl tool
	musl=$(readlink -f /lib/ld-musl-*.so.1)
	[ -f "$musl" ] && [ -x /bin/busybox ] || skip "musl or busybox-static is not installed"
	run ! ldd /bin/busybox
	mkdir -p tree/bin tree/lib tree/lib64 tree/etc tree/usr/share tree/opt tree/proc tree/dev tree/tmp
	cp "$musl" "tree/lib/$(basename /lib/ld-musl-*.so.1)"
	cp /bin/busybox tree/bin/
	for tool in sh readlink env sed date sleep cat ls tr chmod; do ln -s busybox "tree/bin/$tool"; done
	for tool in libc.so.6 libm.so.6 libjq.so.1 libonig.so.5; do echo "not for you" >"tree/lib/$tool"; done
	chmod 755 . tree
}
