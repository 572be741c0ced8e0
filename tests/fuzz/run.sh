#!/bin/sh
# run.sh SECONDS DIRECTORY - run every fuzz target that was built in DIRECTORY
#
# As many at a time as there are processors, each over its corpus beside this
# file first and then for SECONDS (0: the corpus alone), the long ones for 30 at
# least; what is found new stays in DIRECTORY/corpus. Prints a line of TAP for
# each target; exit status 1 when one found a fault.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# The strict JSON reader, which all others rest on, and the readers of the two
# policies, which decide who reaches what. They are started first.
long='json fleet policy'
is_long() { case " $long " in *" $1 "*) ;; *) return 1 ;; esac; }
if [ $# -eq 3 ]; then		# one target
	log=$2/$3.log
	seconds=$1
	if is_long "$3" && [ "$seconds" -ne 0 ] && [ "$seconds" -lt 30 ]; then seconds=30; fi
	limit=-max_total_time=$seconds
	[ "$seconds" -ne 0 ] || limit=-runs=0	# to libFuzzer no time is no limit
	mkdir -p "$2/corpus/$3"
	if "$2/tests/fuzz/$3" "$limit" -max_len=4096 -timeout=10 -print_final_stats=1 \
	    -artifact_prefix="$2/$3-" "$2/corpus/$3" "$here/corpus/$3" >"$log" 2>&1; then
		printf 'ok fuzz %s: %d inputs\n' "$3" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
		exit
	fi
	printf 'not ok fuzz %s\n%s\n' "$3" "$(tail -n 40 "$log" | sed 's/^/# /')"
	exit 1
fi
{
	printf '%s\n' "$long" | tr ' ' '\n'
	for target in "$here"/*.c; do
		target=${target##*/}
		is_long "${target%.c}" || printf '%s\n' "${target%.c}"
	done
} | xargs -P "$(nproc)" -n 1 sh "$0" "$1" "$2" || exit 1
