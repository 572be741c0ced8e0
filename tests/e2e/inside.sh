#!/bin/sh
# inside.sh SCENARIO - what runs inside the network namespace: see tests/e2e.bats
#
# $WORK has the payload (at /opt/amap/payload too) and the fleet's home;
# $CLAUDE_BIN the directory of the real claude.
set -eu
cd "$WORK"
node "$TOP/tests/e2e/model.mjs" "$WORK/requests" >port &
until [ -s port ]; do sleep 0.05; done
port=$(cat port)
amap-router --config home/router.json run --interval 5 >router.log 2>&1 &

# member NAME [ARGUMENT...]: a main process with a terminal, its words in NAME.log.
member() {
	name=$1
	shift
	lanes=$WORK/home/instances/$name
	mkdir -p "$WORK/$name"
	(
		cd "$WORK/$name"
		[ -e "made-by-$name.txt" ] || echo x >"made-by-$name.txt"
		export HOME="$WORK/$name" AMAP_INBOX_DIR="$lanes/inbox" AMAP_PEER_DIR="$lanes/peer" AMAP_OUTBOX_DIR="$lanes/outbox" \
		    AMAP_SELF_ADDRESS="$name@fleet.example" AMAP_SELF="$name@fleet.example" AMAP_ROSTER_DIR="$WORK/home/roster" \
		    ANTHROPIC_API_KEY="$name-no-key-of-anybody-0123456789" ANTHROPIC_BASE_URL="http://127.0.0.1:$port" \
		    DISABLE_AUTOUPDATER=1 TERM=xterm SHELL=/bin/sh PATH="${CLAUDE_DIR:-$CLAUDE_BIN}:$PATH"
		unset CLAUDECODE
		# script gives it a terminal; its own input must not end.
		tail -f /dev/null | script -qefc "/opt/amap/payload/amap-main --mcp-config /opt/amap/payload/mcp-servers.json \
		    --append-system-prompt-file /opt/amap/payload/INBOX-POLICY.md --settings ${SETTINGS:-/opt/amap/payload/claude-settings.json} \
		    --dangerously-skip-permissions $*" "$WORK/$name.tty" >/dev/null 2>&1
	) &
}

# until_true SECONDS COMMAND...
until_true() {
	left=$(($1 * 10))
	shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || { printf 'never true: %s\n' "$*" >&2; return 1; }
		sleep 0.1
	done
}

# task TEXT: a request of alpha to beta, made by hand.
task() {
	OUTBOX_DIR=$WORK/home/instances/alpha/outbox inbox-submit submit --to beta@fleet.example --subject 'a task' --body "$1" >/dev/null
}

# What lies in an outbox when the router sees it for the first time is put aside.
until_true 60 test -s home/router-state/status.json
# shellcheck source=/dev/null
. "$TOP/tests/e2e/$1.sh"
