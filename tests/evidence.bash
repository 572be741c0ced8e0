# Loaded by the tests of the probes: a small fleet, and answers made by hand.

# fleet DIR: a home with a policy of two members, their lanes, and members beside it.
fleet() {
	mkdir -p "$1"/{payload/bin,roster,instances/{alpha,beta}/{inbox,peer,outbox},policies,commands,router-state}
	echo '{"workspace":"default","fleet_domain":"agents.example.org","task_graph":{"beta":["alpha"]}}' >"$1/fleet.json"
	amap-fleet "$1/fleet.json" | amap-lanes --home "$1" >members
	record "$1" alpha=id-alpha beta=id-beta
}

# record DIR NAME=ID...: membership.json.
record() {
	local dir=$1
	shift
	printf '%s\n' "$@" | jq -Rn '{version: 1, members: [inputs | split("=") |
	    {workspace: "default", name: .[0], id: .[1]}]}' >"$dir/membership.json"
}

# answer ASK SUBJECT STATUS STDOUT [STDERR]: one record; SUBJECT "-" is none, STATUS "-" is no answer.
answer() {
	jq -nc --arg a "$1" --arg m "$2" --arg s "$3" --arg o "$4" --arg e "${5-}" '{ask: $a,
	    subject: (if $m == "-" then null else $m end), argv: ["program"],
	    status: (if $s == "-" then null else ($s | tonumber) end),
	    reason: (if $s == "-" then "ran out of time" else null end), stdout: $o, stderr: $e}'
}

# ended FILE: closes a stream of that file's lines.
ended() { printf '{"end":%d}\n' "$(wc -l <"$1")" >>"$1"; }

# sandbox NAME ID [WORKSPACE]: what get answers.
sandbox() {
	answer get "$1" 0 "$(jq -nc --arg n "$1" --arg i "$2" --arg w "${3:-default}" \
	    '{id: $i, name: $n, workspace: $w, phase: "Ready"}')"
}

# outcomes: a checks stream on standard input as "ID SUBJECT OUTCOME" lines.
outcomes() { jq -r 'select(.outcome) | "\(.id) \(.subject // "-") \(.outcome)"'; }

# sound FILE: every record of this checks stream is whole, by amap-verdict.
sound() {
	run amap-verdict "$1"
	refute_output --partial 'the checks are what a probe printed'
	refute_output --partial 'every check of this part was made'
}

# recorded DIR: a home of two members as the verbs make it, a running router,
# and recorded answers of a healthy OpenShell and docker in ./replay; $R is that
# directory, verify judges it all.
recorded() {
	H=$1 R=$PWD/replay
	export REPLAY=$R XDG_CONFIG_HOME=$PWD/cfg
	mkdir "$R" bin
	ln -s "$TOP/tests/tools/replay" bin/openshell
	ln -s "$TOP/tests/tools/replay" bin/docker
	echo '{"workspace":"default","fleet_domain":"agents.example.org","task_graph":{"beta":["alpha"]}}' >fleet.json
	sh "$TOP/sh/amap-openshell" l1-kit prepare --home "$H" --fleet fleet.json --run-as 1000:1000 --image x --apply >/dev/null
	for name in alpha beta; do
		sh "$TOP/sh/amap-openshell" --home "$H" l1-kit record --home "$H" "$name" "id-$name" --apply >/dev/null
	done
	amap-render-gateway --home "$H" >gateway.toml
	recorded_answers
	amap-router --config "$H/router.json" run --interval 5 2>router.log 3>&- &
	router_pid=$!
	eventually test -s "$H/router-state/status.json"
}

recorded_answers() {
	printf 'default/%s\n' alpha beta >"$R/list"
	echo '{"extensions":[{"kind":"gateway-interceptor","configured_name":"amap-openshell-mounts","name":"amap-openshell-mounts"}]}' >"$R/info"
	echo 1 >"$R/create.rc"
	printf "Error:   × code: 'The caller does not have permission to execute the specified
  │ operation', message: \"amap-openshell interceptor: mounts[0].source:
  │ %s/instances/alpha/outbox is not one of the member's own\"\n" "$H" >"$R/create.err"
	for name in alpha beta; do
		sandbox "$name" "id-$name" | jq -r .stdout >"$R/get-$name"
		{
			sed 's/^    - "\(.*\)"/  - \1/' "$H/policies/$name.yaml"
			printf 'network_policies:\n  _provider_x:\n    name: x\n    endpoints:\n    - host: api.anthropic.com\n      port: 443\n    binaries:\n    - path: /usr/bin/node\n'
		} >"$R/policy-$name"
		echo EROFS >"$R/write-$name"
		echo 1 >"$R/delivery-$name"
		printf '%s-c1\n%s-c2\n' "$name" "$name" >"$R/ps-id-$name"
		jq -nc --arg h "$H" --arg n "$name" '
		    def bind(s; t; rw): {Type: "bind", Source: ($h + "/" + s), Destination: ("/opt/amap/" + t), Mode: "", RW: rw};
		    {Id: ($n + "-c1"), Mounts: [bind("payload"; "payload"; false), bind("roster"; "roster"; false),
		        bind("instances/\($n)/inbox"; "lanes/inbox"; false), bind("instances/\($n)/peer"; "lanes/peer"; false),
		        bind("instances/\($n)/outbox"; "lanes/outbox"; true)]}' >"$R/inspect-$name-c1"
		jq -nc --arg n "$name" '{Id: ($n + "-c2"), Mounts: [{Type: "volume", Name: "channel", Source: "/v",
		    Destination: "/.openshell/channel", RW: true}]}' >"$R/inspect-$name-c2"
	done
	echo amap-router-local >"$R/router-ps"
	jq -nc --arg h "$H" '
	    def bind(p; rw): {Type: "bind", Source: p, Destination: p, Mode: "", RW: rw};
	    [{Id: "r", Name: "/amap-router-local", State: {Running: true, Pid: 1}, Mounts: [bind($h; false),
	      bind($h + "/instances"; true), bind($h + "/roster"; true), bind($h + "/router-state"; true)],
	      HostConfig: {NetworkMode: "none", RestartPolicy: {Name: "unless-stopped"}}}]' >"$R/inspect-amap-router-local"
}

recorded_end() {
	[ -z "${router_pid-}" ] || { kill "$router_pid" && wait "$router_pid" || :; }
}

# verify ARGUMENT...: the report on the recorded fleet.
verify() {
	sh "$TOP/sh/amap-openshell" --home "$H" --openshell "$PWD/bin/openshell" --docker "$PWD/bin/docker" \
	    --gateway-toml "$PWD/gateway.toml" verify "$@"
}

# findings: what is no PASS, as "ID SUBJECT OUTCOME; ".
findings() {
	verify --format jsonl >checks || :
	jq -r 'select(.outcome and .outcome != "PASS") | "\(.id) \(.subject // "-") \(.outcome)"' checks | paste -sd ';' | sed 's/;/; /g'
}
