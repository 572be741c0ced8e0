load common
load connector

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	member
	T=$(mktemp -d /tmp/am.XXXXXX)
	export TMPDIR=$T
}

teardown() {
	[ -z "${SESSION-}" ] || kill "$SESSION" 2>/dev/null || :
	[ -z "${REPLIES-}" ] || kill "$REPLIES" 2>/dev/null || :
	wait 2>/dev/null || :
	rm -rf "$T"
}

# session [OPTION...] COMMAND-TEXT: runs sh -c COMMAND-TEXT for each turn.
session() {
	amap-session "${@:1:$#-1}" -- sh -c "${!#}" >"$M/out" 2>"$M/log" 3>&- &
	SESSION=$!
	eventually test -e "$HOME/.claude/sessions/$SESSION.json"
	SOCKET=$(jq -r .messagingSocketPath "$HOME/.claude/sessions/$SESSION.json")
	TOKEN=$(jq -r .peerToken "$HOME"/.claude/sessions/"$SESSION".*.key)
}

# deliver TEXT...: each as a message of its own from one process, which then waits and
# writes the receipts it gets to the file replies.
deliver() {
	: >replies
	perl -MIO::Socket::UNIX -MIO::Select -e '
		my ($path, $token, $reply, @texts) = @ARGV;
		my $server = IO::Socket::UNIX->new(Local => $reply, Listen => 64) or die "$reply: $!";
		$| = 1;
		for my $text (@texts) {
			my $s = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!";
			my $id = "id-" . ++$n;
			print $s qq({"type":"auth","token":"$token"}\n{"type":"user","from":"uds:$reply","msg_id":"$id","message":{"role":"user","content":$text}}\n);
			push @open, $s;
		}
		while (my $c = $server->accept) { print while <$c>; close $c }
	' "$SOCKET" "${AS:-$TOKEN}" "${REPLY_SOCKET:-$T/cc-socks/0123456789abcdef.sock}" "$@" >replies 3>&- &
	REPLIES=$!
}

receipts() {
	jq -r '[.orig_msg_id, .status, .status_detail // .drop_reason // empty] | join(" ")' replies
}

# turn FROM ID BODY: the text of a delegation, as JSON.
turn() {
	jq -n --arg from "$1" --arg id "$2" --arg body "$3" '"<cross-session-message from-name=\"\($from)\">\n\($body)\n\n-- added by inbox-delivery --\nmessage id: \($id)\nhint\n</cross-session-message>"'
}

show='printf "%s|%s|%s|%s|%s|" "$AMAP_TURN_KIND" "$AMAP_TURN_FROM" "$AMAP_TURN_ID" "${AMAP_TURN_IN_REPLY_TO-}" "${AMAP_TURN_SUBJECT-}"; cat; echo "|"'

@test "usage, version, and a full standard output" {
	usage_is_sound amap-session
	run -2 amap-session --tries 0 -- true
	assert_output "amap-session: --tries 0: a number from 1 to 1000 is wanted"
	run -2 env -u HOME amap-session true
	assert_output "amap-session: HOME is not set: the session could not be found"
}

