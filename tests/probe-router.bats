load common
load evidence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	home=$PWD/home
	fleet "$home"
	jq -n --arg h "$home" '{state_dir: "\($h)/router-state", instances_dir: "\($h)/instances",
	    selected_json: "\($h)/selected.json", fleet_domain: "agents.example.org", peer_senders: {}}' >"$home/router.json"
	echo '{"schema":1,"selected":[{"slug":"alpha"},{"slug":"beta"}],"not_selected":[]}' >"$home/selected.json"
	for name in alpha beta; do
		mkdir -p "$home/router-state/$name"
		jq -nc --arg n "$name" '{schema: 1, instance: $n, first_seen_ts: "2026-01-01T00:00:00Z",
		    outbox_snapshot: []}' >"$home/router-state/$name/first-seen.json"
	done
	{
		answer router-ps - 0 $'amap-router\n'
		answer router-inspect - 0 "$(inspected)"
		answer router-mounts - 0 "$home	ro
$home/instances	rw
$home/router-state	rw
"
		answer router-status - 0 "$(status)"
		answer router-report - 0 $'polled\nalpha  drained=0\n'
	} >answers
	ended answers
}

inspected() {
	jq -nc --arg h "$home" '
	    def bind(p; rw): {Type: "bind", Source: p, Destination: p, Mode: "", RW: rw};
	    [{Id: "r", Name: "/amap-router", State: {Running: true, Pid: 1}, Mounts: [bind($h; false),
	      bind($h + "/instances"; true), bind($h + "/router-state"; true), bind($h + "/router.json"; false)],
	      HostConfig: {NetworkMode: "none", RestartPolicy: {Name: "unless-stopped", MaximumRetryCount: 0}}}]'
}

status() {
	jq -nc --arg t "$(date -u +%Y-%m-%dT%H:%M:%SZ)" '{polls: 3, last_poll_ts: $t, instances: {alpha: {}, beta: {}},
	    totals: {outbound_errored: 0, instance_errored: 0}, interval_s: 5.0, admitted: ["beta", "alpha"]}'
}

# change ASK FILTER: the answer itself, changed by jq.
change() {
	jq -c "if .ask == \"$1\" then $2 else . end" answers >changed
	mv changed answers
}

# inside ASK FILTER: the document that was printed, changed by jq.
inside() { change "$1" ".stdout |= (fromjson | $2 | tojson)"; }

router() { amap-probe-router --config "$home/router.json" --name amap-router answers; }
health() { amap-probe-health --config "$home/router.json" answers; }

# bad: every outcome that is no PASS, on one line.
bad() { outcomes <<<"$output" | grep -v PASS | tr '\n' ';'; }

@test "usage is sound" {
	usage_is_sound amap-probe-router
	usage_is_sound amap-probe-health
	run -2 amap-probe-router --config x answers
	run -2 amap-probe-health answers
}

@test "a healthy router is six and seven times PASS" {
	run -0 router
	assert_equal "$(outcomes <<<"$output")" $'K1 - PASS\nK2 - PASS\nK3 - PASS\nK4 - PASS\nK5 - PASS\nK6 - PASS'
	printf '%s\n' "$output" >checks
	run -0 health
	assert_equal "$(outcomes <<<"$output")" $'H1 - PASS\nH2 - PASS\nH3 - PASS\nH4 - PASS\nH5 - PASS\nH6 - PASS\nH7 - PASS'
	printf '%s\n' "$output" >>checks
	sound checks
	refute_output --partial warning
}

@test "a router that is not there to be asked is one UNKNOWN" {
	run -1 amap-probe-router --problem '/x: not a checkout'
	assert_equal "$(outcomes <<<"$output")" 'K1 - UNKNOWN'
	assert_output --partial '"reason":"/x: not a checkout"'
}

