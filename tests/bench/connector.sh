#!/bin/sh
# connector.sh - what the payload's programs cost
#
# usage: connector.sh
# Programs from $AMAP_BUILD_DIR/bin, or build/bin. Exit status 1 when a limit is
# exceeded. Limits: a tool server from its start to the answer of initialize 4
# times a static program that does nothing; 4 MiB resident each; a tools/call
# under 1 ms with 10,000 messages; a notice at the session within 5 ms; nothing
# that wakes an idle daemon but its heartbeat, every 15 s.
set -eu
LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/../.." && pwd)
PATH=${AMAP_BUILD_DIR:-$top/build}/bin:$PATH
work=$(mktemp -d /tmp/am.XXXXXX)
pids=
trap 'kill $pids 2>/dev/null || :; rm -rf "$work"' EXIT
cd "$work"
rc=0

cc -O2 -D_GNU_SOURCE -o spawn "$top/tests/bench/spawn.c"
printf 'int main(void) { return 0; }\n' | cc -O2 -static -x c -o nothing -

# verdict TEXT VALUE LIMIT
verdict() {
	if awk -v v="$2" -v l="$3" 'BEGIN { exit !(v <= l) }'; then
		printf '%s: %s (limit %s)\n' "$1" "$2" "$3"
	else
		printf '%s: %s OVER THE LIMIT %s\n' "$1" "$2" "$3"
		rc=1
	fi
}

# ---- tool servers ----

mkdir -p peer/messages outbox/results
perl -e 'for my $n (1 .. 10000) {
	my $id = sprintf "%032x", $n;
	open my $f, ">", "peer/messages/notice-$id.json" or die;
	printf $f q({"contract_version":"2","notice_id":"%s","id":"%s","date":"2026-10-05T09:00:00Z","from":"alpha@fleet.example","to":"beta@fleet.example","subject":"message %d","body_text":"%s"}), $id, $id, $n, "word " x 100;
}'
export INBOX_MESSAGE_DIR="$work/peer/messages" OUTBOX_DIR="$work/outbox"
printf '{"method":"initialize","params":{"protocolVersion":"2025-11-25"},"jsonrpc":"2.0","id":0}\n' >initialize
for command in inbox-mcp-vol 'inbox-submit mcp'; do
	# shellcheck disable=SC2086	# a command line
	./spawn 400 ./nothing initialize $command >cost
	verdict "$command, start to the answer of initialize, times a program that does nothing" \
	    "$(awk '{ printf "%.2f", $2 / $1 }' cost)" 4
done

# calls SERVER TOOL ARGUMENTS: median microseconds of 300 calls, and its resident size in KiB.
cat >calls <<'END'
use strict; use warnings; use IPC::Open2; use Time::HiRes qw(time);
my ($tool, $arguments, @server) = @ARGV;
my $pid = open2(my $out, my $in, @server);
sub ask { print $in "$_[0]\n"; scalar <$out> =~ /"isError"/ and die "an error"; }
ask('{"id":0,"method":"initialize","params":{}}');
select undef, undef, undef, 0.3;	# as a client that starts its other servers meanwhile
my @took;
for my $n (1 .. 300) {
	my $from = time;
	ask(qq({"id":$n,"method":"tools/call","params":{"name":"$tool","arguments":$arguments}}));
	push @took, (time - $from) * 1e6;
}
open my $status, '<', "/proc/$pid/status" or die;
my ($kib) = map { /VmHWM:\s*(\d+)/ ? $1 : () } <$status>;
printf "%.0f %d\n", (sort { $a <=> $b } @took)[150], $kib;
close $in;
waitpid $pid, 0;
END
echo '{"outcome":"accepted"}' >outbox/results/00000001.json
while read -r tool arguments server; do
	# shellcheck disable=SC2086	# a command line
	perl calls "$tool" "$arguments" $server >cost
	verdict "$tool with 10,000 messages, us" "$(cut -d' ' -f1 cost)" 1000
	verdict "${server%% *} meanwhile, MiB" "$(awk '{ printf "%.1f", $2 / 1024 }' cost)" 4
done <<END
list_messages {"n":10} inbox-mcp-vol
read_message {"id":"$(printf '%032x' 4711)"} inbox-mcp-vol
submit_result {"req_id":"00000001"} inbox-submit mcp
END

# ---- delivery ----

