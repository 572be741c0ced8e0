load common
load router

router() {
	amap-router --config home/router.json "$@"
}

@test "status.json: the keys of the spec, and the counters of what happened" {
	fleet '"peer_senders":{"beta":["alpha"]}' alpha beta
	request alpha 0 beta
	start_router 60
	assert_equal "$(jq -c '[.schema, .polls, .interval_s, .admitted]' home/router-state/status.json)" '[1,1,60,["alpha","beta"]]'
	grep -q '"interval_s": 60.0,' home/router-state/status.json
	assert_equal "$(stat -c %a home/router-state/status.json)" 600
	assert_equal "$(jq -c '.instances.alpha | [.last_summary.first_sight, .last_summary.quarantined, .last_summary.rejected, .last_error_ts, has("peer_alerts")]' home/router-state/status.json)" '[1,1,1,null,false]'
	request alpha 1 beta
	eventually test -s home/instances/alpha/outbox/results/1.json
	kill -HUP "$router"
	eventually status_is .polls 2
	assert_equal "$(jq -c '.instances.alpha.last_summary | [.outbound_seen, .drained, .accepted, .first_sight]' home/router-state/status.json)" '[1,1,1,0]'
	assert_equal "$(jq -c '.instances.alpha.last_summary | keys - ["found_by_event","found_by_scan","held_released","held_denied"]' home/router-state/status.json)" \
	    '["accepted","drained","first_sight","outbound_errored","outbound_req_id_reused","outbound_resumed","outbound_seen","outbound_skipped_bad_name","peer_alerts","peer_ambiguous_target","peer_delivered","peer_denied","peer_dsn_failed","peer_dsn_sent","peer_held","peer_inject_failed","peer_outcome_discarded","peer_outcome_errored","peer_outcomes_seen","peer_placed_denied","peer_refused","quarantined","queued_for_human","rejected"]'
	assert_equal "$(jq -c '.instances.alpha.totals | [has("outbound_seen"), .instance_errored, .drained]' home/router-state/status.json)" '[false,0,2]'
	assert_equal "$(jq -c '[.totals.accepted, .totals.outbound_errored, .totals.instance_errored]' home/router-state/status.json)" '[1,0,0]'
	run -0 router status --json
	assert_equal "$(jq -S . <<<"$output")" "$(jq -S . home/router-state/status.json)"
}

@test "27.14 admitted shrinks when a member leaves, instances does not" {
	fleet '"task_graph":"all"' alpha beta
	start_router 60
	select_members beta
	kill -HUP "$router"
	eventually status_is .polls 2
	assert_equal "$(jq -c '[.admitted, (.instances | keys)]' home/router-state/status.json)" '[["beta"],["alpha","beta"]]'
}

@test "27.14 17.3 --check: 13 s old is fresh at an interval of 5, 16 s is not, a future time is; what is missing is unhealthy" {
	fleet '' alpha
	check() {
		printf '%s' "$1" >home/router-state/status.json
		run --separate-stderr router status --check
		echo "$status ${output%%:*}${stderr%%:*}"
	}
	ago() {
		date -u -d "$1 seconds ago" +%FT%TZ
	}
	assert_equal "$(check "{\"interval_s\":5.0,\"last_poll_ts\":\"$(ago 13)\"}")" "0 healthy"
	assert_equal "$(check "{\"interval_s\":5.0,\"last_poll_ts\":\"$(ago 16)\"}")" "1 unhealthy"
	assert_equal "$(check "{\"interval_s\":5.0,\"last_poll_ts\":\"$(ago -100)\"}")" "0 healthy"
	assert_equal "$(check "{\"interval_s\":true,\"last_poll_ts\":\"$(ago 1)\"}")" "1 unhealthy"
	assert_equal "$(check "{\"interval_s\":0,\"last_poll_ts\":\"$(ago 1)\"}")" "1 unhealthy"
	assert_equal "$(check "{\"last_poll_ts\":\"$(ago 1)\"}")" "1 unhealthy"
	assert_equal "$(check '{"interval_s":5,"last_poll_ts":"then"}')" "1 unhealthy"
	assert_equal "$(check '{"interval_s":5}')" "1 unhealthy"
	assert_equal "$(check '[]')" "1 unhealthy"
	assert_equal "$(check '{')" "1 unhealthy"
	rm home/router-state/status.json
	run -1 --separate-stderr router status --check --json
	[ -z "$output" ]
	assert_equal "$(wc -l <<<"$stderr")" 1
	run -1 router status
	run -1 --separate-stderr router status --json
	[ -z "$output" ]
}

