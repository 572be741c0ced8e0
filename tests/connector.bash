# What the tests of the connector share: a member's lanes, a payload, notices.

ALPHA=alpha@fleet.example BETA=beta@fleet.example

# member: the lanes of beta, and the environment its create script would give.
member() {
	M=$BATS_TEST_TMPDIR/m
	mkdir -p "$M"/inbox/notices "$M"/inbox/messages "$M"/peer/notices "$M"/peer/messages "$M"/outbox "$M"/home "$M"/tmp
	export AMAP_INBOX_DIR=$M/inbox AMAP_PEER_DIR=$M/peer AMAP_OUTBOX_DIR=$M/outbox OUTBOX_DIR=$M/outbox \
	    AMAP_SELF_ADDRESS=$BETA AMAP_SELF=$BETA HOME=$M/home
}

# payload AGENT: the programs as they are installed, with an agent of the test's own.
payload() {
	P=$BATS_TEST_TMPDIR/payload
	mkdir -p "$P/bin"
	while IFS=$(printf '\t') read -r mode path source; do
		case $source in
		bin/*) [ ! -e "$BIN/${source#bin/}" ] || install -m "$mode" "$BIN/${source#bin/}" "$P/$path" ;;
		*) install -m "$mode" "$TOP/$source" "$P/$path" ;;
		esac
	done <"$TOP/payload/payload.list"
	[ $# -eq 0 ] || install -m 0755 "$1" "$P/agent"
}

# id N: a notice id.
id() {
	printf '%032x' "$1"
}

# spool_peer ID BODY-AS-JSON [JQ-FILTER-FOR-THE-NOTICE [... FOR-THE-MESSAGE]]
spool_peer() {
	jq -cn --arg id "$1" --arg to "$BETA" --arg from "$ALPHA" --argjson body "$2" \
	    '{contract_version: "2", notice_id: $id, id: $id, date: "2026-10-05T09:00:00Z",
	    from: $from, to: $to, subject: "s", body_text: $body} | '"${4:-.}" >"$M/message.tmp"
	mv "$M/message.tmp" "$M/peer/messages/notice-$1.json"
	jq -cn --arg id "$1" --arg from "$ALPHA" '{contract_version: "2", notice_id: $id, ts: "2026-10-05T09:00:00Z",
	    kind: "peer", message: {id: $id, from: $from, subject: "s", preview: "p", mailbox: "peer"}} | '"${3:-.}" \
	    >"$M/notice.tmp"
	mv "$M/notice.tmp" "$M/peer/notices/notice-$1.json"
}

# eventually SECONDS COMMAND...: runs it until it succeeds.
eventually() {
	local until=$((SECONDS + $1 + 1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$until" ] || { echo "never true: $*" >&2; return 1; }
		sleep 0.02
	done
}
