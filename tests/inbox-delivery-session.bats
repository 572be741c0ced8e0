load common
load connector

# ---- receipts ----

# Each message says itself how it is to be answered, so that all wait at once.
@test "every receipt has the outcome, the ledger and the repetition that the table says" {
	receiver told
	daemon
	n=200
	while IFS=$'\t' read -r action _; do
		[[ $action != \#* ]] || continue
		n=$((n + 1))
		spool_peer "$(id $n)" "$(jq -Rn --arg a "$action" '"<<" + $a + ">>"')"
	done <"$DATA/connector/receipts"
	eventually sent $((n - 200))
	sleep 1.5
	n=200
	while IFS=$'\t' read -r action result detail ledger; do
		[[ $action != \#* ]] || continue
		n=$((n + 1))
		# shellcheck disable=SC2053 # a pattern is meant
		[[ $(outcome "$(id $n)") == "$result "$detail ]] || fail "$action: $(outcome "$(id $n)")"
		if [ "$ledger" = yes ]; then
			assert_file_exists "$M/state/ledger/peer-$(id $n)"
		else
			assert_file_not_exists "$M/state/ledger/peer-$(id $n)"
		fi
	done <"$DATA/connector/receipts"
}

@test "what was dropped is sent again after 2 s, with another id and another reply socket" {
	receiver dropped/queue-full silent
	daemon
	spool_peer "$(id 71)" '"x"'
	eventually sent 2
	eventually has_outcome "$(id 71)" delivered
	run -0 jq -s 'map(select(.type == "user")) | (map(.msg_id) | unique | length), (map(.from) | unique | length)' \
	    < <(cut -d' ' -f3- "$S/log" | grep '^{')
	assert_output "2
2"
	sed -n 's/^\([0-9.]*\) [0-9]* .*"type":"user".*/\1/p' "$S/log" | {
		read -r first
		read -r second
		run -0 jq -n "$second - $first | . >= 1.9 and . < 2.8"
		assert_output true
	}
}

@test "a receipt about another message is not taken for ours" {
	receiver 'raw:{"type":"control";"action":"peer_message_status";"status":"denied";"orig_msg_id":"another"}'
	daemon
	spool_peer "$(id 72)" '"x"'
	eventually has_outcome "$(id 72)" delivered
}

@test "mail that the session refuses is not taken for rung" {
	receiver expired/refused
	daemon
	spool_mail "$(id 73)"
	eventually grep -q "mail doorbell $(id 73): receiver refuses" "$M/log"
	assert_file_not_exists "$M/state/ledger/mail-$(id 73)"
}

@test "what a session refuses is offered again at the next start, and not before the hour is over" {
	receiver expired/refused expired/refused silent
	daemon
	spool_peer "$(id 74)" '"x"'
	spool_mail "$(id 75)"
	eventually has_outcome "$(id 74)" held
	eventually grep -q "mail doorbell $(id 75): receiver refuses" "$M/log"
	sleep 1.2
	run ! sent 3
	kill "$DAEMON"
	wait "$DAEMON"
	daemon
	eventually has_outcome "$(id 74)" delivered
	eventually test -e "$M/state/ledger/mail-$(id 75)"
	run ! sent 5
}

@test "at most eight are under way at once" {
	receiver
	for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
		spool_peer "$(id $n)" '"x"'
	done
	WINDOW=1.5 daemon
	eventually sent 8
	sleep 0.5
	run ! sent 9
	eventually sent 12
}

@test "messages that are held keep nobody waiting" {
	receiver held held held held held held held held held held silent
	daemon
	for n in 1 2 3 4 5 6 7 8 9 10; do
		spool_peer "$(id $n)" '"x"'
	done
	eventually sent 10
	spool_peer "$(id 99)" '"x"'
	eventually has_outcome "$(id 99)" delivered
	has_outcome "$(id 3)" held
}

# ---- which session ----

@test "without a session a notice waits, and goes to the first that appears" {
	daemon
	spool_peer "$(id 81)" '"x"'
	sleep 0.7
	receiver
	eventually has_outcome "$(id 81)" delivered
}

@test "with two sessions nothing is sent, and it is told once" {
	receiver
	sessions "999999 $S/s.sock" "999998 $S/s.sock"
	daemon
	spool_peer "$(id 82)" '"x"'
	eventually has_outcome "$(id 82)" ambiguous_target
	rm "$M/outbox/ext/claude-code/outcomes/peer-$(id 82).json"
	sleep 1.2
	assert_equal "$(outcome "$(id 82)")" ""
	run ! sent 1
	sessions "999999 $S/s.sock"
	eventually has_outcome "$(id 82)" delivered
}

@test "an ancestor of the daemon gets nothing" {
	PID=$BASHPID receiver
	daemon
	spool_peer "$(id 83)" '"x"'
	eventually has_outcome "$(id 83)" "inject_failed target session pid $BASHPID is an ancestor of this daemon"
	sleep 0.7
	run ! sent 1
	assert_equal "$(grep -c ancestor "$M/log")" 1
}

@test "a session whose pid is not known is served, and that is said once" {
	PID=- receiver
	daemon
	spool_peer "$(id 84)" '"x"'
	eventually has_outcome "$(id 84)" delivered
	grep -q "cannot check that the target session is not this daemon's ancestor" "$M/log"
}

@test "a source that fails, is noisy, or cannot be run, says so once and is asked again" {
	receiver
	daemon_environment
	printf '#!/bin/sh\nprintf "a\\tb\\033\\n" >&2\nexit 3\n' >"$M/source"
	daemon
	spool_peer "$(id 85)" '"x"'
	eventually grep -qF 'session source exited 3: a\x09b\x1b' "$M/log"
	sleep 1.2
	assert_equal "$(grep -c 'session source exited' "$M/log")" 1
	printf 'no program' >"$M/source"
	eventually grep -q 'session source failed: Exec format error' "$M/log"
	printf '#!/bin/sh\necho; echo "claude - - 1"; echo "codex - - 1 s k"; echo "claude - - 999999 %s %s more"\n' \
	    "$S/s.sock" "$S/key" >"$M/source"
	eventually has_outcome "$(id 85)" delivered
}

@test "a session that went away is an error that is tried again, and the next one gets it" {
	receiver
	kill "$RECEIVER"
	wait "$RECEIVER" || :
	daemon
	spool_peer "$(id 86)" '"x"'
	eventually has_outcome "$(id 86)" "inject_failed error: $S/s.sock: Connection refused"
	rm -rf "$S"
	receiver
	eventually has_outcome "$(id 86)" delivered
}

@test "a key file that is none is an error" {
	receiver
	printf '{"peerToken":""}' >"$S/key"
	daemon
	spool_peer "$(id 87)" '"x"'
	eventually has_outcome "$(id 87)" "inject_failed error: key file $S/key: it holds no peerToken"
}

@test "a session that does not show its socket yet is waited for" {
	receiver
	sessions "999999 -"
	daemon
	spool_peer "$(id 88)" '"x"'
	sleep 0.8
	assert_equal "$(outcome "$(id 88)")" ""
	sessions "999999 $S/s.sock"
	eventually has_outcome "$(id 88)" delivered
}