@test "docker that fails is UNKNOWN, a router that is absent one FAIL" {
	cp answers good
	change router-ps '.status = 1 | .stderr = "Cannot connect"'
	run -1 router
	assert_equal "$(bad)" 'K1 - UNKNOWN;K2 - UNKNOWN;K3 - UNKNOWN;K4 - UNKNOWN;K5 - UNKNOWN;K6 - UNKNOWN;'
	cp good answers
	for names in '' 'amap-router2\n' 'xamap-router\n'; do
		change router-ps ".stdout = \"$names\""
		run -1 router
		assert_equal "$(bad)" 'K1 - FAIL;K2 - UNKNOWN;K3 - UNKNOWN;K4 - UNKNOWN;K5 - UNKNOWN;K6 - UNKNOWN;'
	done
	echo '{' >"$home/router.json"
	run -1 router
	assert_equal "$(bad)" 'K1 - FAIL;K2 - UNKNOWN;'
	cp good answers
	run -0 router
	assert_equal "$(outcomes <<<"$output")" $'K1 - PASS\nK2 - PASS'
	change router-inspect '.status = null'
	run -1 router
	assert_equal "$(bad)" 'K1 - UNKNOWN;K2 - UNKNOWN;'
}

# Each line: a jq change of what docker inspect shows, and every outcome that is no PASS.
@test "each fault of the container is its own" {
	mkdir "$home/extra" other
	cp answers good
	while IFS=@ read -r filter outcome; do
		cp good answers
		inside router-inspect "$filter"
		run -1 router
		assert_equal "$(bad)" "$outcome"
	done <<-'END'
		.[0].State.Running = false@K1 - FAIL;
		.[0].State = null@K1 - UNKNOWN;
		.[0].State.Running = "true"@K1 - UNKNOWN;
		.[0].HostConfig.NetworkMode = "bridge"@K2 - FAIL;
		.[0].HostConfig.NetworkMode = "host"@K2 - FAIL;
		.[0].HostConfig.NetworkMode = "default"@K2 - FAIL;
		.[0].HostConfig.RestartPolicy.Name = "no"@K2 - FAIL;
		.[0].HostConfig.RestartPolicy.Name = "always"@K2 - FAIL;
		.[0].HostConfig = null@K2 - UNKNOWN;
		.[0].Mounts[0].RW = true@K3 - FAIL;
		.[0].Mounts[1].RW = false@K3 - FAIL;
		.[0].Mounts[1].Source = "/tmp"@K3 - FAIL;
		.[0].Mounts[3].RW = true@K3 - FAIL;
		.[0].Mounts += [{Type: "volume", Name: "v", Source: "/v", Destination: "/v", RW: true}]@K3 - FAIL;
		.[0].Mounts += [.[0].Mounts[0] | .Source += "/selected.json" | .Destination += "/selected.json"]@K3 - FAIL;K4 - FAIL;
		.[0].Mounts = null@K3 - FAIL;
		del(.[0].Mounts)@K3 - UNKNOWN;K4 - UNKNOWN;
		.[0].Mounts[0].RW = null@K3 - UNKNOWN;K4 - UNKNOWN;
		[]@K1 - UNKNOWN;K2 - UNKNOWN;K3 - UNKNOWN;K4 - UNKNOWN;K5 - UNKNOWN;K6 - UNKNOWN;
		{}@K1 - UNKNOWN;K2 - UNKNOWN;K3 - UNKNOWN;K4 - UNKNOWN;K5 - UNKNOWN;K6 - UNKNOWN;
	END
}

@test "B28 a configuration that its directory shows needs no mount of its own" {
	inside router-inspect 'del(.[0].Mounts[3])'
	run -0 router
	mkdir elsewhere
	cp "$home/router.json" elsewhere
	run -1 amap-probe-router --config "$PWD/elsewhere/router.json" --name amap-router answers
	assert_equal "$(bad)" 'K3 - FAIL;'
	assert_equal "$(jq -r 'select(.id == "K3") | (.expected | keys) - (.actual | keys) | .[]' <<<"$output")" \
	    "$PWD/elsewhere/router.json"
}

@test "a list of mounts that is broken is UNKNOWN, one that shadows is a FAIL" {
	cp answers good
	for text in '' 'x\trw\n' '/x rw\n' '/x\trx\n' '/x\n' '/x\trw \n' '\n'; do
		cp good answers
		change router-mounts ".stdout = \"$text\""
		run -1 router
		assert_equal "$(bad)" 'K3 - UNKNOWN;K5 - UNKNOWN;'
	done
	cp good answers
	change router-mounts '.status = 1'
	run -1 router
	assert_equal "$(bad)" 'K3 - UNKNOWN;K5 - UNKNOWN;'
	cp good answers
	change router-mounts '.stdout |= (split("\n") | [.[1], .[2], .[0], ""] | join("\n"))'
	run -1 router
	assert_equal "$(bad)" 'K5 - FAIL;'
}

