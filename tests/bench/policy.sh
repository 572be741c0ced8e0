#!/bin/sh
# policy.sh - what the policy programs cost, as ratios to a floor measured beside them
#
# usage: policy.sh
# Programs from $AMAP_BUILD_DIR/bin, or build/bin. Exit status 1 when a limit is
# exceeded. Limits: one filter on one record 2.5 times a static program that does
# nothing, 4 MiB resident; a thousand members rendered 4 times `jq -n .`.
set -eu
LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/../.." && pwd)
PATH=${AMAP_BUILD_DIR:-$top/build}/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
rc=0

cc -O2 -D_GNU_SOURCE -o spawn "$top/tests/bench/spawn.c"
printf 'int main(void) { return 0; }\n' | cc -O2 -static -x c -o nothing -

# fleet N: a policy of N members, each with one sender and one peer.
fleet() {
	awk -v n="$1" 'BEGIN {
		printf "{\"workspace\":\"default\",\"fleet_domain\":\"agents.example.org\",\"task_graph\":{"
		for (i = 0; i < n; i++) printf "%s\"m%d\":[\"m%d\"]", i ? "," : "", i, (i + 1) % n
		printf "},\"peers\":{"
		for (i = 0; i < n; i++) printf "%s\"m%d\":[\"m%d\"]", i ? "," : "", i, (i + 2) % n
		printf "}}\n"
	}'
}

# verdict TEXT VALUE LIMIT
verdict() {
	if awk -v v="$2" -v l="$3" 'BEGIN { exit !(v <= l) }'; then
		printf '%s: %s (limit %s)\n' "$1" "$2" "$3"
	else
		printf '%s: %s OVER THE LIMIT %s\n' "$1" "$2" "$3"
		rc=1
	fi
}

fleet 5 >fleet.json
amap-fleet fleet.json >plan
amap-lanes --home /srv/amap plan >members
printf '{"version":1,"members":[{"workspace":"default","name":"m0","id":"id-0"}]}\n' >membership.json
printf '{}\n' >request.json
amap-render-gateway >gateway.toml
while read -r input command; do
	# shellcheck disable=SC2086	# a command line
	./spawn 400 ./nothing "$input" $command >cost
	verdict "$command, times a program that does nothing" "$(awk '{ printf "%.2f", $2 / $1 }' cost)" 2.5
	verdict "$command, MiB" "$(awk '{ printf "%.1f", $3 / 1024 }' cost)" 4
done <<END
fleet.json amap-fleet
plan amap-lanes --home /srv/amap
members amap-render-policy --member m1 --run-as 1000:1000
members amap-render-create --member m1
plan amap-render-router --home /srv/amap
membership.json amap-membership list
request.json amap-admit --home $work
/dev/null amap-probe-gateway --rows gateway.toml
END

cat >render.sh <<'END'
amap-fleet "$1" | amap-lanes --home /srv/amap | amap-render-policy --files --run-as 1000:1000 >/dev/null
amap-fleet "$1" | amap-lanes --home /srv/amap | amap-render-create --files >/dev/null
amap-fleet "$1" | amap-render-router --home /srv/amap >/dev/null
END
for n in 100 1000 10000; do
	fleet "$n" >fleet.json
	./spawn 12 'jq -n .' /dev/null sh render.sh fleet.json >cost
	text=$(awk -v n="$n" '{ printf "%d members rendered, %.0f us each, times jq -n .", n, $2 / n }' cost)
	ratio=$(awk '{ printf "%.2f", $2 / $1 }' cost)
	if [ "$n" -eq 1000 ]; then
		verdict "$text" "$ratio" 4
	else
		printf '%s: %s\n' "$text" "$ratio"
	fi
done
exit "$rc"
