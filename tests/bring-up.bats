load common
load golden
load embedded

teardown() {
	embedded_teardown
}

# The last run brought all of it up; else what it said.
is_up() {
	[ "$status" -eq 0 ] || grep -E '^(stage|bring|amap)|FAIL|UNKNOWN' <<<"$output"
	[ "$status" -eq 0 ]
	assert_equal "${lines[-1]}" 'AMAP is up'
}

in_beta() { amap-sandbox sandbox exec --name beta --no-tty --no-login-shell -- "$@" </dev/null; }

# Only the lines of the stages, and the last one.
stages() {
	grep -E '^(stage|AMAP|bring-up|dry run|preflight|key|UNKNOWN)' <<<"$output"
}

titles='stage 1/7 image: the image of the sandboxes
stage 2/7 gateway-config: what the gateway must allow
stage 3/7 install: the home
stage 4/7 profile: the provider profile
stage 5/7 provision: the members and their sandboxes
stage 6/7 router: the router
stage 7/7 verify: what really runs'

@test "embedded: a dry run goes through all stages and makes nothing" {
	embedded_setup
	run -0 amap bring-up --agent "$TOP/examples/agents/files.sh"
	assert_equal "$(stages | grep -v ': would')" "key: none
$titles
dry run: nothing was changed; add --apply to bring AMAP up"
	assert_equal "$(stages | grep ': would')" "stage 1/7 image: would skip (embedded sandboxes run on this host's own system)
stage 2/7 gateway-config: would run
stage 3/7 install: would run
stage 4/7 profile: would skip (embedded sandboxes have no provider)
stage 5/7 provision: would run
stage 6/7 router: would run
stage 7/7 verify: would run"
	[ ! -e "$H" ]
	[ ! -e "$AMAP_SANDBOX_DIR/gateway.toml" ]
	[ ! -e "$XDG_CONFIG_HOME" ]
}

