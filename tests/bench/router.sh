#!/bin/sh
# router.sh - what the router costs, as ratios to a floor measured beside it
#
# usage: router.sh
# Programs from $AMAP_BUILD_DIR/bin, or build/bin. $REQUESTS (20000) go through one
# process for the memory figure. Exit status 1 when a limit is exceeded. Limits:
# request to notice, durable, 1.5 times the same file operations, and 5 ms in the
# middle; 2,000 delegations a second in memory; the cost of a request the same (half
# as much again at most) for 2, 64 and 1,000 instances and 10,000 that wait; resident
# 4 MiB and 20 KiB an instance; idle, one wait for each poll.
set -eu
LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/../.." && pwd)
PATH=${AMAP_BUILD_DIR:-$top/build}/bin:$PATH
REQUESTS=${REQUESTS:-20000}
disk=$(mktemp -d)
memory=
router=
rc=0
clean() {
	[ -z "$router" ] || kill "$router" 2>/dev/null || :
	rm -rf "$disk" ${memory:+"$memory"}
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cc -O2 -D_GNU_SOURCE -o "$disk/drive" "$top/tests/bench/router.c"
[ ! -w /dev/shm ] || memory=$(mktemp -d /dev/shm/amap-bench.XXXXXX)

# verdict TEXT VALUE LIMIT [least]
verdict() {
	if awk -v v="$2" -v l="$3" -v least="${4:-}" 'BEGIN { exit !(least == "" ? v <= l : v >= l) }'; then
		printf '%s: %s (%s %s)\n' "$1" "$2" "${4:-at most}" "$3"
	else
		printf '%s: %s NOT %s %s\n' "$1" "$2" "${4:-at most}" "$3"
		rc=1
	fi
}

# home DIR N: a fleet of N senders s0, s1, ... that may task t.
home() {
	mkdir -p "$1/roster" "$1/router-state"
	i=0
	senders=
	while [ "$i" -lt "$2" ]; do
		senders="$senders${senders:+,}\"s$i\""
		printf '%s\0' "$1/instances/s$i/outbox/results" "$1/instances/s$i/outbox/processed" "$1/instances/s$i/peer" "$1/instances/s$i/inbox"
		i=$((i + 1))
	done | xargs -0 mkdir -p
	i=0
	senders=
	slugs=
	while [ "$i" -lt "$2" ]; do
		senders="$senders${senders:+,}\"s$i\""
		slugs="$slugs{\"slug\":\"s$i\"},"
		i=$((i + 1))
	done
	mkdir -p "$1/instances/t/peer/notices" "$1/instances/t/peer/messages" "$1/instances/t/inbox" "$1/instances/t/outbox"
	printf '{"selected":[%s{"slug":"t"}]}' "$slugs" >"$1/selected.json"
	printf '{"state_dir":"%s/router-state","instances_dir":"%s/instances","selected_json":"%s/selected.json","fleet_domain":"fleet.example","peer_senders":{"t":[%s]}}' \
	    "$1" "$1" "$1" "$senders" >"$1/router.json"
}

# start DIR INTERVAL
start() {
	rm -f "$1/router-state/status.json"
	amap-router --config "$1/router.json" run --interval "$2" 2>"$1/log" &
	router=$!
	while [ ! -s "$1/router-state/status.json" ]; do sleep 0.05; done
}

stop() {
	kill "$router"
	wait "$router" || :
	router=
}

resident() {
	awk '/^VmRSS/ { print $2 }' "/proc/$router/status"
}

ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'
}

# request to notice, on disk
home "$disk/home" 1
start "$disk/home" 60
mkdir "$disk/floor"
"$disk/drive" latency "$disk/home" "$disk/floor" 100 >"$disk/latency"
read -r bare routed bare90 routed90 <"$disk/latency"
printf 'request to notice on disk: middle %s ms, the same file operations %s ms; nine of ten within %s and %s ms\n' \
    "$routed" "$bare" "$routed90" "$bare90"
