#!/bin/sh
# verify.sh - what verify costs, as a ratio to the commands that it asks, called alone
#
# usage: verify.sh [MEMBERS]
# Programs from $AMAP_BUILD_DIR/bin, or build/bin. OpenShell and docker are
# recorded answers (tests/tools/replay). The floor is the same calls, four at a
# time, and nothing else. Exit status 1 when verify takes more than 1.3 times that.
set -eu
LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/../.." && pwd)
PATH=${AMAP_BUILD_DIR:-$top/build}/bin:$PATH
members=${1:-50}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
REPLAY=$work/replay XDG_CONFIG_HOME=$work/cfg
export REPLAY XDG_CONFIG_HOME
home=$work/home
mkdir replay
ln -s "$top/tests/tools/replay" openshell
ln -s "$top/tests/tools/replay" docker
cc -O2 -D_GNU_SOURCE -o spawn "$top/tests/bench/spawn.c"

amap() { sh "$top/sh/amap-openshell" --home "$home" "$@" </dev/null; }

awk -v n="$members" 'BEGIN {
	printf "{\"workspace\":\"default\",\"fleet_domain\":\"agents.example.org\",\"task_graph\":{"
	for (i = 0; i < n; i++) printf "%s\"m%d\":[\"m%d\"]", i ? "," : "", i, (i + 1) % n
	printf "}}\n"
}' >fleet.json
amap l1-kit prepare --home "$home" --fleet fleet.json --run-as 1000:1000 --image x --apply >prepared
amap-fleet fleet.json | amap-field --each members name >names
awk 'BEGIN { printf "{\"version\":1,\"members\":[" }
    { printf("%s{\"workspace\":\"default\",\"name\":\"%s\",\"id\":\"id-%s\"}", NR > 1 ? "," : "", $1, $1) }
    END { print "]}" }' names >"$home/membership.json"
amap router-config --apply >configured
amap-router --config "$home/router.json" run --interval 600 2>router-log &
router=$!
trap 'kill "$router"; rm -rf "$work"' EXIT
until [ -s "$home/router-state/status.json" ]; do sleep 0.05; done
amap-render-gateway --home "$home" >gateway.toml

echo '{"extensions":[{"kind":"gateway-interceptor","configured_name":"amap-openshell-mounts"}]}' >replay/info
echo 1 >replay/create.rc
printf 'amap-openshell interceptor: %s/instances/m0/outbox is not its own\n' "$home" >replay/create.err
echo amap-router-local >replay/router-ps
row() { printf '{"Type":"bind","Source":"%s","Destination":"%s","Mode":"","RW":%s}' "$1" "$2" "$3"; }
printf '[{"State":{"Running":true},"HostConfig":{"NetworkMode":"none","RestartPolicy":{"Name":"unless-stopped"}},"Mounts":[%s,%s,%s,%s]}]\n' \
    "$(row "$home" "$home" false)" "$(row "$home/instances" "$home/instances" true)" "$(row "$home/roster" "$home/roster" true)" \
    "$(row "$home/router-state" "$home/router-state" true)" >replay/inspect-amap-router-local
while read -r name; do
	echo "default/$name" >>replay/list
	printf '{"id":"id-%s","name":"%s","workspace":"default","phase":"Ready"}\n' "$name" "$name" >"replay/get-$name"
	sed 's/^    - "\(.*\)"/  - \1/' "$home/policies/$name.yaml" >"replay/policy-$name"
	echo EROFS >"replay/write-$name"
	echo 1 >"replay/delivery-$name"
	printf '%s-c1\n%s-c2\n' "$name" "$name" >"replay/ps-id-$name"
	own=$home/instances/$name lanes=/opt/amap/lanes
	printf '{"Id":"c1","Mounts":[%s,%s,%s,%s,%s]}\n' "$(row "$home/payload" /opt/amap/payload false)" \
	    "$(row "$home/roster" /opt/amap/roster false)" "$(row "$own/inbox" $lanes/inbox false)" \
	    "$(row "$own/peer" $lanes/peer false)" "$(row "$own/outbox" $lanes/outbox true)" >"replay/inspect-$name-c1"
	echo '{"Id":"c2","Mounts":null}' >"replay/inspect-$name-c2"
done <names

# Once, to see that all is a PASS and what is called.
cat >verify <<END
#!/bin/sh
sh "$top/sh/amap-openshell" --home "$home" --openshell "$work/openshell" --docker "$work/docker" \
    --gateway-toml "$work/gateway.toml" verify >"$work/report"
END
chmod +x verify
./verify || { grep -v '^  PASS' report; exit 2; }
sed -n 's/^[01] openshell //p' replay/calls >calls-openshell
sed -n 's/^[01] docker //p' replay/calls >calls-docker
calls=$(cat calls-openshell calls-docker | wc -l)
cat >floor <<END
#!/bin/sh
xargs -P 4 -L 1 "$work/openshell" <"$work/calls-openshell" >/dev/null 2>&1 || :
xargs -P 4 -L 1 "$work/docker" <"$work/calls-docker" >/dev/null 2>&1 || :
END
chmod +x floor
./spawn 24 ./floor /dev/null ./verify >cost
awk -v m="$members" -v c="$calls" '{
	ratio = $2 / $1
	over = ratio > 1.3
	text = over ? "OVER THE LIMIT" : "limit"
	printf("verify of %d members, %d calls: %.0f ms, the calls alone %.0f ms, ratio: %.2f (%s 1.3)\n", m, c, $2 / 1000,
	    $1 / 1000, ratio, text)
	exit over
}' cost