@test "the router's view: names admitted against directories that are selected" {
	mkdir "$home/instances/gamma"
	ln -s alpha "$home/instances/link"
	run -0 router
	echo '{"selected":[{"slug":"alpha"},{"slug":"beta"},{"slug":"gamma"},{"slug":"delta"},{"slug":"link"},7]}' >"$home/selected.json"
	run -1 router
	assert_equal "$(bad)" 'K6 - FAIL;'
	inside router-status '.admitted = ["gamma", "alpha", "beta"]'
	run -0 router
	inside router-status 'del(.admitted)'
	run -1 router
	assert_equal "$(bad)" 'K6 - UNKNOWN;'
	rm "$home/selected.json"
	run -1 router
	assert_equal "$(bad)" 'K6 - UNKNOWN;'
	jq 'del(.selected_json)' "$home/router.json" >config
	mv config "$home/router.json"
	run -1 router
	assert_equal "$(bad)" 'K4 - UNKNOWN;K6 - UNKNOWN;'
}

@test "no status document is one UNKNOWN" {
	cp answers good
	for how in '.status = 1 | .stdout = "" | .stderr = "no status yet"' '.status = null' '.stdout = "soon"' '.stdout = "[]"' \
	    '.stdout = "{\"polls\":1"' '.stdout = null'; do
		cp good answers
		change router-status "$how"
		run -1 health
		assert_equal "$(outcomes <<<"$output")" 'H0 - UNKNOWN'
	done
}

# Each line: a jq change of the status document, and every outcome that is no PASS.
@test "each fault of the status document is its own" {
	cp answers good
	while IFS=@ read -r filter outcome; do
		cp good answers
		inside router-status "$filter"
		run -1 health
		assert_equal "$(bad)" "$outcome"
	done <<-'END'
		.polls = 0@H1 - FAIL;
		del(.polls)@H1 - FAIL;
		.last_poll_ts = "2026-01-01T00:00:00Z"@H2 - FAIL;
		.last_poll_ts = "2026-01-01T00:00:00.5+02:00"@H2 - FAIL;
		.last_poll_ts = "2026-01-01 00:00:00"@H2 - FAIL;
		.last_poll_ts = "yesterday"@H2 - UNKNOWN;
		.last_poll_ts = "2026-01-01"@H2 - UNKNOWN;
		.last_poll_ts = "2026-01-01T00:00:00Zulu"@H2 - UNKNOWN;
		del(.last_poll_ts)@H2 - UNKNOWN;
		del(.interval_s)@H2 - UNKNOWN;
		.interval_s = true@H2 - UNKNOWN;
		.interval_s = "5"@H2 - UNKNOWN;
		.interval_s = 0@H2 - UNKNOWN;
		.instances = {alpha: {}}@H3 - FAIL;
		.instances.gamma = {}@H3 - FAIL;
		.instances = []@H3 - UNKNOWN;
		.totals.outbound_errored = 2@H7 - FAIL;
		.totals.instance_errored = 1@H7 - FAIL;
		del(.totals) | .instances.beta = {totals: {outbound_errored: 1}}@H7 - FAIL;
	END
	cp good answers
	inside router-status 'del(.totals)'
	run -0 health
	inside router-status '.interval_s = 100 | .last_poll_ts = (now - 250 | strftime("%Y-%m-%dT%H:%M:%S.25Z"))'
	run -0 health
	inside router-status '.last_poll_ts = (now - 250 + 7200 | strftime("%Y-%m-%dT%H:%M:%S+02:00"))'
	run -0 health
	inside router-status '.last_poll_ts = (now - 310 | strftime("%Y-%m-%dT%H:%M:%SZ"))'
	run -1 health
	assert_equal "$(bad)" 'H2 - FAIL;'
}

@test "lines before the status document are a warning" {
	change router-status '.stdout |= "image is old\nby a week\n" + .'
	run -0 health
	assert_line '{"section":"router-health","warning":"2 lines stood before the router'"'"'s status document"}'
	change router-status '.stdout |= (split("\n") | .[2:] | "\n  " + join("\n"))'
	run -0 health
	refute_output --partial warning
}

