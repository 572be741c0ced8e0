# bring-up on OpenShell: the stand-in for its command line, and a real Docker
# engine of the test's own, without a network.
load common
load golden

load docker

setup_file() {
	start_engine || return 0
	small_system system sh readlink cut cat true
	mkdir -p system/opt/claude
	echo >system/opt/claude/cli.js
	echo >system/usr/bin/node
	chmod 755 system/opt/claude/cli.js system/usr/bin/node
	ln -s /opt/claude/cli.js system/usr/bin/claude
	tar -C system -c . | docker import --change 'LABEL amap-openshell.claude-code-version=2.1.284' \
	    --change 'LABEL amap-openshell.run-as=64123:64123' - amap-openshell-agent >/dev/null
}

teardown_file() {
	stop_engine
}

# small_system DIRECTORY PROGRAM...: these programs of this host, with what they load.
small_system() {
	local dir=$1 program file
	shift
	mkdir -p "$dir"/usr/bin "$dir"/usr/lib "$dir"/tmp "$dir"/etc
	ln -s usr/bin "$dir/bin"
	ln -s usr/lib "$dir/lib"
	ln -s usr/lib "$dir/lib64"
	for program; do
		program=$(readlink -f "$(type -P "$program")")
		cp "$program" "$dir/usr/bin/"
		ldd "$program" | grep -o '/[^ ]*' | while IFS= read -r file; do
			cp -n "$file" "$dir/usr/lib/"
		done
	done
	mv "$dir/usr/bin/dash" "$dir/usr/bin/sh"
}

setup() {
	needs_engine
	cd "$BATS_TEST_TMPDIR" || return
	chmod 755 "$BATS_TEST_TMPDIR"
	H=$(mktemp -d /tmp/amap-home-XXXXXX)
	chmod 755 "$H"
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/cfg
	mkdir -p cfg/openshell "$H/run"
	fake_gateway
	amap-render-gateway --home "$H" >cfg/openshell/gateway.toml
	perl -MIO::Socket::UNIX -e '
	    $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 5) or die; while ($s->accept) {}' \
	    "$H/run/interceptor.sock" 3>&- &
	listener=$!
	for _ in $(seq 100); do
		[ -S "$H/run/interceptor.sock" ] && break
		sleep 0.05
	done
}

teardown() {
	[ -z "${NO_ENGINE-}" ] || return 0
	kill "$listener"
	docker rm -f amap-router-local
	rm -rf "$H"
} >/dev/null 2>&1

key=sk-ant-a-key-of-nobody-for-this-test-9182736450

bring_up() {
	sh "$TOP/sh/amap-openshell" --openshell openshell --home "$H" --run-as 64123:64123 bring-up \
	    --claude-code-version 2.1.284 --api-key-stdin "$@" <<<"$key"
}

stages() { grep -E '^(stage .*: (done|skipped.*|stopped)|AMAP|bring-up)' <<<"$output"; }

@test "image, profile, provision and router on a real engine; what is in place is skipped; the key reaches the creates alone" {
	run bring_up --apply
	assert_equal "$(stages)" 'stage 1/7 image: skipped (both labels match)
stage 2/7 gateway-config: done
stage 3/7 install: done
stage 4/7 profile: done
stage 5/7 provision: done
stage 6/7 router: done
stage 7/7 verify: stopped
bring-up stopped at verify: a check is not PASS'
	assert_equal "$(jq -c .binaries "$H/providers/amap-claude-code.json")" '["/usr/bin/node","/opt/claude/cli.js"]'
	assert_equal "$(jq .resource_version "$FAKE_OPENSHELL/profiles/amap-claude-code.json")" 1

	# The router: no network, nothing writable but its own, the fleet's user.
	assert_equal "$(docker inspect amap-router-local | jq -c '.[0] | [.State.Status, .HostConfig.NetworkMode,
	    .HostConfig.ReadonlyRootfs, .Config.User, .HostConfig.CapDrop, .HostConfig.SecurityOpt]')" \
	    '["running","none",true,"64123:64123",["ALL"],["no-new-privileges"]]'
	assert_equal "$(docker inspect amap-router-local | jq -r '.[0].Mounts[] | "\(.Destination) \(.RW)"' | sort)" \
	    "$(amap-router --config "$H/router.json" mounts | sed 's/\tro$/ false/; s/\trw$/ true/' | sort)"
	assert_equal "$(jq -r '.members[] | .state' "$H/roster/roster.json" | paste -sd ' ')" 'admitted admitted'

	# The key: in the two creates, and nowhere else.
	assert_equal "$(grep -c '^1' "$FAKE_OPENSHELL/calls")" 2
	run -1 bash -c "grep '^1' '$FAKE_OPENSHELL/calls' | grep -v '	sandbox	create	'"
	run -1 grep -rF -e "$key" -e "${key: -20}" "$H" "$FAKE_OPENSHELL" cfg
	run -0 ls "$H/evidence/step-3" "$H/evidence/step-6"

	# Again: nothing is built, imported, created or started.
	: >"$FAKE_OPENSHELL/calls"
	container=$(docker inspect --format '{{.Id}} {{.State.StartedAt}}' amap-router-local)
	run bring_up --apply
	assert_equal "$(stages | head -n 6)" "stage 1/7 image: skipped (both labels match)
