load common

# The demo is the main job. What it prints is checked elsewhere than in its own
# words: in the files of its home, in the process table, in the mount table.

demo() { sh "$TOP/sh/demo.sh" "$@"; }

setup() {
	cd "$BATS_TEST_TMPDIR"
	# As root the fleet runs as somebody else, who must come this far.
	chmod 0711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR"
	TMPDIR=$BATS_TEST_TMPDIR
	export TMPDIR
}

teardown() {
	for kept in "$BATS_TEST_TMPDIR"/amap-demo.*; do
		[ ! -x "$kept/tear-down" ] || "$kept/tear-down" >tear-down.log 2>&1
	done
}

# Processes that name this test's directory in their arguments, environment or mounts.
left_behind() {
	grep -alsF "$BATS_TEST_TMPDIR/amap-demo" /proc/[0-9]*/cmdline /proc/[0-9]*/environ | while read -r file; do
		case $(tr '\0' ' ' 2>/dev/null <"${file%/*}/cmdline") in
		*grep* | *bats* | '') ;;
		*) echo "$file" ;;
		esac
	done
	grep -F "$BATS_TEST_TMPDIR/amap-demo" /proc/mounts || :
	ls -d "$BATS_TEST_TMPDIR"/amap-demo.* 2>/dev/null || :
}

# For a while, and then for good: something that still runs could make it again.
nothing_is_left() {
	for _ in $(seq 50); do
		left_behind >left
		if [ ! -s left ]; then
			sleep 0.5
			left_behind >left
			[ -s left ] || return 0
		fi
		sleep 0.1
	done
	cat left
	return 1
}

# The router takes an outcome up at its next rescan at the latest, after 5 s.
appears() {
	for _ in $(seq 100); do
		[ ! -s "$1" ] || return 0
		sleep 0.1
	done
	echo "$1: not there"
	return 1
}

@test "a delegation there and back, a held task, and the boundary, as the files and processes tell" {
	run -0 demo --keep
	assert_line 'AMAP is up'
	work=$(echo "$BATS_TEST_TMPDIR"/amap-demo.*)
	home=$work/fleet/home

	# The task: accepted, placed once in beta's peer lane, delivered, recorded.
	result=$(ls "$home"/instances/alpha/outbox/results/*.json)
	assert_equal "$(jq -r '.outcome + " " + .reason_code' "$result")" 'accepted peer_routed'
	task=$(jq -r .message_id "$result")
	assert_equal "$(jq -r .kind "$home/instances/beta/peer/notices/notice-$task.json")" peer
	run -0 jq -r .body_text "$home/instances/beta/peer/messages/notice-$task.json"
	assert_output --partial 'list the files of your workspace'
	appears "$home/router-state/beta/outcomes/peer-$task.delivered.json"

	# The reply: bound to the task, with what beta's workspace really holds.
	reply=$(jq -r 'select(.message.in_reply_to == "'"$task"'").notice_id' "$home"/instances/alpha/peer/notices/notice-*.json)
	appears "$home/router-state/alpha/outcomes/peer-$reply.delivered.json"
	body=$(jq -r .body_text "$home/instances/alpha/peer/messages/notice-$reply.json")
	for name in $("$work/as-fleet" amap-sandbox --workspace default sandbox exec --name beta --no-tty -- ls /sandbox </dev/null); do
		case $name in *.log) continue ;; esac		# written meanwhile
		assert_regex "$body" "$name"
	done
	run -0 "$work/as-fleet" amap-sandbox --workspace default sandbox exec --name alpha --no-tty -- cat /sandbox/replies.log </dev/null
	assert_output --partial "$(printf '%s\n' "$body" | tail -n 1)"

	# Beta's own task: held, and nowhere in alpha's lanes.
	held=$(ls "$home"/router-state/beta/held/*.json)
	result=$home/instances/beta/outbox/results/$(basename "$held" | sed 's/^req-//')
	assert_equal "$(jq -r '.outcome + " " + .reason_code' "$result")" 'queued_for_human recipient_not_allowlisted'
	assert_equal "$(ls "$home"/instances/alpha/peer/notices/*.json | wc -l)" 1

	# No sandbox but the two; nothing of the fleet runs as root or with the host's network.
	assert_equal "$("$work/as-fleet" amap-sandbox sandbox list --all-workspaces --names | sort | tr '\n' ' ')" \
	    'default/alpha default/beta '
	seen=0
	for pid in $(pgrep -f '/amap-session|/inbox-delivery|amap-router.* run'); do
		grep -qF "$work" "/proc/$pid/root/proc/1/mountinfo" "/proc/$pid/mountinfo" 2>/dev/null || continue
		seen=$((seen + 1))
		refute [ "$(stat -c %u "/proc/$pid")" = 0 ]
		refute [ "$(readlink "/proc/$pid/ns/net")" = "$(readlink /proc/self/ns/net)" ]
		assert_equal "$(awk '/^CapEff/ { print $2 }' "/proc/$pid/status")" 0000000000000000
		assert_equal "$(awk '/^NoNewPrivs/ { print $2 }' "/proc/$pid/status")" 1
	done
	[ "$seen" -ge 5 ]

	run -0 "$work/as-fleet" amap-openshell verify
	"$work/tear-down" >/dev/null 2>&1
	nothing_is_left
}

@test "a second run takes under 10 s and leaves nothing" {
	timed
	begin=$(date +%s%3N)
	run -0 demo
	assert_equal "$(printf '%s\n' "$output" | tail -n 1)" 'AMAP is up'
	took=$(($(date +%s%3N) - begin))
	[ "$took" -lt 10000 ] || [ "${AMAP_BUILD_DIR##*/}" = sanitized ]
	nothing_is_left
}

@test "killed at any moment it leaves no process, no mount and no file" {
	not_sanitized "long, and what is killed finds no fault of its own"
	while read -r lines signal; do
		: >told
		sh "$TOP/sh/demo.sh" </dev/null >told 2>&1 3>&- &
		pid=$!
		for _ in $(seq 2000); do		# until it has told so much
			[ "$(wc -l <told)" -lt "$lines" ] || break
			sleep 0.01
		done
		kill -s "$signal" "$pid"
		wait "$pid" 2>/dev/null || :
		nothing_is_left
	done <<-END
		0 KILL
		1 KILL
		4 TERM
		5 KILL
		7 TERM
		8 KILL
		12 HUP
		17 KILL
	END
}

@test "it runs from a checkout whose path holds a space, called from elsewhere" {
	mkdir 'a b'
	cp -R "$TOP/Makefile" "$TOP/bin" "$TOP/lib" "$TOP/sh" "$TOP/payload" "$TOP/image" "$TOP/examples" "$TOP/man" 'a b'
	mkdir 'a b/build'		# the plain build, whichever is tested: make goes on from there
	[ ! -e "$TOP/build/libamap.a" ] || cp -R "$TOP/build/bin" "$TOP/build/lib" "$TOP/build/libamap.a" 'a b/build'
	cd /
	run -0 env -u AMAP_BUILD_DIR sh "$BATS_TEST_TMPDIR/a b/sh/demo.sh"
	assert_line 'AMAP is up'
}

@test "an unknown argument is a usage error" {
	run -2 --separate-stderr sh "$TOP/sh/demo.sh" --kep
	[ -z "$output" ]
}