mkdir -p inbox/notices peer/notices home
export HOME="$work/home" AMAP_DELIVERY_MAIL_NOTICE_DIR="$work/inbox/notices" AMAP_DELIVERY_PEER_NOTICE_DIR="$work/peer/notices" \
    AMAP_DELIVERY_PEER_MESSAGE_DIR="$work/peer/messages" AMAP_DELIVERY_MAIL_CLAIM="$work/claims/mail" \
    AMAP_DELIVERY_PEER_CLAIM="$work/claims/peer" AMAP_DELIVERY_STATE_DIR="$work/state" \
    AMAP_DELIVERY_OUTCOME_DIR="$work/outbox/ext/claude-code/outcomes" AMAP_DELIVERY_SESSION_SOURCE="$work/source" \
    AMAP_DELIVERY_SELF=beta@fleet.example
printf '{"peerToken":"t"}' >key
printf '#!/bin/sh\necho "claude - - 999999 %s %s"\n' "$work/s.sock" "$work/key" >source
chmod +x source

# Plays the session: puts one notice after the other, and takes the time until
# its first byte comes; each is answered, so that none waits for its receipt, and
# the next comes when the daemon has written down what became of it.
cat >session <<'END'
use strict; use warnings; use IO::Handle; use IO::Socket::UNIX; use Time::HiRes qw(time);
my $server = IO::Socket::UNIX->new(Local => 's.sock', Listen => 64) or die;
my @took;
for my $n (1 .. 200) {
	my $id = sprintf "%032x", $n;
	open my $f, '>', 'peer/notices/.tmp' or die;
	printf $f q({"contract_version":"2","notice_id":"%s","ts":"2026-10-05T09:00:00Z","kind":"peer","message":{"id":"%s","from":"alpha@fleet.example","subject":"s","preview":"p","mailbox":"peer"}}), $id, $id;
	close $f;
	my $from = time;
	rename 'peer/notices/.tmp', "peer/notices/notice-$id.json" or die;
	my $conn = $server->accept;
	sysread $conn, my $text, 1 or die;
	push @took, (time - $from) * 1000;
	sysread $conn, $text, 65536, length $text until $text =~ /"uds:([^"]*)".*\n$/s;
	my ($reply) = $text =~ /"uds:([^"]*)"/;
	my $back = IO::Socket::UNIX->new(Peer => $reply) or die;
	print $back qq({"type":"control","action":"peer_message_status","status":"delivered"}\n);
	close $back;
	sysread $conn, $text, 65536;
	select undef, undef, undef, 0.002 until -e "outbox/ext/claude-code/outcomes/peer-$id.json";
	select undef, undef, undef, 0.01;
}
@took = sort { $a <=> $b } @took;
# The floor of it: nothing is sent before one mark of it is on the disk.
my @disk;
for (1 .. 50) {
	my $from = time;
	open my $f, '>', "mark.$_" or die;
	print $f "x" and $f->sync or die;
	push @disk, (time - $from) * 1000;
}
printf "%.2f %.2f %.2f\n", $took[100], $took[190], (sort { $a <=> $b } @disk)[25];
END
inbox-delivery 2>log &
daemon=$!
pids=$daemon
while ! grep -qs started log; do sleep 0.05; done
timeout 60 perl session >cost
verdict "notice to the session's first byte, p50, ms" "$(cut -d' ' -f1 cost)" 5
printf 'the same, p95, ms: %s; of it one fsync on this disk: %s\n' "$(cut -d' ' -f2 cost)" "$(cut -d' ' -f3 cost)"
sleep 1
switches() { awk '/_ctxt_switches/ { n += $2 } END { print n }' "/proc/$daemon/status"; }
before=$(switches)
sleep 5
verdict 'inbox-delivery idle, wake-ups in 5 s (a heartbeat may fall into them, with its fsyncs)' $(($(switches) - before)) 8
verdict 'inbox-delivery with 200 notices, MiB' "$(awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$daemon/status")" 4

amap-session -- true 2>log.session &
session=$!
pids="$pids $session"
while ! grep -qs listening log.session; do sleep 0.05; done
verdict 'amap-session, MiB' "$(awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$session/status")" 4
./spawn 200 ./nothing /dev/null openshell-sessions --help >cost
printf 'openshell-sessions, start only, times a program that does nothing: %s\n' "$(awk '{ printf "%.2f", $2 / $1 }' cost)"
exit "$rc"
