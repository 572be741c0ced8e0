# The real Claude Code, two of them, with our payload, connector and router; the
# model is ours (tests/e2e/model.mjs). No network but loopback.
load common
load router

CLAUDE_PACKAGE=@anthropic-ai/claude-code-linux-x64@2.1.332
MCP_PACKAGE=@modelcontextprotocol/sdk@1.32.2

# npm_package DIRECTORY NAME@VERSION: installed once, for all runs on this machine; skips when it cannot be had.
npm_package() {
	local cache=${XDG_CACHE_HOME:-${HOME_BEFORE:-$HOME}/.cache}/amap-openshell/$1
	command -v node >/dev/null && command -v npm >/dev/null || skip "node and npm are not installed"
	if [ ! -e "$cache/whole" ]; then
		mkdir -p "$cache"
		timeout 600 npm install --prefix "$cache" --no-audit --no-fund --no-save "$2" >npm.log 2>&1 3>&- ||
		    skip "$2 cannot be had from npm: $(tail -n 1 npm.log)"
		touch "$cache/whole"
	fi
	PACKAGE=$cache/node_modules
}

# scenario NAME [AGENT]: runs it, with that agent, and leaves what happened in ./requests and ./home.
scenario() {
	[ "$(uname -m)" = x86_64 ] || skip "the package is for x86-64"
	bwrap --unshare-net --ro-bind / / true 2>/dev/null || skip "bwrap cannot make a namespace here"
	npm_package claude-2.1.332 "$CLAUDE_PACKAGE"
	WORK=$(mktemp -d /tmp/am-e2e.XXXXXX)
	cd "$WORK"
	fleet '"peer_senders":{"beta":["alpha"]}' alpha beta
	installed_payload payload
	[ $# -eq 1 ] || install -m 0755 "$2" payload/agent
	export WORK CLAUDE_BIN=$PACKAGE/@anthropic-ai/claude-code-linux-x64
	run -0 bwrap --unshare-user --uid 1000 --gid 1000 --unshare-net --unshare-pid --unshare-ipc --die-with-parent \
	    --dev-bind / / --tmpfs /tmp --bind "$WORK" "$WORK" --ro-bind "$TOP" "$TOP" --ro-bind "$BIN" "$BIN" \
	    --ro-bind "$PACKAGE" "$PACKAGE" --tmpfs /opt --ro-bind payload /opt/amap/payload --proc /proc -- \
	    sh "$TOP/tests/e2e/inside.sh" "$1" 3>&-
}

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
}

teardown() {
	[ -z "${WORK-}" ] || rm -rf "$WORK"
}

# turns NAME PATTERN: how many requests to the model brought it such a text. One
# without tools is no turn: Claude Code asks for a title, at times.
turns() {
	jq -s --arg who "$1" --arg p "$2" 'map(select(.who == $who and .tools != [] and (.news.text | test($p)))) | length' requests
}

@test "B77 a delegation between two real sessions, there and back" {
	scenario delegation
	# beta's first turn came from outside, and all nine mail tools and the policy were there.
	run -0 jq -cs 'map(select(.who == "beta"))[0] | [(.tools | length), .system, (.news.text | test("from-name=\"alpha@fleet.example\""))]' requests
	assert_output '[9,true,true]'
	run -0 jq -rs 'map(select(.who == "alpha" and (.news.text | test("My files:"))))[0].news.text' requests
	assert_output --partial 'made-by-beta.txt'
	assert_output --partial '<cross-session-message from-name="beta@fleet.example">'
	run -0 jq -r '.outcome + " " + .reason_code' home/instances/alpha/outbox/results/*.json home/instances/beta/outbox/results/*.json
	assert_output "accepted peer_routed
accepted peer_routed"
}

@test "a real session that refuses gets no turn, and the operator is told why" {
	scenario refuse
	run -0 grep -rhoE '"outcome": ?"[a-z_]+"' home/router-state
	assert_output --partial held
	assert_equal "$(turns beta 'list your files')" 0
}

@test "a real session that dies at work is not given the task again, and gets the next" {
	scenario restart
	run -0 jq -s 'any(.who == "beta" and (.news.text | test("first")))' requests-before
	assert_output true
	assert_equal "$(turns beta first)" 0
	assert_equal "$(turns beta second)" 1
}

@test "two real sessions beside one daemon get nothing" {
	scenario two
	assert_equal "$(turns beta 'list your files')" 0
}

@test "what an agent left in its home changes nothing at its next start" {
	scenario sabotage
	assert_equal "$(turns beta 'list your files')" 1
	run -0 jq -rs '[.[] | select(.who == "beta") | .tools[]] | unique[]' requests
	assert_output "mcp__delegation__list_messages
mcp__delegation__read_attachment
mcp__delegation__read_message
mcp__inbox-submit__peers
mcp__inbox-submit__submit
mcp__inbox-submit__submit_result
mcp__inbox__list_messages
mcp__inbox__read_attachment
mcp__inbox__read_message"
	assert_file_not_exists rogue
	run -0 jq -s 'any(.who == "beta" and .obeys)' requests
	assert_output false
	run -0 bash -c 'jq -c "keys" beta/.claude/amap-sessions/*.json'		# our hook ran
	assert_output '["pid","socket","start_time"]'
}

@test "the agent of the examples that asks claude once for a turn does its tasks in one conversation" {
	scenario print "$TOP/examples/agents/claude.sh"
	run -0 jq -rs '[.[] | select(.who == "beta" and (.news.text | test("list your files"))) |
	    [(.news.text | capture("files, (?<n>[a-z]+)").n), .messages > 4, (.tools | length), .printed] | map(tostring) | join(" ")] | .[]' requests
	assert_output "first false 9 true
second true 9 true"
	run -0 bash -c 'cat home/instances/alpha/peer/messages/*.json | jq -r .body_text'
	assert_line --partial made-by-beta.txt
	run -0 bash -c 'cat home/instances/beta/outbox/results/*.json | jq -r "[.outcome, .reason_code] | join(\" \")"'
	assert_output "accepted peer_routed
accepted peer_routed"
	run -0 jq .totals.peer_ambiguous_target home/router-state/status.json
	assert_output 0
}

@test "a client of MCP that we did not write drives both servers" {
	npm_package mcp-sdk "$MCP_PACKAGE"
	mkdir -p peer/messages outbox
	printf '{"contract_version":"2","notice_id":"n","id":"n","from":"alpha@fleet.example","body_text":"hello"}' >peer/messages/notice-n.json
	cp "$TOP/tests/e2e/client.mjs" .
	ln -s "$PACKAGE" node_modules
	run -0 env INBOX_MESSAGE_DIR="$PWD/peer/messages" INBOX_LANE=peer OUTBOX_DIR="$PWD/outbox" node client.mjs "$BIN"
	assert_output "inbox-lab-vol: list_messages read_message read_attachment
hello
-32602
inbox-lab-submit: submit submit_result peers
00000000 queued
pending
error"
}
