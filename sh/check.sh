#!/bin/sh
# check.sh - set up, build, and run every test, then all of them once more
# under the address and undefined behaviour sanitizers, and each fuzz target
#
# usage: check.sh [--quick] [FILE.bats ...]
#   --quick   neither sanitizers nor fuzzing
#   FILE      only these test files, and no fuzzing
#
# What failed is told once more at the end. The last line is
# `N passed, N failed, N skipped`; exit 0 only when nothing failed.
set -eu
LC_ALL=C; export LC_ALL
umask 022
prog=${0##*/}
top=$(cd "$(dirname "$0")/.." && pwd)
die() { printf '%s: %s\n' "$prog" "$*" >&2; exit 2; }

quick=
case ${1-} in
--quick) quick=yes; shift ;;
--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
-*) printf 'usage: %s [--quick] [FILE.bats ...]\n' "$prog" >&2; exit 2 ;;
esac

sh "$top/sh/setup.sh" test
cd "$top"
fuzz=
if [ $# -eq 0 ]; then
	# The longest first, so that none of them runs alone at the end.
	set -- tests/router-crash.bats tests/fleets-golden.bats tests/demo.bats tests/e2e.bats
	for file in tests/*.bats; do
		case " $* " in *" $file "*) ;; *) set -- "$@" "$file" ;; esac
	done
	fuzz=yes
fi

work=$(mktemp -d) || die "no scratch directory"
log=$work/log
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
jobs=$(nproc)
passed=0 failed=0 skipped=0

# tally COMMAND...: runs it, shows what it says, and counts the lines of TAP in
# that. A command that fails without one, or does not carry out its plan, is a
# failure as well.
tally() {
	{ rc=0; "$@" 2>&1 </dev/null || rc=$?; echo "$rc" >"$work/rc"; } | tee "$log"
	ok=$(grep -c '^ok ' "$log") || :
	not_ok=$(grep -c '^not ok ' "$log") || :
	awk '/^(ok|not ok|1\.\.)/ { failed = /^not/ } failed' "$log" >>"$work/failed"
	skip=$(grep -Ec '^ok .*# skip' "$log") || :
	planned=$(sed -n 's/^1\.\.//p' "$log" | head -n 1)
	if { [ "$(cat "$work/rc")" -ne 0 ] && [ "$not_ok" -eq 0 ]; } ||
	    [ "$((ok + not_ok))" -ne "${planned:-$((ok + not_ok))}" ]; then
		not_ok=$((not_ok + 1))
		tail -n 20 "$log" >>"$work/failed"
	fi
	passed=$((passed + ok - skip)) failed=$((failed + not_ok)) skipped=$((skipped + skip))
}
tests() {
	AMAP_BUILD_DIR=$top/$1; export AMAP_BUILD_DIR
	shift
	# Half as many again as there are processors: tests wait for a good part of their time.
	tally bats --jobs $((jobs + (jobs + 1) / 2)) --no-parallelize-within-files --formatter tap "$@"
}

make -s -j"$jobs" all
tests build "$@"

if [ -z "$quick" ]; then
	make -s -j"$jobs" sanitized
	tests build/sanitized "$@"
	# The long targets take 30 seconds each all the same: run.sh sees to that.
	[ -z "$fuzz" ] || tally make -s -j"$jobs" FUZZ_SECONDS=3 fuzz
fi

cat "$work/failed"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