@test "27.14 what is not known yet is absent, never a default" {
	command -v strace >/dev/null || skip "no strace"
	fleet '"task_graph":"all"' alpha
	# Told to end before its first look.
	run -0 env ASAN_OPTIONS=detect_leaks=0 strace -qq -o /dev/null --inject=inotify_init1:signal=SIGTERM \
	    amap-router --config home/router.json run --interval 5
	assert_equal "$(jq -c '[.schema, .polls, has("admitted"), .instances.alpha.totals.drained]' home/router-state/status.json)" '[1,0,false,0]'
	run -1 router status --check
}

@test "plain status: a line an instance, banners for what needs a look, then the discovery report" {
	fleet '"peer_senders":{"beta":["alpha"],"ghost":[]}' alpha beta
	request alpha 0 beta
	once
	request beta 1 alpha
	start_router 60
	eventually status_is .instances.beta.held 1
	run -0 router status
	assert_line --index 1 "alpha  drained=0 accepted=0 rejected=0 for_human=0 quarantined=0 errors=0"
	assert_line --index 2 "beta  drained=1 accepted=0 rejected=0 for_human=1 quarantined=0 errors=0"
	assert_line "** 1 requests of beta wait for you: amap-held list **"
	assert_equal "$(tail -n 2 <<<"$output")" "discovery:
    ** INERT EDGE  ghost: an edge names it, and no verdict does; a typo? **"
	assert_equal "$(jq -c '.instances.beta | [.held, .held_oldest_ts != null]' home/router-state/status.json)" '[1,true]'
}

@test "--prometheus: every line is a sample or a comment, names are stable" {
	fleet '"task_graph":"all"' alpha beta
	start_router 60
	request alpha 1 beta
	eventually test -s home/instances/alpha/outbox/results/1.json
	stop_router
	run -0 router status --prometheus
	assert_line 'amap_router_accepted_total{instance="alpha"} 1'
	assert_line 'amap_router_found_by_event_total{instance="alpha"} 1'
	assert_line 'amap_router_held{instance="beta"} 0'
	assert_line 'amap_router_interval_seconds 60.0'
	assert_equal "$(grep -vE '^# (HELP|TYPE) amap_router_[a-z_]+ .+$|^amap_router_[a-z_]+(\{instance="[A-Za-z0-9._-]+"\})? [0-9.]+$' <<<"$output")" ""
}

@test "27.15 roster: admitted only, exact keys, sorted by address, 0644, after the drain" {
	fleet '"task_graph":"all"' alpha alpha-x beta
	select_members alpha alpha-x
	request alpha 0 beta
	start_router 5
	eventually test -s home/roster/roster.json
	[ ! home/roster/roster.json -ot home/instances/alpha/outbox/results/0.json ]
	assert_equal "$(jq -cS 'del(.written_at)' home/roster/roster.json)" \
	    '{"contract_version":"2","interval_s":5,"members":[{"address":"alpha-x@fleet.example","state":"admitted"},{"address":"alpha@fleet.example","state":"admitted"}],"router":"amap.router@fleet.example"}'
	assert_equal "$(stat -c %a home/roster/roster.json)" 644
	grep -q '"interval_s": 5.0,' home/roster/roster.json
	assert_equal "$(sed -n 6,7p home/roster/roster.json)" $'  "members": [\n    {'
	documents_are_sound
	select_members
	kill -HUP "$router"
	roster_empty() { [ "$(jq -c .members home/roster/roster.json)" = '[]' ]; }
	eventually roster_empty
	documents_are_sound
}

@test "27.15 roster: what keeps it from being written leaves the old one, and is told once" {
	fleet '"task_graph":"all"' alpha
	start_router 0.1
	eventually test -s home/roster/roster.json
	printf '[' >home/selected.json
	eventually grep -q 'roster skipped: the verdict is unavailable' log
	cp home/roster/roster.json old
	sleep 0.4
	cmp home/roster/roster.json old
	assert_equal "$(grep -c 'roster skipped' log)" 1
	select_members alpha
	rm -r home/roster
	eventually grep -q 'roster skipped: its directory is absent' log
	[ ! -e home/roster ]
	: >home/roster
	eventually grep -q 'roster not written' log
}

@test "27.15 roster: a directory that cannot be written is skipped, and told once" {
	unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces"
	fleet '"task_graph":"all"' alpha
	unshare --user --map-root-user --mount sh -c 'mount --bind home/roster home/roster && mount -o remount,ro,bind home/roster &&
	    exec amap-router --config home/router.json run --interval 0.1' >log 2>&1 3>&- &
	router=$!
	eventually grep -q 'roster skipped: Read-only file system' log
	more_polls() { [ "$(jq .polls home/router-state/status.json)" -gt 3 ]; }
	eventually more_polls
	assert_equal "$(grep -c roster log) $(ls home/roster)" "1 "
	stop_router
}

