load common

# The hook, run as claude does it: by a shell that is a child of a process called claude.
setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	mkdir home
	cp "$(command -v sh)" claude
}

# under_claude COMMAND: prints the claude's pid and start, then what the command prints.
under_claude() {
	HOME=$PWD/home CLAUDE_CODE_MESSAGING_SOCKET=/tmp/cc-socks/1.sock CLAUDE_CODE_MESSAGING_TOKEN=secret-of-nobody \
	    ./claude -c 'cut -d" " -f1,22 /proc/$$/stat; "$0" -c "$1"; :' "$(command -v sh)" "$1" </dev/null
}

@test "usage, version, and a full standard output" {
	usage_is_sound claude-session-start
}

@test "the record holds socket, pid and start time of the nearest claude, and no token" {
	run -0 --separate-stderr under_claude 'claude-session-start; :'
	read -r pid start <<<"$output"
	assert_equal "$(cat "home/.claude/amap-sessions/$pid.json")" \
	    "{\"socket\":\"/tmp/cc-socks/1.sock\",\"pid\":$pid,\"start_time\":\"$start\"}"
	assert_equal "$(stat -c %04a home/.claude/amap-sessions home/.claude/amap-sessions/*)" "0700
0600"
	[ -z "$stderr" ]
	assert_equal "${#lines[@]}" 1	# nothing but the line of the test itself reached standard output
}

@test "the claude that the environment names is taken without a search" {
	run -0 under_claude 'CLAUDE_PID=$PPID claude-session-start; :'
	read -r pid _ <<<"$output"
	assert_file_exists "home/.claude/amap-sessions/$pid.json"
}

@test "a number that is no claude's is not believed" {
	run -0 under_claude 'CLAUDE_PID=1 claude-session-start; :'
	read -r pid _ <<<"$output"
	run -0 ls home/.claude/amap-sessions
	assert_output "$pid.json"
}

@test "a record is replaced, and a directory with a wide mode is narrowed" {
	mkdir -p -m 0755 home/.claude/amap-sessions
	run -0 under_claude 'claude-session-start; CLAUDE_CODE_MESSAGING_SOCKET=/x/2.sock claude-session-start; :'
	read -r pid _ <<<"$output"
	run -0 jq -r .socket "home/.claude/amap-sessions/$pid.json"
	assert_output /x/2.sock
	assert_equal "$(stat -c %04a home/.claude/amap-sessions)" 0700
}

@test "what is lacking is named, with status 1 and an empty standard output" {
	run -1 --separate-stderr env -u CLAUDE_CODE_MESSAGING_SOCKET HOME="$PWD/home" claude-session-start
	assert_equal "$output/$stderr" "/claude-session-start: CLAUDE_CODE_MESSAGING_SOCKET is not set"
	run -1 --separate-stderr env -u HOME CLAUDE_CODE_MESSAGING_SOCKET=x claude-session-start
	assert_equal "$output/$stderr" "/claude-session-start: HOME is not set"
	run -1 --separate-stderr env HOME="$PWD/home" CLAUDE_CODE_MESSAGING_SOCKET=x claude-session-start
	assert_equal "$output/$stderr" "/claude-session-start: no ancestor of this program runs claude"
}

@test "a link in the place of the directory is not followed" {
	mkdir -p home/.claude elsewhere
	ln -s ../../elsewhere home/.claude/amap-sessions
	run -0 --separate-stderr under_claude 'claude-session-start; echo $?'
	assert_equal "${lines[1]}" 1
	assert_equal "$stderr" "claude-session-start: .claude/amap-sessions: Not a directory"
	assert_equal "$(ls elsewhere)" ""
}
