# The shell of both tool servers, seen through inbox-submit.
load common

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	export OUTBOX_DIR=$BATS_TEST_TMPDIR/outbox
}

# answers FILE: what the server answers to the file, of initialize only the version.
answers() {
	inbox-submit mcp <"$1" 2>stderr |
	    sed 's/\("protocolVersion":"[^"]*"\),.*/\1}}/'
}

@test "B73 B74 every exchange of the table is answered as written, and nothing else is" {
	local -i block=0
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		'> '*) printf '%s\n' "${line#> }" >>"in.$block" ;;
		'>') printf '\n' >>"in.$block" ;;
		'< '*) printf '%s\n' "${line#< }" >>"out.$block" ;;
		'') block+=1 ;;
		esac
	done <"$DATA/connector/mcp"
	for file in in.*; do
		touch "out.${file#in.}"
		answers "$file" >got
		diff -u "out.${file#in.}" got
	done
	assert_dir_not_exists "$OUTBOX_DIR"	# neither the cancelled submit nor the one without an id was done
}

@test "B68 nothing but responses reaches standard output; words go to standard error" {
	mkdir root
	printf '{"address":"beta@fleet.example"}' >root/identity.json
	run -0 --separate-stderr env MAILBOX_ROOT_DIR="$PWD/root" inbox-submit mcp <<-E
	noise
	{"id":1,"method":"ping"}
	E
	assert_output '{"jsonrpc":"2.0","id":1,"result":{}}'
	assert_equal "$stderr" "inbox-submit: bound to beta@fleet.example (informational)
inbox-submit: ignored a line that is not JSON: line 1: a word that JSON does not know"
}

