load common
load evidence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	recorded "$PWD/home"
}

teardown() {
	recorded_end
}

# fault CHANGE FINDINGS: that is what the change leads to, and undone it is nothing.
fault() {
	rm -rf saved
	mkdir saved
	cp -a "$H" "$R" gateway.toml saved/
	eval "$1"
	assert_equal "$1: $(findings)" "$1: $2"
	rm -rf "$R"
	cp -a saved/replay "$R"
	cp -a saved/gateway.toml gateway.toml
	# the router's own directories stay, it is writing there
	find "$H" -mindepth 1 -maxdepth 1 ! -name router-state ! -name roster ! -name instances -exec rm -rf {} +
	for entry in saved/home/*; do
		case ${entry##*/} in router-state | roster | instances) continue ;; esac
		cp -a "$entry" "$H/"
	done
}

# edit FILE FILTER: a recorded document, changed by jq.
edit() {
	jq -c "$2" "$R/$1" >edited
	mv edited "$R/$1"
}

@test "the healthy fleet is 39 times PASS, and nothing was changed or started but what looks" {
	find "$H" -printf '%p %m %T@\n' | grep -v -e router-state -e roster | sort >before
	export ANTHROPIC_API_KEY=sk-not-for-anybody
	run -0 --separate-stderr verify
	assert_equal "$(grep -c '^  PASS    ' <<<"$output")" 39
	[ -z "$stderr" ]
	assert_equal "$(grep -c '^1' "$R/calls")" 0
	find "$H" -printf '%p %m %T@\n' | grep -v -e router-state -e roster | sort >after
	cmp before after
	# list, info, create; get, policy, ps, inspect, and two execs a member; two about the router
	assert_equal "$(wc -l <"$R/calls")" 17
}

@test "members: each fault is its own finding" {
	in='.Mounts |= map(if .Destination == "/opt/amap/lanes/inbox" then'
	fault "edit inspect-alpha-c1 '$in .RW = true else . end)'" 'M4 alpha FAIL'
	fault "edit inspect-alpha-c1 '.Mounts += [{Type: \"bind\", Source: \"/etc\", Destination: \"/x\", RW: false}]'" 'M4 alpha FAIL'
	fault "edit inspect-alpha-c1 '.Mounts += [{Type: \"bind\", Source: \"$H/instances/beta/outbox\", Destination: \"/x\", RW: true}]'" \
	    'M4 alpha FAIL; M5 alpha FAIL; M5 beta FAIL'
	fault "sed -i /lanes.inbox/d '$R/policy-alpha'" 'M2 alpha FAIL'
	fault "echo 'network: {}' >>'$R/policy-alpha'" 'M3 alpha FAIL'
	fault "sed -i s/api.anthropic.com/mail.example.org/ '$R/policy-alpha'" 'M3 alpha FAIL'
	fault "echo 1 >'$R/write-alpha.rc'; echo 1 >'$R/delivery-alpha.rc'; : >'$R/write-alpha'" 'M6 alpha UNKNOWN; M7 alpha UNKNOWN'
	fault "echo OPENED >'$R/write-alpha'" 'M6 alpha FAIL'
	fault "echo EACCES >'$R/write-alpha'" 'M6 alpha FAIL'
	fault "echo 0 >'$R/delivery-alpha'" 'M7 alpha FAIL'
	fault "edit get-alpha '.id = \"id-new\"'; mv '$R/ps-id-alpha' '$R/ps-id-new'" 'M1 alpha FAIL'
	fault "rm '$R/ps-id-alpha'" 'M4 alpha UNKNOWN; M5 alpha UNKNOWN; M5 beta UNKNOWN'
	fault ": >'$R/ps-id-beta'" 'M5 alpha UNKNOWN; M4 beta UNKNOWN; M5 beta UNKNOWN'
	fault "rm '$R/get-alpha'; echo default/beta >'$R/list'" \
	    'M1 alpha FAIL; M2 alpha UNKNOWN; M3 alpha UNKNOWN; M4 alpha UNKNOWN; M5 alpha UNKNOWN; M6 alpha UNKNOWN; M7 alpha UNKNOWN; M5 beta UNKNOWN'
}

