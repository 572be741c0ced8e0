# What the tests of the connector share: a member's lanes, a payload, notices.

ALPHA=alpha@fleet.example BETA=beta@fleet.example

# member: the lanes of beta, and the environment its create script would give.
member() {
	M=$BATS_TEST_TMPDIR/m
	mkdir -p "$M"/inbox/notices "$M"/inbox/messages "$M"/peer/notices "$M"/peer/messages "$M"/outbox "$M"/home "$M"/tmp
	export AMAP_INBOX_DIR=$M/inbox AMAP_PEER_DIR=$M/peer AMAP_OUTBOX_DIR=$M/outbox OUTBOX_DIR=$M/outbox \
	    AMAP_SELF_ADDRESS=$BETA AMAP_SELF=$BETA HOME=$M/home
}

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	member
}

teardown() {
	end_daemons
}

# payload AGENT: the programs as they are installed, but with the host's libraries, because
# they are not at their place; with an agent of the test's own.
payload() {
	P=$BATS_TEST_TMPDIR/payload
	mkdir -p "$P/bin"
	while IFS=$(printf '\t') read -r mode path source; do
		case $source in
		inside/lib/*) ;;
		inside/*) install -m "$mode" "$BIN/${source#inside/}" "$P/$path" ;;
		*) install -m "$mode" "$TOP/$source" "$P/$path" ;;
		esac
	done <"$TOP/payload/payload.list"
	[ $# -eq 0 ] || install -m 0755 "$1" "$P/agent"
}

# id N: a notice id.
id() {
	printf '%032x' "$1"
}

# spool_message ID BODY-AS-JSON [JQ-FILTER]; the body may also be @FILE.
spool_message() {
	case $2 in
	@*) cp "${2#@}" "$M/body.tmp" ;;
	*) printf '%s' "$2" >"$M/body.tmp" ;;
	esac
	jq -c --arg id "$1" --arg to "$BETA" --arg from "$ALPHA" '{contract_version: "2", notice_id: $id, id: $id,
	    date: "2026-10-05T09:00:00Z", from: $from, to: $to, subject: "s", body_text: .} | '"${3:-.}" \
	    <"$M/body.tmp" >"$M/message.tmp"
	mv "$M/message.tmp" "$M/peer/messages/notice-$1.json"
}

# spool_notice ID [JQ-FILTER]
spool_notice() {
	jq -cn --arg id "$1" --arg from "$ALPHA" '{contract_version: "2", notice_id: $id, ts: "2026-10-05T09:00:00Z",
	    kind: "peer", message: {id: $id, from: $from, subject: "s", preview: "p", mailbox: "peer"}} | '"${2:-.}" \
	    >"$M/notice.tmp"
	mv "$M/notice.tmp" "$M/peer/notices/notice-$1.json"
}

# spool_peer ID BODY [FILTER-OF-THE-NOTICE [FILTER-OF-THE-MESSAGE]]: as the router does, the notice last.
spool_peer() {
	spool_message "$1" "$2" "${4:-.}"
	spool_notice "$1" "${3:-.}"
}

# spool_mail ID [JQ-FILTER]
spool_mail() {
	jq -cn --arg id "$1" '{contract_version: "2", notice_id: $id, ts: "2026-10-05T09:00:00Z", kind: "deliver",
	    message: {id: "<1@mail>", from: "Somebody", subject: "s", preview: "p", mailbox: "inbox"}} | '"${2:-.}" >"$M/notice.tmp"
	mv "$M/notice.tmp" "$M/inbox/notices/notice-$1.json"
}

# daemon_environment: what amap-main would set.
daemon_environment() {
	export AMAP_DELIVERY_MAIL_NOTICE_DIR=$M/inbox/notices AMAP_DELIVERY_PEER_NOTICE_DIR=$M/peer/notices \
	    AMAP_DELIVERY_PEER_MESSAGE_DIR=$M/peer/messages AMAP_DELIVERY_MAIL_CLAIM=$M/claims/mail \
	    AMAP_DELIVERY_PEER_CLAIM=$M/claims/peer AMAP_DELIVERY_STATE_DIR=$M/state \
	    AMAP_DELIVERY_OUTCOME_DIR=$M/outbox/ext/claude-code/outcomes AMAP_DELIVERY_SESSION_SOURCE=$M/source \
	    AMAP_DELIVERY_SELF=$BETA AMAP_DELIVERY_RECEIPT_WINDOW_SECONDS=${WINDOW:-0.4}
	[ -e "$M/source" ] || sessions
}

# sessions [ROW...]: what the session source says from now on; a ROW is PID SOCKET.
sessions() {
	{
		printf '#!/bin/sh\n'
		for row in "$@"; do
			printf 'printf "claude\\t-\\t-\\t%%s\\t%%s\\t%%s\\n" %s "%s"\n' "$row" "$S/key"
		done
	} >"$M/source.tmp"
	chmod +x "$M/source.tmp"
	mv "$M/source.tmp" "$M/source"
}

# receiver [ACTION...]: a session that answers so, and the source that names it.
receiver() {
	S=$(mktemp -d /tmp/am.XXXXXX)		# a socket's path is short
	printf '{"peerToken":"0123456789abcdef0123456789abcdef","procStart":"1"}' >"$S/key"
	perl "$TOP/tests/tools/receiver" "$S/s.sock" "$S/log" "$@" 3>&- &
	RECEIVER=$!
	eventually test -s "$S/log"
	sessions "${PID:-999999} $S/s.sock"
}

# daemon: starts it and waits until it says so.
daemon() {
	daemon_environment
	inbox-delivery 2>>"$M/log" 3>&- &
	DAEMON=$!
	eventually grep -q "started pid $DAEMON;" "$M/log"
}

# messages: the injected texts so far, as JSON strings, one a line.
messages() {
	sed -n 's/^[0-9.]* [0-9]* \({"type":"user".*\)$/\1/p' "$S/log" | jq -c .message.content
}

sent() {
	[ "$(grep -c '"type":"user"' "$S/log")" -ge "$1" ]
}

# outcome ID: "OUTCOME DETAIL" of a notice, or nothing.
outcome() {
	[ ! -e "$M/outbox/ext/claude-code/outcomes/peer-$1.json" ] ||
	    jq -r '"\(.outcome) \(.detail)"' "$M/outbox/ext/claude-code/outcomes/peer-$1.json"
}

has_outcome() {
	[[ $(outcome "$1") == $2* ]]
}

end_daemons() {
	# shellcheck disable=SC2046 # a list of process ids
	kill $(jobs -p) 2>/dev/null || :		# whatever this test began, also where it failed half way
	wait 2>/dev/null || :
	[ -z "${S-}" ] || rm -rf "$S"
}