verdict 'request to notice, to the floor' "$(ratio "$routed" "$bare")" 1.5
verdict 'request to notice, middle, ms' "$routed" 5

# delegations a second, on disk
n=$(find "$disk/home/instances/t/peer/notices" -name 'notice-*' | wc -l)
kill -STOP "$router"
"$disk/drive" fill "$disk/home" 0 500 1
kill -CONT "$router"
took=$("$disk/drive" wait "$disk/home" $((n + 500)) 120)
floor=$("$disk/drive" floor "$disk/floor" 500)
printf 'delegations a second on disk: %s; the same file operations: %s\n' "$(awk -v t="$took" 'BEGIN { printf "%.0f", 500 / t }')" "$floor"
stop

if [ -z "$memory" ]; then
	echo 'no /dev/shm: what is measured in memory is left out'
	exit "$rc"
fi

# cost KEY SENDERS N: microseconds for a request, N waiting, in $cost; resident KiB in $kib
cost() {
	home "$memory/$1" "$2"
	start "$memory/$1" 60
	kill -STOP "$router"
	"$disk/drive" fill "$memory/$1" 0 "$3" "$2"
	kill -CONT "$router"
	took=$("$disk/drive" wait "$memory/$1" "$3" 120)
	cost=$(awk -v t="$took" -v n="$3" 'BEGIN { printf "%.0f", t * 1e6 / n }')
	kib=$(resident)
	stop
	rm -rf "${memory:?}/$1"
}
cost two 1 2000
base=$cost
verdict 'delegations a second in memory' "$(awk -v c="$cost" 'BEGIN { printf "%.0f", 1e6 / c }')" 2000 'at least'
verdict 'resident with 2 instances, KiB' "$kib" $((4096 + 40))
cost many 64 2000
verdict 'a request with 64 instances, to one with 2' "$(ratio "$cost" "$base")" 1.5
verdict 'resident with 65 instances, KiB' "$kib" $((4096 + 65 * 20))
cost most 1000 4000
verdict 'a request with 1,000 instances, to one with 2' "$(ratio "$cost" "$base")" 1.5
verdict 'resident with 1,001 instances, KiB' "$kib" $((4096 + 1001 * 20))
cost deep 1 10000
verdict 'a request of 10,000 that wait, to one of 2,000' "$(ratio "$cost" "$base")" 1.5

# memory after many requests
home "$memory/long" 1
start "$memory/long" 5
done=0
while [ "$done" -lt "$REQUESTS" ]; do
	"$disk/drive" fill "$memory/long" "$done" 5000 1
	done=$((done + 5000))
	"$disk/drive" wait "$memory/long" "$done" 120 >"$disk/took"
	[ "$done" -ne 5000 ] || first=$(resident)
done
printf 'resident after 5000 requests: %s KiB\n' "$first"
verdict "resident after $done requests, KiB" "$(resident)" $((first + 512))
stop
rm -rf "${memory:?}/long"

# idle
home "$memory/idle" 64
start "$memory/idle" 1
before=$(awk '/^voluntary/ { print $2 }' "/proc/$router/status")
polls=$(sed 's/.*"polls": \([0-9]*\).*/\1/' "$memory/idle/router-state/status.json")
cpu=$(awk '{ print $14 + $15 }' "/proc/$router/stat")
sleep 10
after=$(awk '/^voluntary/ { print $2 }' "/proc/$router/status")
cpu=$(($(awk '{ print $14 + $15 }' "/proc/$router/stat") - cpu))
polls=$(($(sed 's/.*"polls": \([0-9]*\).*/\1/' "$memory/idle/router-state/status.json") - polls))
printf 'idle with 65 instances for 10 s: %s polls, %s ticks of processor time\n' "$polls" "$cpu"
verdict 'idle, wake-ups for each poll' "$(ratio $((after - before)) "$polls")" 1.2
stop
exit "$rc"