stage 2/7 gateway-config: done
stage 3/7 install: done
stage 4/7 profile: skipped (the gateway's copy is equal to the rendered one)
stage 5/7 provision: skipped (every member is present and recorded)
stage 6/7 router: skipped (it is running and has published the roster)"
	run -1 grep -E '	profile	(lint|import|update)	|	create	--name	(alpha|beta)	' "$FAKE_OPENSHELL/calls"
	assert_equal "$(docker inspect --format '{{.Id}} {{.State.StartedAt}}' amap-router-local)" "$container"

	# Another copy of the profile is updated with its own version.
	jq '.display_name = "x" | .resource_version = 7' "$FAKE_OPENSHELL/profiles/amap-claude-code.json" >p
	cp p "$FAKE_OPENSHELL/profiles/amap-claude-code.json"
	run bring_up --apply
	assert_line 'stage 4/7 profile: done'
	assert_equal "$(jq .resource_version "$FAKE_OPENSHELL/profiles/amap-claude-code.json")" 8

	# A container that does not run is the operator's to look at.
	docker stop -t 1 amap-router-local
	run -1 bring_up --apply
	assert_equal "${lines[-1]}" 'bring-up stopped at router: the container amap-router-local is exited; look at its logs, then remove it'
}

@test "an engine that does not answer is told in its own words" {
	run bring_up --apply
	assert_line 'stage 6/7 router: done'
	DOCKER_HOST=unix:///nowhere run -1 bring_up --apply
	assert_regex "${lines[-1]}" '^bring-up stopped at image: `docker image inspect` failed: Cannot connect to the Docker daemon at unix:///nowhere'
}

@test "a router that crashes is told by its state, its exit code and its last words" {
	run bring_up --apply
	docker rm -f amap-router-local
	chmod 000 "$H/router-state"
	run -1 bring_up --apply
	assert_regex "${lines[-1]}" '^bring-up stopped at router: the container amap-router-local is (exited|restarting), exit code [02]: amap-router: .*Permission denied$'
}

@test "the payload's programs run in a container of another libc, which its own programs never do" {
	musl_tree
	installed_payload payload
	tar -C tree -c . | docker import - another-libc >/dev/null
	inside() {
		docker run --rm --network none --read-only --user 64123:64123 -v "$PWD/payload:/opt/amap/payload:ro" \
		    -e LD_LIBRARY_PATH=/lib another-libc "$@"
	}
	run -0 inside sh -c 'cd /opt/amap/payload; for p in *-* bin/*; do [ -x "$p" ] && [ "$p" != amap-main ] && ./"$p" --version; done; :'
	assert_equal "$(sed 's/ [0-9.]*$//' <<<"$output" | xargs)" "amap-session claude-seed claude-session-start inbox-delivery \
openshell-sessions amap-probe-running amap-probe-write inbox-mcp-vol inbox-submit"
	cp "$BIN/inbox-submit" payload/
	run ! inside /opt/amap/payload/inbox-submit --version
}
