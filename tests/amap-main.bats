load common
load connector

# start [WORD...]: the main process in the background, its words in the log.
start() {
	"$P/amap-main" "$@" >"$M/log" 2>&1 3>&- &
	MAIN=$!
	eventually 5 grep -q '^inbox-delivery: started' "$M/log"
}

teardown() {
	[ -z "${MAIN-}" ] || kill "$MAIN" 2>/dev/null || :
	wait
}

@test "a notice becomes a turn of the agent, and its answer a request" {
	member
	payload "$TOP/examples/agents/files.sh"
	start
	spool_peer "$(id 7)" '"Please list the files of your workspace."'
	eventually 5 test -e "$M/outbox/req-00000000.json"
	run -0 jq -r '.draft | .to[], .reply_to_message_id, .body_text' "$M/outbox/req-00000000.json"
	assert_output "$ALPHA
$(id 7)
The files of my workspace:
notes.txt"
	eventually 5 test -e "$M/outbox/ext/claude-code/outcomes/peer-$(id 7).json"
	run -0 jq -r '.outcome, .detail' "$M/outbox/ext/claude-code/outcomes/peer-$(id 7).json"
	assert_output "delivered
receipt: delivered"
	assert_file_exists "$HOME/.claude/connector/delivery-state/ledger/peer-$(id 7)"
}

@test "a reply reaches the agent as one" {
	member
	payload "$TOP/examples/agents/files.sh"
	start
	spool_peer "$(id 8)" '"a\nb"' '.message.in_reply_to = "'"$(id 5)"'"'
	eventually 5 test -e "$HOME/replies.log"
	run -0 cat "$HOME/replies.log"
	assert_output "from $ALPHA, in reply to $(id 5):
a
b"
	assert_file_not_exists "$M/outbox/req-00000000.json"
}

@test "the demo agent submits a task and prints its number" {
	member
	payload "$TOP/examples/agents/files.sh"
	run -0 "$P/agent" task "$ALPHA" list your files
	assert_output 00000000
	run -0 jq -r '.draft | .to[], .body_text' "$M/outbox/req-00000000.json"
	assert_output "$ALPHA
list your files"
}

@test "SIGTERM ends the agent and the daemon, and releases the claims" {
	member
	payload "$TOP/examples/agents/files.sh"
	start
	kill "$MAIN"
	wait "$MAIN"
	MAIN=
	run -0 tail -n 2 "$M/log"
	assert_output "amap-session: stopped
inbox-delivery: stopped"
	run -0 find "$HOME/.claude/connector/claims" "$HOME/.claude/sessions" -type f
	assert_output ""
}

@test "an environment that is not whole starts nothing" {
	member
	payload "$TOP/examples/agents/files.sh"
	for name in AMAP_INBOX_DIR AMAP_PEER_DIR AMAP_OUTBOX_DIR HOME; do
		run -1 env "$name=" "$P/amap-main"
		assert_output "amap-main: $name is not set"
	done
	run -1 env AMAP_SELF_ADDRESS= "$P/amap-main"
	assert_output "amap-main: AMAP_SELF_ADDRESS is set and empty"
	assert_dir_not_exists "$HOME/.claude"
}
