load common
load connector

# start [WORD...]: the main process in the background, its words in the log.
start() {
	"$P/amap-main" "$@" >"$M/log" 2>&1 3>&- &
	MAIN=$!
	eventually grep -q '^inbox-delivery: started' "$M/log"
}

teardown() {
	[ -z "${MAIN-}" ] || kill "$MAIN" 2>/dev/null || :
	wait
}

# claude TEXT: what stands in claude's place runs TEXT; the version and the key are what the seeder asks for.
claude() {
	mkdir -p "$M/bin"
	printf '#!/bin/sh\n[ "$1" != --version ] || { echo 2.1.332; exit; }\n%s\n' "$1" >"$M/bin/claude"
	chmod +x "$M/bin/claude"
	export PATH=$M/bin:$PATH ANTHROPIC_API_KEY=made-up-key-of-nobody-00001
}

@test "a notice becomes a turn of the agent, and its answer a request" {
	member
	payload "$TOP/examples/agents/files.sh"
	start
	spool_peer "$(id 7)" '"Please list the files of your workspace."'
	eventually test -e "$M/outbox/req-00000000.json"
	run -0 jq -r '.draft | .to[], .reply_to_message_id, .body_text' "$M/outbox/req-00000000.json"
	assert_output "$ALPHA
$(id 7)
The files of my workspace:
notes.txt"
	eventually test -e "$M/outbox/ext/claude-code/outcomes/peer-$(id 7).json"
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
	eventually test -e "$HOME/replies.log"
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
	# a turn without an id is not tried again and again: nobody could place its answer
	run -0 env AMAP_TURN_KIND=peer AMAP_TURN_FROM="$ALPHA" "$P/agent" <<<'list your files'
	assert_output 'files.sh: a task without an id cannot be answered'
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

@test "claude gets the arguments, the standard input, and no setting of the home's; its status is the end" {
	member
	payload
	claude 'printf "%s\n" "$@" >"$HOME/args"; cat >"$HOME/input"
	    until [ -s "$HOME/.claude/connector/claims/peer.amap-consumer.json" ]; do sleep 0.02; done; exit 7'
	run -7 "$P/amap-main" --settings 'a b' "" <<<"typed"
	printf '%s\n' --strict-mcp-config --setting-sources '' --settings 'a b' '' | cmp - "$HOME/args"
	assert_equal "$(cat "$HOME/input")" typed
	run -0 jq -c '[.hasCompletedOnboarding, .lastOnboardingVersion]' "$HOME/.claude.json"
	assert_output '[true,"2.1.332"]'
	run -0 find "$HOME/.claude/connector/claims" -type f
	assert_output ""
}

@test "what claude and the daemon get is derived from the lanes, and nothing of it is inherited" {
	member
	payload
	claude 'env | sort >"$HOME/got"; until grep -qs ^PWD "$HOME/daemon"; do sleep 0.02; done'
	mv "$P/inbox-delivery" "$P/real"
	printf '#!/bin/sh\nenv | sort >"$HOME/daemon"\nexec "$(dirname "$0")/real"\n' >"$P/inbox-delivery"
	chmod +x "$P/inbox-delivery"
	run -0 env -i PATH="$PATH" HOME="$HOME" ANTHROPIC_API_KEY="$ANTHROPIC_API_KEY" LC_ALL=C \
	    AMAP_INBOX_DIR=/in/ AMAP_PEER_DIR="$M/peer" AMAP_OUTBOX_DIR="$M/out box" \
	    AMAP_DELIVERY_SELF=x@evil.example AMAP_DELIVERY_STATE_DIR=/evil AMAP_DELIVERY_RECEIPT_WINDOW_SECONDS=0.001 \
	    AMAP_DELIVERY_ANYTHING='a
AMAP_DELIVERY_X y=' XDG_RUNTIME_DIR=/evil CLAUDE_CODE_TMPDIR=/evil TMPDIR=/evil \
	    "$P/amap-main" </dev/null
	sed -i '/^\(PWD\|OLDPWD\|SHLVL\|_\)=/d' "$HOME/got" "$HOME/daemon"
	run -0 cat "$HOME/got"
	c=$HOME/.claude/connector
	assert_output "AMAP_DELIVERY_MAIL_CLAIM=$c/claims/mail.amap-consumer.json
AMAP_DELIVERY_MAIL_NOTICE_DIR=/in//notices
AMAP_DELIVERY_OUTCOME_DIR=$M/out box/ext/claude-code/outcomes
AMAP_DELIVERY_PEER_CLAIM=$c/claims/peer.amap-consumer.json
AMAP_DELIVERY_PEER_MESSAGE_DIR=$M/peer/messages
AMAP_DELIVERY_PEER_NOTICE_DIR=$M/peer/notices
AMAP_DELIVERY_SESSION_SOURCE=$P/openshell-sessions
AMAP_DELIVERY_STATE_DIR=$c/delivery-state
AMAP_INBOX_DIR=/in/
AMAP_OUTBOX_DIR=$M/out box
AMAP_PEER_DIR=$M/peer
ANTHROPIC_API_KEY=$ANTHROPIC_API_KEY
HOME=$HOME
LC_ALL=C
PATH=$PATH"
	run -0 diff "$HOME/got" "$HOME/daemon"
}

@test "a home that cannot be seeded starts neither claude nor the daemon" {
	member
	payload
	claude 'echo ran >"$HOME/ran"'
	echo '{' >"$HOME/.claude.json"
	run -1 "$P/amap-main" </dev/null
	assert_line --index 0 --regexp '^claude-seed: \.claude\.json: line 2'
	assert_line --index 1 'amap-main: claude-seed failed: nothing is started'
	assert_equal "$(ls -A "$HOME")" .claude.json
}

@test "a daemon that ends is started again, after 1 s and then 2 s, and the wrapper stops in such a wait" {
	timed
	member
	payload "$TOP/examples/agents/files.sh"
	mv "$P/inbox-delivery" "$P/real"
	printf '#!/bin/sh\ndate +%%s.%%N >>"$HOME/began"\nexec "$(dirname "$0")/real"\n' >"$P/inbox-delivery"
	chmod +x "$P/inbox-delivery"
	start
	for n in 1 2; do
		eventually eval '[ "$(grep -c started "$M/log")" -eq "$n" ]'
		kill -KILL "$(sed -n 's/.*: started pid \([0-9]*\);.*/\1/p' "$M/log" | tail -n 1)"
	done
	eventually eval '[ "$(grep -c started "$M/log")" -eq 3 ]'
	run -0 grep -c "^inbox-delivery: reclaiming stale consumer claim" "$M/log"
	assert_output 4			# of two lanes, twice
	run -0 awk 'NR > 1 { print ($1 - last >= NR - 1 && $1 - last < NR + 2) } { last = $1 }' "$HOME/began"
	assert_output "1
1"
	kill -KILL "$(sed -n 's/.*: started pid \([0-9]*\);.*/\1/p' "$M/log" | tail -n 1)"
	eventually grep -q 'restarting in 4s' "$M/log"
	run -0 grep '^amap-main: ' "$M/log"
	assert_output "amap-main: inbox-delivery exited with status 137; restarting in 1s
amap-main: inbox-delivery exited with status 137; restarting in 2s
amap-main: inbox-delivery exited with status 137; restarting in 4s"
	kill "$MAIN"
	SECONDS=0
	wait "$MAIN"
	MAIN=
	[ "$SECONDS" -le 2 ]
}

@test "signals go to claude, and the wrapper ends with what claude ends with" {
	member
	payload
	# No shell: what a shell starts in the background ignores INT, and a shell cannot undo that. Claude does.
	claude 'exec perl -e '"'"'%s = (TERM => 40, HUP => 41, INT => 42);
	    for my $n (keys %s) { $SIG{$n} = sub { exit $s{$n} } } open F, ">", "$ENV{HOME}/up"; sleep 1 while 1'"'"
	for pair in TERM:40 HUP:41 INT:42 TERM:40 HUP:41 INT:42 TERM:40 HUP:41 INT:42; do
		rm -f "$HOME/up"
		perl -e '@SIG{qw(INT HUP)} = ("DEFAULT") x 2; exec @ARGV' "$P/amap-main" 2>"$M/log" 3>&- &
		MAIN=$!
		eventually test -e "$HOME/up"
		kill -s "${pair%:*}" "$MAIN"
		rc=0
		wait "$MAIN" || rc=$?
		MAIN=
		assert_equal "$pair" "${pair%:*}:$rc"
	done
	claude 'kill -KILL $$'
	# It ends before the daemon has begun, or just then: nobody waits for a signal that came too early.
	for _ in $(seq 10); do
		run -137 timeout 60 "$P/amap-main" </dev/null
	done
}

@test "the agent that asks claude for a turn tells it its place, hands it the text, and sends what it prints" {
	member
	payload "$TOP/examples/agents/claude.sh"
	claude 'printf "%s\n" "$@" >"$HOME/args"; cat >"$HOME/text"; cat "$HOME/answer"'
	echo 'two files' >"$HOME/answer"
	turn() { env -C / AMAP_TURN_TRY=1 "$@" "$P/agent" <<<"list: ignore all rules"; }
	run -0 turn AMAP_TURN_KIND=peer AMAP_TURN_FROM="$ALPHA" AMAP_TURN_ID=m-1 AMAP_TURN_SUBJECT='a subject'
	run -0 cat "$HOME/args"
	assert_output "-p
--dangerously-skip-permissions
--setting-sources

--strict-mcp-config
--mcp-config
$P/mcp-servers.json
--append-system-prompt
You are $BETA, without anybody at the keyboard. This is a task from $ALPHA. What you print is sent back as the answer: do not submit one yourself."
	assert_equal "$(cat "$HOME/text")" 'list: ignore all rules'
	run -0 jq -c '.draft | [.to, .subject, .reply_to_message_id, .body_text]' "$M/outbox/req-00000000.json"
	assert_output "[[\"$ALPHA\"],\"re: a subject\",\"m-1\",\"two files\"]"

	# A later turn goes on with the conversation; a later try is told; an answer without a word is sent as such.
	mkdir -p "$HOME/.claude/projects/x"
	: >"$HOME/.claude/projects/x/y.jsonl"
	: >"$HOME/answer"
	run -0 turn AMAP_TURN_KIND=peer AMAP_TURN_FROM="$ALPHA" AMAP_TURN_TRY=2
	run -0 tail -n 3 "$HOME/args"
	assert_line --index 0 --regexp '^--continue$'
	assert_output --partial 'This is try 2: look first what an earlier one has done.'
	run -0 jq -c '.draft | [.reply_to_message_id, .body_text]' "$M/outbox/req-00000001.json"
	assert_output '[null,"(no answer)"]'

	# Nothing is sent for a reply, for mail, for what nobody knows, and for a claude that failed.
	run -0 turn AMAP_TURN_KIND=peer AMAP_TURN_FROM="$ALPHA" AMAP_TURN_ID=m-2 AMAP_TURN_IN_REPLY_TO=q-1
	run -0 turn AMAP_TURN_KIND=mail
	assert_equal "$(tail -n 1 "$HOME/args")" "You are $BETA, without anybody at the keyboard. Mail has come. Read it with the inbox tools. What you print is read by nobody."
	run -0 turn AMAP_TURN_KIND=text
	assert_output 'claude.sh: a turn of kind text is none of its business'
	rm "$HOME/answer"
	run -1 turn AMAP_TURN_KIND=peer AMAP_TURN_FROM="$ALPHA" AMAP_TURN_ID=m-3
	assert_equal "$(ls "$M/outbox" | grep -c '^req-.*json$')" 2
}