@test "embedded: two members from nothing, then nothing left to do, then what was taken away comes back" {
	embedded_setup
	run amap bring-up --agent "$TOP/examples/agents/files.sh" --apply
	is_up
	assert_equal "$(stages | grep -v ': done$')" "$(sed -e "/image/a stage 1/7 image: skipped (embedded sandboxes run on this host's own system)" \
	    -e '/profile/a stage 4/7 profile: skipped (embedded sandboxes have no provider)' <<<"$titles")
AMAP is up"
	assert_equal "$(amap-sandbox sandbox list --all-workspaces --names | sort)" "default/alpha
default/beta"
	run -0 amap list
	assert_regex "$output" '^alpha: member \([0-9a-f-]{36}\)
beta: member \([0-9a-f-]{36}\)$'
	assert_equal "$(stat -c '%u %a' "$H/payload/agent")" "$(id -u) 755"
	for made in . roster instances/alpha/inbox/notices instances/beta/outbox router-state; do
		assert_equal "$made $(stat -c %u "$H/$made")" "$made $fleet_uid"
	done
	assert_equal "$(stat -c %a "$AMAP_SANDBOX_DIR/gateway.toml")" 600
	run -0 jq -r '.members[].state' "$H/roster/roster.json"
	assert_equal "$(stat -c %a "$H/evidence" "$H/evidence/runner.log" "$H/evidence/step-6" | paste -sd ' ')" '700 600 700'
	run -0 grep -c '^stage 6/7 router: done$' "$H/evidence/runner.log"
	run -0 jq -c '[.step, .exit, .argv[1:4]]' "$H"/evidence/step-6/*-amap-sandbox-service-start.json
	assert_output '[6,0,["service","start","amap-router"]]'

	# Nothing is made twice.
	before=$(amap-sandbox sandbox list --all-workspaces --ids; amap-sandbox inspect amap-router | jq '.[].State.Pid')
	run amap bring-up --apply
	is_up
	assert_line 'stage 5/7 provision: skipped (every member is present and recorded)'
	assert_line 'stage 6/7 router: skipped (it is running and has published the roster)'
	assert_equal "$(amap-sandbox sandbox list --all-workspaces --ids; amap-sandbox inspect amap-router | jq '.[].State.Pid')" "$before"

	# A router that dies again and again, a sandbox that was stopped, and one whose first
	# process was killed, are started again: the same ones, with what stands in their homes and lanes.
	ids=$(amap-sandbox sandbox list --all-workspaces --ids)
	amap-sandbox service stop amap-router
	printf '%s\trw\n' "$H/router-state" >mounts
	amap-sandbox service start amap-router --mounts mounts --restart unless-stopped -- false
	eventually sh -c '[ -z "$(amap-sandbox ps --filter "name=^amap-router$" --format "{{.Names}}")" ]'
	amap-sandbox sandbox stop alpha
	in_beta sh -c 'echo kept >/sandbox/file'
	echo kept >"$H/instances/beta/inbox/file"
	kill -9 "$(amap-sandbox inspect "$(tail -n 1 <<<"$ids")" | jq '.[].State.Pid')"
	eventually sh -c 'amap-sandbox sandbox get beta -o json | grep -q "\"phase\": \"Error\""'
	run amap bring-up --apply
	is_up
	assert_line 'stage 5/7 provision: done'
	assert_line 'stage 6/7 router: done'
	assert_equal "${lines[-1]}" 'AMAP is up'
	assert_equal "$(amap-sandbox sandbox list --all-workspaces --ids)" "$ids"
	run -0 in_beta cat /sandbox/file /opt/amap/lanes/inbox/file
	assert_output "kept
kept"
	rm "$H/instances/beta/inbox/file"

	# A member that is gone is refused by name until it is deprovisioned.
	amap-sandbox sandbox delete alpha
	run -1 amap bring-up --apply
	assert_equal "${lines[-2]}" 'stage 5/7 provision: stopped'
	assert_regex "${lines[-1]}" '^bring-up stopped at provision: amap-openshell provision: alpha: recorded with the ID .* gone.*deprovision alpha first$'
	run -0 amap deprovision alpha --apply
	run amap bring-up --apply
	is_up
	assert_equal "${lines[-1]}" 'AMAP is up'
	run -0 amap list

	# Teardown ends the router too, which would go on in directories that are gone.
	run -0 amap teardown
	assert_line 'would stop the router'
	run -0 amap teardown --apply
	assert_line 'stopped the router'
	assert_equal "$(amap-sandbox ps --filter 'name=^amap-router$' --format '{{.Names}}')" ''
}

@test "embedded: a machine that cannot run a sandbox is told before anything is made" {
	embedded_setup
	cat >no-bwrap <<-'END'
	#!/bin/sh
	case " $* " in *" create "*) echo 'amap-sandbox: sandbox amap-try: bwrap: not found: install bubblewrap' >&2; exit 1 ;; esac
	exec amap-sandbox "$@"
	END
	mkdir bin
	mv no-bwrap bin/amap-sandbox
	sed -i "s|exec amap-sandbox|exec '$BIN/amap-sandbox'|" bin/amap-sandbox
	chmod +x bin/amap-sandbox
	run -1 --separate-stderr amap --openshell "$PWD/bin/amap-sandbox" bring-up --agent "$TOP/examples/agents/files.sh" --apply
	assert_output 'bring-up stopped at preflight: amap-sandbox: sandbox amap-try: bwrap: not found: install bubblewrap'
	[ ! -e "$H" ]
	[ ! -e "$AMAP_SANDBOX_DIR/gateway.toml" ]
}

@test "embedded: another fleet's gateway configuration is never changed" {
	embedded_setup
	mkdir -m 700 "$AMAP_SANDBOX_DIR"
	printf '[amap.embedded]\nhome = "/srv/other"\n' >"$AMAP_SANDBOX_DIR/gateway.toml"
	cp "$AMAP_SANDBOX_DIR/gateway.toml" kept
	run -1 amap bring-up --agent "$TOP/examples/agents/files.sh" --apply
	assert_equal "${lines[-2]}" 'stage 2/7 gateway-config: stopped'
	assert_regex "${lines[-1]}" '^bring-up stopped at gateway-config: .*gateway.toml: says something else'
	run -0 cmp kept "$AMAP_SANDBOX_DIR/gateway.toml"
	[ ! -e "$H/fleet.json" ]
}

@test "a second bring-up while one runs is refused with one line, and so is any verb that writes" {
	embedded_setup
	mkdir "$H"
	exec 8<"$H"
	flock -n 8
	run -1 --separate-stderr amap bring-up --apply
	assert_equal "$output" "bring-up stopped at preflight: $H: another amap-openshell is changing this home; wait until it has ended"
	assert_equal "$stderr" "amap-openshell bring-up: $H: another amap-openshell is changing this home; wait until it has ended"
	# first of all: what a verb reads before that, another could be about to change
	for verb in install 'provision alpha' 'deprovision alpha' router-config teardown "l1-kit record --home $H alpha id" \
	    "l1-kit profile --home $H --binary /bin/sh"; do
		# shellcheck disable=SC2086 # words
		run -1 --separate-stderr amap $verb --apply
		assert_regex "$stderr" "^amap-openshell [a-z1 -]+: $H: another amap-openshell is changing this home; wait until it has ended\$"
	done
	[ ! -e "$H/fleet.json" ]
	exec 8<&-
}

@test "preflight: a bad policy, home, user or router ends it with one line before anything is made" {
	embedded_setup
	echo '{' >bad.json
	jq '.task_graph={}' "$TOP/examples/fleet.json" >nobody.json
	jq '.task_graph={"Beta":["alpha"]}' "$TOP/examples/fleet.json" >badname.json
	while read -r option value; do
		run -1 --separate-stderr amap "$option" "$value" bring-up --apply
		assert_regex "$output" "^bring-up stopped at preflight: [^
]*$"
		assert_regex "$stderr" "^amap-openshell bring-up: [^
]*$"
		[ ! -e "$H" ]
	done <<-END
		--fleet bad.json
		--fleet nobody.json
		--fleet badname.json
		--fleet none.json
		--home $TOP/home
		--home relative
		--home $BATS_TEST_TMPDIR/no/such
		--run-as 0:5
		--run-as 1000
		--router $PWD
	END
	run -2 amap bring-up --no-such
	run -2 amap bring-up stray
}

# ---- on OpenShell ----


@test "on OpenShell: the version must be given, and hold no white space" {
	fake_gateway
	H=$BATS_TEST_TMPDIR/home
	unset CLAUDE_CODE_VERSION
	run -2 sh "$TOP/sh/amap-openshell" --openshell openshell --home "$H" --run-as 1000:1000 bring-up
	run -2 sh "$TOP/sh/amap-openshell" --openshell openshell --home "$H" --run-as 1000:1000 bring-up --claude-code-version '2 1'
	[ ! -e "$H" ]
}

@test "on OpenShell: no interceptor and no key are remembered by a dry run and refused with --apply" {
	fake_gateway
	H=$BATS_TEST_TMPDIR/home
	bring_up() {
		XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/cfg sh "$TOP/sh/amap-openshell" --openshell openshell --docker false --home "$H" --run-as 1000:1000 \
		    bring-up --claude-code-version 2.1.284 "$@"
	}
	run -1 --separate-stderr bring_up
	assert_line --partial "preflight: $H/run/interceptor.sock: nobody listens"
	assert_line --partial 'preflight: alpha beta: to be created, and there is no key'
	assert_line 'key: none'
	assert_line --regexp 'stage 2/7 gateway-config: would stop \(.*gateway.toml: the settings must be PRESENT'
	assert_equal "${lines[-1]%%:*}" 'dry run'
	run -1 --separate-stderr bring_up --apply
	assert_regex "$output" "^bring-up stopped at preflight: $H/run/interceptor.sock: nobody listens"
	[ ! -e "$H" ]
	# B58: a path that no socket can have
	H=$BATS_TEST_TMPDIR/$(printf 'd%.0s' $(seq 100))
	socket=$H/run/interceptor.sock
	run -1 --separate-stderr bring_up --apply
	assert_equal "$output" "bring-up stopped at preflight: $socket: the path of a socket has at most 107 bytes, this one has ${#socket}; choose a shorter --home"
	H=$BATS_TEST_TMPDIR/home
	run -1 --separate-stderr bring_up --api-key-stdin --apply </dev/null
	assert_equal "$output" 'bring-up stopped at preflight: --api-key-stdin: standard input holds no key'
	ANTHROPIC_API_KEY=sk-secret run -1 --separate-stderr bring_up
	assert_line "key: \$ANTHROPIC_API_KEY is set"
	run -1 --separate-stderr bring_up --api-key-stdin <<<"  sk-secret  "
	assert_line 'key: given on stdin'
	run -1 grep -r sk-secret "$FAKE_OPENSHELL"
	run -1 grep '^1' "$FAKE_OPENSHELL/calls"
}

@test "what a stage cannot ask stops that stage in its own words, and the dry run goes on" {
	fake_gateway
	H=$BATS_TEST_TMPDIR/home
	mkdir -p "$H/providers"
	echo '{}' >"$H/providers/amap-claude-code.json"
	echo 'list-profiles gateway unreachable' >"$FAKE_OPENSHELL/fail"
	run -1 --separate-stderr sh "$TOP/sh/amap-openshell" --openshell openshell --docker true --home "$H" --run-as 1000:1000 \
	    bring-up --claude-code-version 2.1.284
	assert_line --regexp '^stage 4/7 profile: would stop \(`provider list-profiles` failed: .*gateway unreachable'
	assert_line --regexp '^stage 7/7 verify: '
	# a router that cannot be asked for is not one that runs
	embedded_setup
	run -1 --separate-stderr amap --docker false bring-up
	assert_line 'stage 6/7 router: would stop (`ps` failed: exit status 1)'
	assert_line --regexp '^stage 7/7 verify: '
}

@test "on OpenShell: a state that cannot be told ends preflight" {
	fake_gateway
	H=$BATS_TEST_TMPDIR/home
	echo 'list gateway unreachable' >"$FAKE_OPENSHELL/fail"
	run -1 --separate-stderr sh "$TOP/sh/amap-openshell" --openshell openshell --home "$H" --run-as 1000:1000 \
	    bring-up --claude-code-version 2.1.284
	assert_line --index 0 --partial 'UNKNOWN: `sandbox get alpha` failed'
	assert_line --index 1 --partial 'bring-up stopped at preflight: UNKNOWN: '
}
