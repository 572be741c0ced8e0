load common
load connector

# What must hold so that no message is acted on twice (spec protocol, C12).

@test "killed while it waits for a receipt, it does not send again, and reports" {
	WINDOW=30 receiver
	WINDOW=30 daemon
	spool_peer "$(id 91)" '"x"'
	spool_mail "$(id 92)"
	eventually sent 2
	kill -KILL "$DAEMON"
	wait "$DAEMON" || :
	WINDOW=0.4 daemon
	eventually has_outcome "$(id 91)" "inject_failed uncertain, so it is not sent again: the daemon ended before"
	sleep 0.7
	run ! sent 3
	assert_file_exists "$M/state/ledger/peer-$(id 91)"
	assert_file_exists "$M/state/ledger/mail-$(id 92)"
	grep -q "mail notice $(id 92): uncertain" "$M/log"
	run -0 find "$S" "$M/state/attempts" -name '????????????????.sock' -o -name '*-*'
	assert_output ""
}

@test "stopped while it waits for a receipt, it does not send again, and reports" {
	WINDOW=30 receiver
	WINDOW=30 daemon
	spool_peer "$(id 93)" '"x"'
	eventually sent 1
	kill "$DAEMON"
	wait "$DAEMON"
	has_outcome "$(id 93)" "inject_failed uncertain, so it is not sent again: the daemon was stopped"
	run -0 find "$S" -name '????????????????.sock'
	assert_output ""
	WINDOW=0.4 daemon
	sleep 0.7
	run ! sent 2
}

@test "what a session holds is offered again only when that session is gone" {
	sleep 60 3>&- &
	session=$!
	PID=$session receiver held silent
	daemon
	spool_peer "$(id 94)" '"x"'
	eventually has_outcome "$(id 94)" held
	kill -KILL "$DAEMON"
	wait "$DAEMON" || :
	daemon
	sleep 0.8
	run ! sent 2
	kill "$DAEMON" "$session"
	wait "$DAEMON" || :
	sessions "999999 $S/s.sock"
	daemon
	eventually has_outcome "$(id 94)" delivered
	run ! sent 3
}

@test "nothing is sent that could not be recorded before" {
	receiver
	daemon
	rm -r "$M/state/attempts"
	spool_peer "$(id 95)" '"x"'
	eventually has_outcome "$(id 95)" "inject_failed error: $M/state/attempts: No such file or directory"
	sleep 0.5
	run ! sent 1
}

@test "a ledger that cannot be written sends nothing twice in one life, and none in the next" {
	receiver
	daemon
	rm -r "$M/state/ledger"
	spool_peer "$(id 96)" '"x"'
	eventually has_outcome "$(id 96)" delivered
	sleep 0.6
	kill -KILL "$DAEMON"
	wait "$DAEMON" || :
	daemon
	sleep 0.6
	run ! sent 2
	assert_file_exists "$M/state/ledger/peer-$(id 96)"
}

@test "a session that stops reading in the middle may have it: it is not sent again" {
	receiver stall
	daemon
	jq -n '"x" * 900000' >big
	spool_peer "$(id 97)" @big
	eventually has_outcome "$(id 97)" "inject_failed uncertain, so it is not sent again: the session stopped reading after"
	assert_file_exists "$M/state/ledger/peer-$(id 97)"
}
