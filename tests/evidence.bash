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