@test "what the identity file says is told clean, or why it cannot be; it is never in the way" {
	mkdir root
	told() {
		run -0 --separate-stderr env MAILBOX_ROOT_DIR="$PWD/root" inbox-submit mcp <<<'{"id":1,"method":"ping"}'
		assert_output '{"jsonrpc":"2.0","id":1,"result":{}}'
		assert_equal "$stderr" "${1:+inbox-submit: $1}"
	}
	told ''
	while IFS='|' read -r text words; do
		printf '%b' "$text" >root/identity.json
		told "${words/IDENTITY/$PWD/root/identity.json}"
	done <<-'E'
	[]|
	{"address":7}|
	{"address":""}|
	{"address":"a\\u001b[31mb\\u2028c"}|bound to a [31mb c (informational)
	{"address":"a"|IDENTITY: line 1: an object without its end
	\xff|IDENTITY: line 1: not JSON
	E
	printf '{"address":"%065537d"}' 1 >root/identity.json
	told "$PWD/root/identity.json: larger than 65536 bytes"
	rm root/identity.json
	mkfifo root/identity.json
	told "$PWD/root/identity.json: not a regular file"
}

@test "B70 long lines are read whole up to 4 MiB; a longer one is refused once and the next is read" {
	line() {	# LENGTH of the whole line
		printf '{"id":%d,"method":"ping","params":{"x":"' "$1"
		head -c $(($1 - 41 - ${#1})) /dev/zero | tr '\0' x
		printf '"}}\n'
	}
	for length in 5000 70000 4194304; do
		[ "$(line $length | wc -c)" -eq $((length + 1)) ] || fail "$length: $(line $length | wc -c)"
	done
	{
		line 5000
		line 70000
		line 4194304
		line 4194305
		line 100
		head -c 30000000 /dev/zero
		printf '\n'
		line 101
	} >in
	run -0 answers in
	assert_output '{"jsonrpc":"2.0","id":5000,"result":{}}
{"jsonrpc":"2.0","id":70000,"result":{}}
{"jsonrpc":"2.0","id":4194304,"result":{}}
{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a line of more than 4 MiB"}}
{"jsonrpc":"2.0","id":100,"result":{}}
{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a line of more than 4 MiB"}}
{"jsonrpc":"2.0","id":101,"result":{}}'
}

@test "B71 a large answer arrives whole at a slow reader, through a pipe that does not block" {
	mkdir -p "$OUTBOX_DIR/results"
	jq -n '{a: ("y" * 300000)}' >"$OUTBOX_DIR/results/1.json"
	echo '{"id":1,"method":"tools/call","params":{"name":"submit_result","arguments":{"req_id":"1"}}}' >in
	perl -MFcntl -e 'fcntl(STDOUT, F_SETFL, O_NONBLOCK) or die; exec @ARGV' "$BIN/inbox-submit" mcp <in |
	    { sleep 0.3; perl -e 'while (sysread(STDIN, my $b, 4096)) { print $b; select(undef, undef, undef, 0.001) }'; } >out
	run -0 jq -r '.result.content[0].text | fromjson.a | length' out
	assert_output 300000
}

@test "B76 initialize is answered before anything is looked at" {
	mkfifo fifo
	printf '%s\n' '{"id":1,"method":"initialize"}' >in
	run -0 timeout 60 env INBOX_MESSAGE_DIR="$PWD/fifo" inbox-mcp-vol <in
	assert_output --partial '"id":1,"result"'
}

@test "the server ends with its input, at once" {
	timed
	mkfifo in
	sleep 30 >in 3>&- &
	writer=$!
	inbox-submit mcp <in >out 3>&- &
	server=$!
	sleep 0.3
	kill "$writer"
	wait "$writer" || :
	began=$(date +%s%N)
	wait "$server"
	took=$((($(date +%s%N) - began) / 1000000))
	[ "$took" -lt 100 ] || fail "$took ms"
}

@test "SIGINT ends it, idle and in a large answer that nobody reads" {
	timed
	mkfifo in out
	for n in 1 100000; do
		env INBOX_MESSAGE_DIR="$PWD" perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' inbox-mcp-vol <in >out 3>&- &
		exec 8>in 9<out
		for ((i = 0; i < n; i += 1000)); do printf '{"id":%d,"method":"tools/list"}\n' "$i" >&8; done
		sleep 0.2
		kill -INT $!
		began=$(date +%s%N)
		rc=0
		wait $! || rc=$?
		exec 8>&- 9<&-
		assert_equal "$rc" 130
		[ $((($(date +%s%N) - began) / 1000000)) -lt 200 ]
	done
}

@test "a last line without its line feed is answered" {
	run -0 inbox-submit mcp < <(printf '{"id":1,"method":"ping"}')
	assert_output '{"jsonrpc":"2.0","id":1,"result":{}}'
}

@test "input cut at any byte gives whole answers or none, and exit 0" {
	printf '%s\n' '{"id":1,"method":"initialize"}' '{"id":2,"method":"tools/call","params":{"name":"peers","arguments":{"query":"é"}}}' \
	    '{"method":"notifications/cancelled","params":{"requestId":2}}' '{"id":"\u00e9","method":"ping"}' >in
	size=$(wc -c <in)
	for ((cut = 0; cut <= size; cut++)); do
		head -c "$cut" in | inbox-submit mcp 2>/dev/null >>out || fail "cut at $cut"
	done
	run -0 jq -s 'all(.jsonrpc == "2.0")' out
	assert_output true
}

@test "closed descriptors, and a client that went away" {
	run -0 sh -c 'inbox-submit mcp <&-'
	echo '{"id":1,"method":"ping"}' >in
	run -2 sh -c 'exec inbox-submit mcp <in >/dev/full'
	assert_output "inbox-submit: standard output: No space left on device"
}

@test "random bytes end no server" {
	for seed in 1 2 3 4 5 6 7 8; do
		perl -e 'srand($ARGV[0]); print map { chr(rand(256)) } 1..50000; print "\n{\"id\":1,\"method\":\"ping\"}\n"' "$seed" >in
		inbox-submit mcp <in 2>/dev/null | tail -n 1 >got
		assert_equal "$(cat got)" '{"jsonrpc":"2.0","id":1,"result":{}}'
	done
}