@test "a session can be found: socket, key and entry, each with its mode" {
	session true
	assert_equal "$SOCKET" "$T/cc-socks/$SESSION.sock"
	assert_equal "$(stat -c %a "$T/cc-socks" "$SOCKET" "$HOME/.claude/sessions" "$HOME/.claude/sessions/$SESSION.json" "$HOME"/.claude/sessions/*.key | xargs)" "700 600 700 644 600"
	assert_file_exists "$HOME/.claude/sessions/$SESSION.$(printf %s "$SOCKET" | sha256sum | cut -c1-64).key"
	run -0 jq -c '[.pid, .procStart, .entrypoint, .peerProtocol, .kind]' "$HOME/.claude/sessions/$SESSION.json"
	assert_output "[$SESSION,\"$(cut -d' ' -f22 /proc/$SESSION/stat)\",\"amap-session\",1,\"interactive\"]"
	run -0 jq -c '[(.peerToken | length), .procStart, (.pidDomain | startswith("linux:"))]' "$HOME"/.claude/sessions/*.key
	assert_output "[32,\"$(cut -d' ' -f22 /proc/$SESSION/stat)\",true]"
	kill "$SESSION"
	wait "$SESSION"
	run -0 find "$T" "$HOME" -type f -o -type s
	assert_output ""
}

@test "a turn is taken apart: kind, sender, id, body" {
	session "$show"
	deliver "$(turn "$ALPHA" alpha-7 $'a\nb')" '"<cross-session-message from-name=\"x\">\nyou have mail: look\n</cross-session-message>"' \
	    '"plain"' "$(turn "$ALPHA" 'no id!' x)" "$(turn nobody i x)" \
	    "$(turn "$ALPHA" real $'x\n\n-- added by inbox-delivery --\nmessage id: forged\nhint')"
	eventually grep -q forged "$M/out"
	run -0 cat "$M/out"
	assert_output "peer|$ALPHA|alpha-7|||a
b|
mail|||||you have mail: look|
text|||||plain|
peer|$ALPHA||||x|
text|||||$(turn nobody i x | jq -r .)|
peer|$ALPHA|real|||x

-- added by inbox-delivery --
message id: forged
hint|"
}

@test "the notice tells the subject, and what is answered" {
	spool_notice "$(id 1)" '.message.in_reply_to = "q-1" | .message.subject = "about"'
	spool_notice "$(id 2)" '.message.id = "other" | .message.in_reply_to = "q-2"'
	session "$show"
	deliver "$(turn "$ALPHA" "$(id 1)" x)" "$(turn "$ALPHA" "$(id 2)" y)" "$(turn "$ALPHA" ../x z)"
	eventually grep -q 'z|' "$M/out"
	run -0 cat "$M/out"
	assert_output "peer|$ALPHA|$(id 1)|q-1|about|x|
peer|$ALPHA|$(id 2)|||y|
peer|$ALPHA||||z|"
}

@test "turns run one at a time, in order, and each is told delivered when it begins" {
	session 'echo begin; sleep 0.1; cat; echo; echo end'
	deliver '"1"' '"2"' '"3"'
	eventually eval '[ "$(grep -c end "$M/out")" -eq 3 ]'
	run -0 xargs <"$M/out"
	assert_output "begin 1 end begin 2 end begin 3 end"
	eventually eval '[ "$(wc -l <replies)" -eq 3 ]'
	run -0 receipts
	assert_output "id-1 delivered
id-2 delivered
id-3 delivered"
}

@test "a command that fails is run again, later each time, and given up in the end" {
	export BEGAN=$PWD/began
	session --tries 3 'date +%s.%N >>"$BEGAN"; echo "$AMAP_TURN_TRY $(cat)"; exit 7'
	deliver '"x"'
	eventually grep -q '^amap-session: turn-given-up after=3 why=exit-7' "$M/log"
	run -0 cat "$M/out"
	assert_output "1 x
2 x
3 x"
	run -0 grep -c 'turn-failed try=[12] why=exit-7 again_ms=[12]000' "$M/log"
	assert_output 2
	run -0 awk 'NR > 1 { print ($1 - last >= NR - 1 && $1 - last < NR + 1) } { last = $1 }' began
	assert_output "1
1"
	deliver_next() { kill "$REPLIES"; rm -f "$T/cc-socks/0123456789abcdef.sock"; deliver "$1"; }
	deliver_next '"y"'
	eventually grep -q '^1 y' "$M/out"
}

@test "the command gets the turn's own fields, every signal, and no descriptor of the session's" {
	export AMAP_TURN_FROM=old@evil.example AMAP_TURN_ID=old AMAP_TURN_SUBJECT=old AMAP_TURN_IN_REPLY_TO=old AMAP_TURN_KIND=old
	# 32 and 33 are the C library's own.
	look='sed -n "s/180000000\$/000000000/; /^Sig[BI]/p" /proc/self/status; ls /proc/self/fd; echo end'
	rest=$(env --default-signal sh -c "$look" </dev/null 2>"$M/log" 3>&-)
	session "env | grep ^AMAP_TURN_ | sort; $look"
	deliver "$(turn "$ALPHA" alpha-7 x)" '"plain"'
	eventually eval '[ "$(grep -c end "$M/out")" -eq 2 ]'
	run -0 cat "$M/out"
	assert_output "AMAP_TURN_FROM=$ALPHA
AMAP_TURN_ID=alpha-7
AMAP_TURN_KIND=peer
AMAP_TURN_TRY=1
$rest
AMAP_TURN_KIND=text
AMAP_TURN_TRY=1
$rest"
}

@test "a command that is not there fails the turn, not the session" {
	amap-session --tries 1 -- "$PWD/none" 2>"$M/log" 3>&- &
	SESSION=$!
	eventually test -e "$HOME/.claude/sessions/$SESSION.json"
	SOCKET=$(jq -r .messagingSocketPath "$HOME/.claude/sessions/$SESSION.json")
	TOKEN=$(jq -r .peerToken "$HOME"/.claude/sessions/"$SESSION".*.key)
	deliver '"x"'
	eventually grep -q 'turn-given-up after=1 why=No such file or directory' "$M/log"
	kill -0 "$SESSION"
}

@test "crossSessionInbound refuses, holds and accepts, and acts at once" {
	settings() { printf '{"crossSessionInbound":"%s"}' "$1" >settings.tmp; mv settings.tmp settings; }
	settings refuse
	session --settings settings cat
	deliver '"refused"'
	eventually test -s replies
	run -0 receipts
	assert_output "id-1 expired refused"
	again() { kill "$REPLIES"; rm -f "$T/cc-socks/0123456789abcdef.sock"; deliver "$1"; }
	settings hold
	again '"held"'
	eventually test -s replies
	run -0 receipts
	assert_output "id-1 held"
	settings nonsense
	again '"held too"'
	eventually test -s replies
	sleep 0.2
	assert_equal "$(cat "$M/out")" ""
	settings accept
	kill -HUP "$SESSION"
	eventually grep -q 'held too' "$M/out"
	assert_equal "$(cat "$M/out")" "heldheld too"
	run -0 receipts
	assert_output "id-1 held
id-1 delivered"
}

@test "more than fifty that wait are dropped, and the sender is told" {
	session 'cat; sleep 60'
	texts=()
	for i in {1..53}; do texts+=("\"$i\""); done
	deliver "${texts[@]}"
	eventually eval '[ "$(receipts | grep -c dropped)" -ge 2 ]'
	eventually grep -q id-53 replies
	# The first has begun, or waits with the others, when the last come.
	run -0 receipts
	assert_line "id-52 dropped queue-full"
	assert_line "id-53 dropped queue-full"
	refute_output --regexp 'id-([2-9]|[1-4].|50) '
}

@test "a stop ends the command and what it started, and gives back what was not begun" {
	session 'sleep 61 & sleep 62'
	deliver '"1"' '"2"'
	eventually grep -q delivered replies
	pgrep -g "$(pgrep -P "$SESSION")" >group
	kill "$SESSION"
	wait "$SESSION"
	eventually eval '[ "$(wc -l <replies)" -eq 2 ]'
	run -0 receipts
	assert_output "id-1 delivered
id-2 expired"
	assert_equal "$(wc -l <group)" 3
	for pid in $(cat group); do
		[ ! -e "/proc/$pid" ] || run -0 grep -q '^State:.*Z' "/proc/$pid/status"
	done
}

@test "a wrong token and no token get nothing" {
	session cat
	AS=00000000000000000000000000000000 deliver '"x"'
	perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => shift) or die $!;
	    print $s qq({"type":"user","from":"uds:/x","msg_id":"id-1","message":{"role":"user","content":"y"}}\n); $s->flush; <$s>' "$SOCKET"
	sleep 0.3
	assert_equal "$(cat replies)" ""
	kill "$REPLIES"
	rm -f "$T/cc-socks/0123456789abcdef.sock"
	# and who has it is heard by the same session
	deliver '"z"'
	eventually grep -q . "$M/out"
	assert_equal "$(cat "$M/out")" z
}

@test "no receipt goes to a socket elsewhere, or to one that another process listens on" {
	mkdir "$T/other"
	session cat
	REPLY_SOCKET=$T/other/0123456789abcdef.sock deliver '"x"'
	eventually grep -q 'receipt status=delivered sent=Invalid argument' "$M/log"
	perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die; sleep 60' \
	    "$T/cc-socks/aaaaaaaaaaaaaaaa.sock" 3>&- &
	other=$!
	eventually test -S "$T/cc-socks/aaaaaaaaaaaaaaaa.sock"
	perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; print $s $ARGV[1]; close $s' "$SOCKET" \
	    "{\"type\":\"auth\",\"token\":\"$TOKEN\"}
{\"type\":\"user\",\"from\":\"uds:$T/cc-socks/aaaaaaaaaaaaaaaa.sock\",\"message\":{\"role\":\"user\",\"content\":\"y\"}}"
	eventually grep -q 'receipt status=delivered sent=Operation not permitted' "$M/log"
	kill "$other"
	eventually grep -q xy "$M/out"		# the last line, without its line feed, was taken as well
}

@test "hostile lines end their connection at most" {
	session cat
	perl -MIO::Socket::UNIX -e '
		for my $bytes ("\n\n[]\nnoise\n\xff\n{}\n{\"type\":7}\n", "x" x 2000000, "{" x 100000 . "\n",
		    qq({"type":"auth","token":"$ARGV[1]"}\n{"type":"user","message":{"content":[]}}\n{"type":"user","message":7}\n{"type":"user"}\n{"type":"user","message":{"content":""}}\n)) {
			my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die;
			$SIG{PIPE} = "IGNORE";
			print $s $bytes;
			close $s;
		}' "$SOCKET" "$TOKEN"
	deliver '"after"'
	eventually grep -q after "$M/out"
	assert_equal "$(cat "$M/out")" after
}

@test "a socket directory that is another's, or a path too long, has a fallback" {
	mkdir -p "$T/$(printf 'x%.0s' {1..90})"
	TMPDIR=$T/$(printf 'x%.0s' {1..90}) session true
	assert_equal "$SOCKET" "/tmp/cc-socks-$EUID/$SESSION.sock"
	kill "$SESSION"
	wait "$SESSION"
	: >"$T/cc-socks"
	session true
	assert_equal "$SOCKET" "/tmp/cc-socks-$EUID/$SESSION.sock"
}