@test "no roster for an authored fleet or one without a domain" {
	mkdir -p state a/inbox a/outbox roster
	printf '{"state_dir":"%s/state","instances":{"alpha":{"handoff_dir":"%s/a"}}}' "$PWD" "$PWD" >c.json
	amap-router --config c.json run --interval 60 >log 2>&1 3>&- &
	router=$!
	eventually grep -q 'roster skipped: the fleet is authored' log
	[ ! -e roster/roster.json ]
}

@test "27.10 B59 a second drainer exits 1 and touches nothing, reset too; a killed holder leaves no lock" {
	fleet '"task_graph":"all"' alpha beta
	start_router 60
	run -1 --separate-stderr once
	[[ $stderr == *".router.lock is held by another process, pid $router" ]]
	run -1 router run --interval 5
	run -1 --separate-stderr router reset alpha --yes
	[ -e home/router-state/alpha/first-seen.json ]
	assert_equal "$(stat -c %a home/router-state/.router.lock)" 600
	assert_equal "$(cat home/router-state/.router.lock)" "$router"
	kill -KILL "$router"
	wait "$router" || true
	router=
	run -0 once
}

@test "25.4 SIGTERM ends it with exit 0, also as process 1, and SIGINT" {
	fleet '"task_graph":"all"' alpha beta
	start_router 60
	kill -TERM "$router"
	wait "$router"
	router=
	rm home/router-state/status.json
	start_router 60
	kill -INT "$router"
	wait "$router"
	router=
	tail -n 1 log | grep -q 'router stopped'
	unshare --user --map-root-user --pid --fork true 2>/dev/null || skip "no user namespaces"
	rm home/router-state/status.json
	unshare --user --map-root-user --pid --fork amap-router --config home/router.json run --interval 60 >log 2>&1 3>&- &
	outer=$!
	eventually test -s home/router-state/status.json
	pkill -TERM -P "$outer"
	wait "$outer"
	tail -n 1 log | grep -q 'router stopped'
}

@test "readiness is told to the service manager after the first look" {
	fleet '' alpha
	perl -MSocket -e 'socket(S, PF_UNIX, SOCK_DGRAM, 0) && bind(S, sockaddr_un("notify")) or die; $| = 1;
	    while (defined recv(S, $m, 99, 0)) { print "$m\n" }' >told 3>&- &
	listener=$!
	eventually test -S notify
	NOTIFY_SOCKET=$PWD/notify start_router 60
	eventually grep -q READY=1 told
	stop_router
	eventually grep -q STOPPING=1 told
	kill "$listener"
}

@test "B50 what no event tells is found by the timer, and status says which way each was found" {
	fleet '"task_graph":"all"' alpha beta
	start_router 0.2
	request alpha 1 beta
	eventually test -s home/instances/alpha/outbox/results/1.json
	# A link is no event that the router listens to.
	request alpha 2 beta
	eventually test -s home/instances/alpha/outbox/results/2.json
	jq -nc '{contract_version: "2", req_id: "3", draft: {to: ["beta@fleet.example"], subject: "", body_text: ""}}' >home/instances/alpha/t
	kill -STOP "$router"
	ln home/instances/alpha/t home/instances/alpha/outbox/req-3.json
	rm home/instances/alpha/t
	kill -CONT "$router"
	eventually test -s home/instances/alpha/outbox/results/3.json
	assert_equal "$(verdict alpha 3)" "accepted peer_routed"
	eventually status_is '.instances.alpha.totals | [.found_by_event, .found_by_scan]' '[2,1]'
}

@test "an outbox that is replaced is watched again" {
	fleet '"task_graph":"all"' alpha beta
	start_router 0.2
	mv home/instances/alpha/outbox home/instances/alpha/old
	mkdir home/instances/alpha/outbox
	sleep 0.5
	request alpha 1 beta
	eventually test -s home/instances/alpha/outbox/results/1.json
	eventually status_is '.instances.alpha.totals.found_by_event' '1'
	assert_equal "$(jq -c '.totals.instance_errored' home/router-state/status.json)" 0
}

@test "no HOME, closed standard input, a full output" {
	fleet '"task_graph":"all"' alpha
	run -0 env -i "$BIN/amap-router" --config home/router.json once
	run -0 sh -c 'amap-router --config home/router.json once --json <&-'
	run -2 sh -c 'amap-router --config home/router.json peers --json >/dev/full'
	run -2 sh -c 'amap-router --config home/router.json once --json >/dev/full'
}
