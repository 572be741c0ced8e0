#!/bin/sh
# sandbox.sh - what an embedded sandbox costs, as ratios to bubblewrap alone
#
# usage: sandbox.sh [SANDBOXES]
# Programs from $AMAP_BUILD_DIR/bin, or build/bin. The floor is bwrap in
# namespaces of its own around true, measured in turn with each command. Exit
# status 1 when exec of true takes longer than that, create longer than twice
# that, when of SANDBOXES (100) at once the second half takes half as long
# again as the first, or when one of ours holds more than 3 MB of memory: the
# resident set of the supervisor. Its proportional set and that of its two
# bubblewrap processes are told beside it. By root it is all run as uid 1000,
# and then the two ratios as root, whose sandboxes run as somebody else. Files
# deleted a moment ago make new ones slow to make on ext4: not for right after
# the tests.
set -eu
LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/../.." && pwd)
PATH=${AMAP_BUILD_DIR:-$top/build}/bin:$PATH
many=${1:-100}
rc=0
if [ "$(id -u)" -eq 0 ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	mkdir "$work/bin" "$work/tests" "$work/tests/bench"
	cp "$(command -v amap-sandbox)" "$(command -v amap-confine)" "$work/bin"
	cp "$top/tests/bench/sandbox.sh" "$top/tests/bench/spawn.c" "$work/tests/bench"
	chown -R 1000:1000 "$work"
	setpriv --reuid 1000 --regid 1000 --clear-groups env AMAP_BUILD_DIR="$work" TMPDIR="$work" sh "$work/tests/bench/sandbox.sh" "$many" || rc=1
	rm -rf "$work"
	many=0
	echo 'as root:'
fi
work=$(mktemp -d)
AMAP_SANDBOX_DIR=$work/state
export AMAP_SANDBOX_DIR
trap 'amap-sandbox sandbox delete --all >/dev/null 2>&1; rm -rf "$work"' EXIT
cd "$work"
cc -O2 -D_GNU_SOURCE -o spawn "$top/tests/bench/spawn.c"

floor='bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev true'
# against RATIO WHAT COMMAND...
against() {
	most=$1 what=$2
	shift 2
	./spawn 50 "$floor" /dev/null "$@" | awk -v most="$most" -v what="$what" '{
		printf "%-18s %6.1f ms, bwrap %.1f ms: ratio %.2f (at most %.1f)\n", what, $2 / 1e3, $1 / 1e3, $2 / $1, most
		exit $2 / $1 > most
	}' || rc=1
}

amap-sandbox sandbox create --name one --detach --no-tty -- sleep 600 >/dev/null
against 1.0 'exec of true' amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- true
# each gets a name of its own
against 2.0 'create to ready' amap-sandbox sandbox create --detach --no-tty -- sleep 600
amap-sandbox sandbox delete --all >/dev/null
[ "$many" -gt 0 ] || exit "$rc"

now() { date +%s%N; }
start=$(now) i=0
while [ "$i" -lt "$many" ]; do
	amap-sandbox sandbox create --name "s$i" --detach --no-tty -- sleep 600 >/dev/null
	i=$((i + 1))
	[ "$i" -ne $((many / 2)) ] || half=$(now)
done
end=$(now)
awk -v a=$((half - start)) -v b=$((end - half)) -v n="$many" 'BEGIN {
	printf "%d sandboxes: first half %.2f s, second half %.2f s (at most 1.5 times)\n", n, a / 1e9, b / 1e9
	exit b > 1.5 * a
}' || rc=1
[ "$(amap-sandbox ps -q | wc -l)" -eq "$many" ] || { echo "not all of them run"; rc=1; }
# the processes of this state directory alone: their supervisors stand in it
for p in /proc/[0-9]*; do
	[ "$(cat "$p/comm" 2>/dev/null)" = amap-supervise ] || continue
	case $(readlink "$p/cwd") in "$work"/*) ;; *) continue ;; esac
	awk '/^Rss/ { r = $2 } /^Pss:/ { p = $2 } END { print "supervisor", r, p }' "$p/smaps_rollup"
	for outer in $(cat "$p/task/${p##*/}/children"); do
		for q in $outer $(cat "/proc/$outer/task/$outer/children"); do
			awk '/^Rss/ { r = $2 } /^Pss:/ { p = $2 } END { print "bwrap", r, p }' "/proc/$q/smaps_rollup"
		done
	done
done >memory
awk '{ n[$1]++; share[$1] += $3; if ($2 > most[$1]) most[$1] = $2 }
END {
	printf "each supervisor: %.2f MB resident (at most 3), its share %.2f MB; the share of its bubblewrap %.2f MB\n",
	    most["supervisor"] / 1e3, share["supervisor"] / n["supervisor"] / 1e3, share["bwrap"] / n["supervisor"] / 1e3
	exit most["supervisor"] > 3000
}' memory || rc=1
exit $rc