@test "marks of a first sight: missing, unsound, retired, with a snapshot" {
	rm "$home/router-state/beta/first-seen.json"
	run -1 health
	assert_equal "$(bad)" 'H4 - FAIL;'
	for text in '{' '[]' '{"instance":"alpha","first_seen_ts":"x"}' '{"instance":"beta"}' '{"instance":"beta","first_seen_ts":""}'; do
		echo "$text" >"$home/router-state/beta/first-seen.json"
		run -1 health
		assert_equal "$(bad)" 'H5 - FAIL;'
	done
	echo '{"instance":"beta","first_seen_ts":"t","outbox_snapshot":[{"filename":"req-1.json"},{"filename":"req-2.json"}]}' \
	    >"$home/router-state/beta/first-seen.json"
	mkdir "$home/router-state/old"
	echo '{}' >"$home/router-state/old/first-seen.json"
	run -0 health
	assert_line --partial '"warning":"beta: 2 files lay in its outbox at first sight and went to quarantine (req-1.json, ...)"'
	assert_line --partial '"warning":"old: the router still keeps the state of this instance, which is not selected"'
	mv "$home/router-state" away
	run -1 health
	assert_equal "$(bad)" 'H4 - UNKNOWN;'
	assert_equal "$(outcomes <<<"$output" | grep -c H5)" 0
}

@test "the discovery report: marked lines are a FAIL, plain ones one warning each" {
	change router-report '.stdout = "poll\ndiscovery:\n    ** NO DIRECTORY  gamma: make it **\n    NO VERDICT  x: not selected\n    NO VERDICT  y: not selected\n    SKIPPED  Z: bad name\n\nalpha  ok\n    ** not in it"'
	run -1 health
	assert_equal "$(bad)" 'H6 - FAIL;'
	assert_equal "$(jq -c 'select(.id == "H6") | .actual' <<<"$output")" '["** NO DIRECTORY  gamma: make it **"]'
	assert_line '{"section":"router-health","warning":"NO VERDICT ×2 (x, y): not selected"}'
	assert_line '{"section":"router-health","warning":"SKIPPED  Z: bad name"}'
	change router-report '.stderr = "discovery:\n  NO VERDICT  x: other\n" | .stdout = "fine\n"'
	run -0 health
	assert_line '{"section":"router-health","warning":"NO VERDICT  x: other"}'
	change router-report '.status = 2'
	run -1 health
	assert_equal "$(bad)" 'H6 - UNKNOWN;'
}

@test "held requests are a warning with their number and the age of the oldest" {
	inside router-status '.instances.alpha = {held: 1, held_oldest_ts: "2026-01-01T00:00:00Z"} | .instances.beta = {held: 0, held_oldest_ts: null}'
	days=$((($(date +%s) - $(date -ud 2026-01-01 +%s)) / 86400))
	run -0 health
	assert_line --regexp "^\\{\"section\":\"router-health\",\"warning\":\"1 held request waits for the operator, the oldest for ($days|$((days + 1))) days \\(amap-held list\\)\"\\}\$"
	inside router-status '.instances.beta = {held: 2, held_oldest_ts: (now - 10800 | strftime("%Y-%m-%dT%H:%M:%SZ"))} | .instances.alpha = {}'
	run -0 health
	assert_line '{"section":"router-health","warning":"2 held requests wait for the operator, the oldest for 3 hours (amap-held list)"}'
}

@test "a broken configuration leaves what the status says" {
	echo '{' >"$home/router.json"
	run -1 health
	assert_equal "$(bad)" 'H3 - UNKNOWN;H4 - UNKNOWN;'
}

@test "answers that are cut, and output that cannot be written, are exit 2" {
	head -c -5 answers >cut
	run -2 amap-probe-router --config "$home/router.json" --name amap-router cut
	run -2 amap-probe-health --config "$home/router.json" cut
	run -2 sh -c 'amap-probe-router --config "$0/router.json" --name amap-router answers >/dev/full' "$home"
	run -2 sh -c 'amap-probe-health --config "$0/router.json" answers >/dev/full' "$home"
}