@test "install and router-config: each fault is its own finding" {
	fault "echo >>'$H/payload/amap-main'" 'I1 - FAIL'
	fault "chmod 700 '$H/payload/amap-main'" 'I1 - FAIL'
	fault "touch '$H/payload/bin/extra'" 'I1 - FAIL'
	fault "rm '$H/payload/amap-main'" 'I1 - FAIL'
	fault "rm -r '$H/commands'" 'I2 - FAIL'
	fault "jq 'del(.members[0])' '$H/membership.json' >x; cp x '$H/membership.json'" 'I3 - FAIL; C1 - UNKNOWN; C2 - UNKNOWN; M1 alpha FAIL'
	fault "rm '$H/membership.json'" 'I3 - UNKNOWN; C1 - UNKNOWN; C2 - UNKNOWN; M1 alpha UNKNOWN; M1 beta UNKNOWN'
	fault "echo default/stray >>'$R/list'" 'I4 - FAIL'
	fault "echo 1 >'$R/list.rc'" 'I4 - UNKNOWN'
	fault "printf ' ' >>'$H/router.json'" 'C1 - FAIL'
	fault "printf ' ' >>'$H/selected.json'" 'C2 - FAIL'
	fault "rm '$H/selected.json'" 'C2 - FAIL; K6 - UNKNOWN; H3 - UNKNOWN; H4 - UNKNOWN; H6 - FAIL'
}

@test "gateway: each fault is its own finding" {
	fault "sed -i s/enable_bind_mounts.*/enable_bind_mounts\ =\ false/ gateway.toml" 'G2 - FAIL'
	fault "rm gateway.toml" 'G1 - FAIL; G2 - FAIL; G3 - FAIL; V1 - FAIL'
	fault "echo '[' >gateway.toml" 'G1 - UNKNOWN; G2 - UNKNOWN; G3 - UNKNOWN; V1 - UNKNOWN'
	fault "sed -i s/fail_closed/fail_open/ gateway.toml" 'V1 - FAIL'
	fault "echo '{\"extensions\":[]}' >'$R/info'" 'V2 - FAIL'
	fault "echo 1 >'$R/info.rc'" 'V2 - UNKNOWN'
	fault "echo 0 >'$R/create.rc'" 'V3 - FAIL'
	fault "echo 'invalid docker driver_config: unknown field' >'$R/create.err'" 'V3 - FAIL'
}

@test "router: each fault is its own finding" {
	fault "echo 1 >'$R/router-ps.rc'" 'K1 - UNKNOWN; K2 - UNKNOWN; K3 - UNKNOWN; K4 - UNKNOWN; K5 - UNKNOWN; K6 - UNKNOWN'
	fault ": >'$R/router-ps'" 'K1 - FAIL; K2 - UNKNOWN; K3 - UNKNOWN; K4 - UNKNOWN; K5 - UNKNOWN; K6 - UNKNOWN'
	fault "edit inspect-amap-router-local '.[0].State.Running = false'" 'K1 - FAIL'
	fault "edit inspect-amap-router-local '.[0].HostConfig = {NetworkMode: \"bridge\", RestartPolicy: {Name: \"no\"}}'" 'K2 - FAIL'
	fault "edit inspect-amap-router-local '.[0].Mounts[0].RW = true'" 'K3 - FAIL'
	kill "$router_pid"
	wait "$router_pid" || :
	router_pid=''
	status=$H/router-state/status.json
	cp "$status" status
	for filter in '.last_poll_ts = "2026-01-01T00:00:00Z"|H2 - FAIL' 'del(.interval_s)|H2 - UNKNOWN' 'del(.admitted)|K6 - UNKNOWN' \
	    '.polls = 0|H1 - FAIL' '.instances.gamma = .instances.alpha|H3 - FAIL' '.totals.outbound_errored = 1|H7 - FAIL'; do
		jq "(.last_poll_ts = (now | strftime(\"%Y-%m-%dT%H:%M:%SZ\"))) | ${filter%|*}" status >"$status"
		assert_equal "$filter: $(findings)" "$filter: ${filter##*|}"
	done
	jq '.last_poll_ts = (now | strftime("%Y-%m-%dT%H:%M:%SZ"))' status >"$status"
	rm "$H/router-state/beta/first-seen.json"
	assert_equal "$(findings)" 'H4 - FAIL'
	rm "$status"
	assert_equal "$(findings)" 'K6 - UNKNOWN; H0 - UNKNOWN'
}

@test "a policy that cannot be read leaves every section its UNKNOWN" {
	fault "echo '{' >'$H/fleet.json'" 'I3 - UNKNOWN; I4 - UNKNOWN; C1 - UNKNOWN; C2 - UNKNOWN; V3 - UNKNOWN; M1 - UNKNOWN'
	fault "rm '$H/fleet.json'" 'I3 - UNKNOWN; I4 - UNKNOWN; C1 - UNKNOWN; C2 - UNKNOWN; V3 - UNKNOWN; M1 - UNKNOWN'
}
