# For the tests of the router: a home with lanes, requests, and the router itself.
D=fleet.example

# In memory where that is possible: what is tried is the router, not the disk.
in_memory() {
	place=$BATS_TEST_TMPDIR
	[ ! -w /dev/shm ] || place=$(mktemp -d /dev/shm/amap-router.XXXXXX)
	cd "$place" || exit
}
setup() {
	in_memory
}

# fleet POLICY NAME...: a home in ./home. POLICY is what router.json has beside the paths and the domain.
fleet() {
	local policy=$1 n
	shift
	mkdir -p home/roster
	mkdir -m 700 home/router-state
	for n; do
		mkdir -p home/instances/"$n"/{inbox,peer}/{notices,messages} home/instances/"$n"/outbox/{results,processed}
	done
	select_members "$@"
	printf '{"state_dir":"%s/router-state","instances_dir":"%s/instances","selected_json":"%s/selected.json","fleet_domain":"%s"%s}\n' \
	    "$PWD/home" "$PWD/home" "$PWD/home" "$D" "${policy:+,$policy}" >home/router.json
}

# select_members NAME...: the verdict file.
select_members() {
	jq -n '{schema: 1, selected: [$ARGS.positional[] | {slug: .}], not_selected: []}' --args "$@" >home/selected.tmp
	mv home/selected.tmp home/selected.json
}

# put NAME ID TEXT: publishes a request's text as the connector does.
put() {
	printf '%s' "$3" >home/instances/"$1"/outbox/.req-"$2".json.tmp
	mv home/instances/"$1"/outbox/.req-"$2".json.tmp home/instances/"$1"/outbox/req-"$2".json
}

# request NAME ID TO [JQ]: a sound request to one or more (comma) members, changed by a jq filter.
request() {
	put "$1" "$2" "$(jq -nc --arg id "$2" --arg to "$3" --arg d "$D" \
	    '{contract_version: "2", req_id: $id, draft: {to: ($to | split(",") | map(if test("@") then . else . + "@" + $d end)), subject: "s", body_text: "b"}} | '"${4:-.}")"
}

once() {
	amap-router --config home/router.json once "$@"
}

# verdict NAME ID: "outcome reason" of the published result. Its keys are sorted.
verdict() {
	[[ $(<home/instances/"$1"/outbox/results/"$2".json) =~ \"outcome\":\"([a-z_]+)\",\"reason_code\":\"([a-z_]+)\" ]] &&
	    echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
}

# notices NAME LANE: how many there are.
notices() {
	find home/instances/"$1"/"$2"/notices -name 'notice-*.json' | wc -l
}

# start_router [INTERVAL]: in the background; waits for its first poll. The log is ./log.
start_router() {
	amap-router --config home/router.json run --interval "${1:-60}" >log 2>&1 3>&- &
	router=$!
	eventually test -s home/router-state/status.json
}

stop_router() {
	[ -n "${router:-}" ] || return 0
	kill -TERM "$router" && wait "$router"
	router=
}

# status_is FILTER VALUE: what jq says of status.json, for eventually.
status_is() {
	[ "$(jq -c "$1" home/router-state/status.json)" = "$2" ]
}

# documents_are_sound: every wire document below ./home passes amap-validate.
documents_are_sound() {
	local f
	find home/instances -path '*/peer/notices/notice-*.json' -print0 | xargs -0r amap-validate -q --class peer-notice
	find home/instances -path '*/inbox/notices/notice-*.json' -print0 | xargs -0r amap-validate -q --class deliver-notice
	find home/instances -path '*/messages/notice-*.json' -print0 | xargs -0r amap-validate -q --class inbound-message
	find home/instances -path '*/outbox/results/*.json' -print0 | xargs -0r amap-validate -q --class result
	for f in home/roster/roster.json; do
		[ ! -e "$f" ] || amap-validate -q --class roster "$f"
	done
}

teardown() {
	stop_router
	cd /
	chmod -R u+rwX "$place"
	rm -rf "$place"
}
