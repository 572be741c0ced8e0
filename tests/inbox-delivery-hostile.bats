# What stands around the daemon is the agent's, or broken: spec connector, sections 6 and 11.
load common
load connector

@test "a bell is rung once, whatever the session says of it, but for a session that did not take it" {
	receiver denied:no held:wait delivered expired:late dropped/queue-full silent
	daemon
	n=0
	for rung in yes yes yes no no; do
		n=$((n + 1))
		spool_mail "$(id $n)"
		eventually sent $n
		sleep 0.5
		[ $n -lt 4 ] || eventually grep -q "mail doorbell $(id $n): inject failed" "$M/log"
		[ "$(test -e "$M/state/ledger/mail-$(id $n)" && echo yes || echo no)" = "$rung" ] || fail "$n: not $rung"
	done
	assert_dir_not_exists "$M/outbox/ext"
}

@test "a key file of any other kind is an error at once, and its words are not told" {
	receiver
	daemon
	n=0
	try() {
		n=$((n + 1))
		spool_peer "$(id $n)" '"x"'
		eventually has_outcome "$(id $n)" "inject_failed error: key file $S/key: $1" || fail "$(outcome "$(id $n)")"
		rm -rf "$S/key"
	}
	rm "$S/key"
	try 'No such file or directory'
	mkfifo "$S/key"
	try 'not a regular file'
	printf '{"peerToken":"t"}' >"$S/real"
	ln -s real "$S/key"
	try 'a symbolic link'
	printf '{"peerToken":"secret","pad":"%65536s"}' x >"$S/key"
	try 'larger than 65536 bytes'
	printf '{"peerToken":"secret"' >"$S/key"
	try 'line 1: '
	printf '{"peerToken":7}' >"$S/key"
	try 'it holds no peerToken'
	run ! grep -rq secret "$M/log" "$M/outbox"
	run ! sent 1
}

@test "a socket that is none, or whose path leaves no room for the reply's, is an error" {
	receiver
	: >"$S/plain"
	sessions "999999 $S/plain"
	daemon
	spool_peer "$(id 1)" '"x"'
	eventually has_outcome "$(id 1)" "inject_failed error: $S/plain: Connection refused"
	long=$S/$(printf 'd%.0s' {1..78})
	mkdir "$long"
	perl "$TOP/tests/tools/receiver" "$long/1.sock" "$S/log" 3>&- &
	kill "$RECEIVER"
	RECEIVER=$!
	eventually test -S "$long/1.sock"
	sessions "999999 $long/1.sock"
	spool_peer "$(id 2)" '"x"'
	eventually has_outcome "$(id 2)" "inject_failed error: reply socket beside $long/1.sock: File name too long"
	sessions "999999 $long/$(printf '%0100d' 1).sock"
	spool_peer "$(id 3)" '"x"'
	eventually has_outcome "$(id 3)" "inject_failed error: $long/$(printf '%0100d' 1).sock: File name too long"
	run ! sent 1
}

@test "a source that hangs keeps the daemon from nothing, and ends with it" {
	timed
	daemon_environment
	printf '#!/bin/sh\necho $$ >>"%s/asked"\nexec sleep 60\n' "$M" >"$M/source"
	daemon
	spool_peer "$(id 1)" '"x"' '.kind = "deliver"'
	spool_peer "$(id 2)" '"x"'
	eventually test -s "$M/asked"
	spool_peer "$(id 3)" '"x"' '.kind = "deliver"'
	eventually has_outcome "$(id 3)" refused
	began=$(date +%s%N)
	kill "$DAEMON"
	wait "$DAEMON"
	[ $((($(date +%s%N) - began) / 1000000)) -lt 500 ]
	DAEMON=
	for pid in $(cat "$M/asked"); do run ! kill -0 "$pid"; done
}

@test "the source runs once a round, however many wait" {
	daemon_environment
	printf '#!/bin/sh\necho x >>"%s/asked"\n' "$M" >"$M/source"
	daemon
	for n in 1 2 3 4 5 6 7 8 9; do spool_peer "$(id $n)" '"x"'; spool_mail "$(id $n)"; done
	eventually test -s "$M/asked"
	: >"$M/asked"
	sleep 1.7
	run -0 wc -l "$M/asked"
	[ "${output%% *}" -ge 2 ] && [ "${output%% *}" -le 4 ] || fail "$output"
}

@test "an outcome that cannot be written is told, and nothing is sent again for it" {
	receiver
	: >"$M/outbox/ext"
	daemon
	spool_peer "$(id 1)" '"x"'
	eventually grep -q "cannot write outcome delivered for peer/$(id 1): Not a directory" "$M/log"
	assert_file_exists "$M/state/ledger/peer-$(id 1)"
	rm "$M/outbox/ext"
	sleep 0.6
	run ! sent 2
}

@test "a line feed at the end of a name or an address makes it another one" {
	receiver
	spool_peer "$(id 1)" '"x"'
	mv "$M/peer/notices/notice-$(id 1).json" "$M/peer/notices/notice-$(id 1).json"$'\n'
	daemon
	spool_peer "$(id 2)" '"x"' . '.to += "\n"'
	spool_peer "$(id 3)" '"x"' '.message.id = "m-3\n"'
	eventually has_outcome "$(id 3)" ''
	eventually has_outcome "$(id 2)" 'refused the body spool is for another, not self: ' || fail "$(outcome "$(id 2)")"
	run -0 ls "$M/outbox/ext/claude-code/outcomes"
	refute_output --partial "$(id 1)"
	case $(outcome "$(id 3)") in
	refused*) ;;
	delivered*) run ! grep -q 'message id: m-3' "$S/log" ;;
	*) fail "$(outcome "$(id 3)")" ;;
	esac
	daemon_environment
	run -2 env AMAP_DELIVERY_SELF=$'beta@fleet.example\nx' inbox-delivery
	assert_output --partial 'AMAP_DELIVERY_SELF is no addr-spec'
}

@test "an own address, and a sender's, may have every character that an address can" {
	BETA="be!ta'#x@fleet.example" ALPHA="o'brien/x=y@fleet.example"
	receiver
	daemon
	spool_peer "$(id 1)" '"x"'
	eventually has_outcome "$(id 1)" delivered
	run -0 jq -rn 'input | split("\n")[0]' < <(messages)
	assert_output "<cross-session-message from-name=\"$ALPHA\">"
}
