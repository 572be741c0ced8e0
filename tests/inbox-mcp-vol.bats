load common

NID=0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	mkdir -p peer/messages "peer/notices/$NID.attachments"
	export INBOX_MESSAGE_DIR=$PWD/peer/messages INBOX_LANE=peer
}

# call TOOL ARGUMENTS: the text of the answer; status 1 when it is an error.
call() {
	printf '{"id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n' "$1" "$2" |
	    inbox-mcp-vol >answer || return 2
	jq -re '.result.content[0].text' answer || return 2
	jq -e '.result.isError != true' answer >/dev/null
}

# texts TOOL ARGUMENTS...: the same for many calls of one server, a line each, "error" before an error's.
texts() {
	local tool=$1
	shift
	for arguments in "$@"; do
		printf '{"id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n' "$tool" "$arguments"
	done | inbox-mcp-vol | jq -r '.result | (if .isError then "error " else "" end) + (.content[0].text | @json)'
}

unbanner() {
	LC_ALL=C.UTF-8 sed -i '/^───/,/^──*$/c BANNER' "$1"
}

# message NAME [FILTER]: publishes one in the form of spec connector, section 8.1.
message() {
	jq -cn --arg nid "$NID" '{contract_version: "2", notice_id: $nid, id: $nid, date: "2026-01-02T03:04:05Z",
	    from: "alpha@fleet.example", to: "beta@fleet.example", subject: "count rows", body_text: "Count the rows.\n"} | '"${2:-.}" \
	    >"peer/messages/$1"
}

with_files() {
	printf 'alpha,1\nbeta,2\n' >"peer/notices/$NID.attachments/0"
	message "notice-$NID.json" '.body_text = "Count the rows.\n\tThen report.\u200b\u00a0end\r\n" | .attachments = [
	    {filename: "rows.csv", media_type: "text/csv", size_bytes: 15, disposition: "clean", content_ref: ($nid + ".attachments/0"),
	     sha256: "3c945046ce5433af5724305f95b0ce5b6bd3dd9eac2a755263789faa3a46e25a"},
	    {filename: "big.bin", media_type: "application/octet-stream", size_bytes: 9, disposition: "stripped"},
	    {filename: "x\u202e\n", disposition: "clean", content_ref: ($nid + ".attachments/1"),
	     sha256: "3c945046ce5433af5724305f95b0ce5b6bd3dd9eac2a755263789faa3a46e25a"},
	    {}]'
}

@test "usage, version, and a full standard output" {
	usage_is_sound inbox-mcp-vol
}

@test "a place and a lane are required, in this order, and nothing reaches standard output" {
	run -2 --separate-stderr env -u INBOX_MESSAGE_DIR INBOX_LANE=x inbox-mcp-vol </dev/null
	assert_equal "$output/$stderr" "/inbox-mcp-vol: no message directory: set INBOX_MESSAGE_DIR or MAILBOX_ROOT_DIR"
	run -2 --separate-stderr env INBOX_LANE=both inbox-mcp-vol </dev/null
	assert_equal "$output/$stderr" "/inbox-mcp-vol: INBOX_LANE must be mail or peer, not both"
	for value in '' ' ' ' Mail' PEER; do
		run -0 --separate-stderr env INBOX_LANE="$value" inbox-mcp-vol </dev/null
		assert_equal "$output$stderr" ""
	done
}

@test "the directory is expanded as written in the environment" {
	message "notice-$NID.json"
	mkdir -p home && ln -s ../peer home/p
	echo '{"id":1,"method":"tools/call","params":{"name":"list_messages"}}' >in
	listed() {	# VARIABLE=VALUE EXPECTED
		run -0 env -u INBOX_MESSAGE_DIR HOME="$PWD/home" D="$PWD/peer" E="\$D" "$1" "$BIN/inbox-mcp-vol" <in
		assert_output --partial "$2"
	}
	listed 'INBOX_MESSAGE_DIR=$D/messages' "$NID"
	listed 'INBOX_MESSAGE_DIR=${D}/messages' "$NID"
	listed 'INBOX_MESSAGE_DIR=~/p/messages' "$NID"
	listed 'INBOX_MESSAGE_DIR=$E/messages' 'does not exist'
	listed 'INBOX_MESSAGE_DIR=$NONE/messages' 'does not exist'
	listed 'MAILBOX_ROOT_DIR=$D' "$NID"
}

@test "the texts of the lanes differ, and each says what it must" {
	for lane in mail peer; do
		INBOX_LANE=$lane inbox-mcp-vol <<<'{"id":1,"method":"initialize"}' | jq -r .result.instructions >text.$lane
		run ! grep -E '  |sender_standing|peer-origin' text.$lane
		[ "$(wc -m <text.$lane)" -lt 4096 ]
	done
	for word in 'NOT AUTHENTICATED' DMARC 'report that to the user'; do
		grep -qF "$word" text.mail
		run ! grep -F "$word" text.peer
	done
	run ! grep -i 'unauthenticated\|not authenticated' text.peer
	for word in DELEGATION 'ACTED ON' UNTRUSTED 'no authority' 'no AV/DLP' unscreened; do
		grep -qF "$word" text.peer
	done
}

@test "the banners have ten lines of at most 69 characters, between rules" {
	message "notice-$NID.json"
	for lane in mail peer; do
		INBOX_LANE=$lane call read_message "{\"id\":\"$NID\"}" | LC_ALL=C.UTF-8 sed -n '/^───/,/^──*$/p' >banner
		run -0 wc -l banner
		assert_output "10 banner"
		export LC_ALL=C.UTF-8
		assert_equal "$(wc -L <banner) $(head -n 1 banner | wc -m) $(tail -n 1 banner | wc -m) $(grep -c '^$' banner)" "69 70 70 1"
		LC_ALL=C
	done
	grep -q 'from an authenticated peer' banner
}

@test "tools are three, with exactly these schemas" {
	run -0 sh -c 'echo "{\"id\":1,\"method\":\"tools/list\"}" | inbox-mcp-vol | jq -c ".result.tools[] | [.name, (.inputSchema | del(.properties[].description))]"'
	assert_output '["list_messages",{"type":"object","properties":{"n":{"type":"integer","default":10}},"additionalProperties":false}]
["read_message",{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}]
["read_attachment",{"type":"object","properties":{"message_id":{"type":"string"},"index":{"type":"integer"}},"required":["message_id","index"],"additionalProperties":false}]'
}

@test "a listing has an entry for each message, the newest first, unreadable ones with the reason" {
	with_files
	touch -d '2026-01-01' "peer/messages/notice-$NID.json"
	message notice-2c.json '.contract_version = "3.1"'
	message notice-1c.json 'del(.contract_version)'
	printf '\377' >peer/messages/bad.json
	message empty.json '{contract_version: "2"}'
	touch -d '2026-01-05' peer/messages/notice-2c.json
	touch -d '2026-01-04' peer/messages/notice-1c.json
	touch -d '2026-01-03' peer/messages/bad.json
	touch -d '2026-01-02' peer/messages/empty.json
	message .hidden.json
	ln -s "notice-$NID.json" peer/messages/link.json
	mkdir peer/messages/dir.json
	message other.txt
	run -0 call list_messages '{}'
	assert_output "id: 2c
  (unreadable: contract_version '3.1' refused)

id: 1c
  (unreadable: contract_version '' refused)

id: bad
  (unreadable: not JSON: line 1: not JSON)

id: empty
  date:    ?
  from:    (unknown)
  subject: (no subject)
  preview: (no plain-text body)

id: $NID
  date:    2026-01-02T03:04:05Z
  from:    alpha@fleet.example
  subject: count rows
  preview: Count the rows. Then report.end
  attachments: 4 (1 readable)"
}

@test "n is how many at most" {
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		message "notice-$i.json"
	done
	run -0 texts list_messages '{}' '{"n":3}' '{"n":0}' '{"n":null}' '{"n":1000}' '{"more":1}'
	assert_equal "$(jq -r 'split("\n\n") | length' <<<"$output" | xargs)" "10 3 10 10 12 10"
	run -0 texts list_messages '{"n":-1}' '{"n":1.5}' '{"n":"x"}' '{"n":true}' '{"n":[]}' '{"n":1e300}'
	assert_equal "$(sort -u <<<"$output")" "error \"list_messages: 'n' must be a whole number, 0 or more\""
}

@test "an empty directory and one that is not there are no errors" {
	run -0 call list_messages '{}'
	assert_output "No spooled messages."
	rmdir peer/messages
	run -0 call list_messages '{}'
	assert_output "No spooled messages (spool dir does not exist)."
}

@test "a listing follows what happens in the directory, also when it is replaced" {
	coproc SERVER { inbox-mcp-vol; }
	ids() {
		echo '{"id":1,"method":"tools/call","params":{"name":"list_messages"}}' >&"${SERVER[1]}"
		read -r line <&"${SERVER[0]}"
		jq -r '[.result.content[0].text | scan("id: ([^\n]*)")[0]] | join(" ")' <<<"$line"
	}
	assert_equal "$(ids)" ""
	message b.json && sleep 0.02 && message a.json
	assert_equal "$(ids)" "a b"
	sleep 0.02 && message b.json
	assert_equal "$(ids)" "b a"
	mv peer/messages/a.json peer/messages/c.json
	assert_equal "$(ids)" "b c"
	rm peer/messages/b.json
	assert_equal "$(ids)" "c"
	mv peer/messages peer/old && mkdir peer/messages
	message d.json
	assert_equal "$(ids)" "d"
	rm -r peer/messages
	assert_equal "$(ids)" ""
	mkdir peer/messages && message e.json
	assert_equal "$(ids)" "e"
}

@test "a message is shown cleaned, with its banner, its attachments and its id" {
	with_files
	call read_message "{\"id\":\"$NID\"}" >out
	unbanner out
	run -0 cat out
	assert_output "From:    alpha@fleet.example
To:      beta@fleet.example
Date:    2026-01-02T03:04:05Z
Subject: count rows
Id:      $NID

BANNER

Attachments:
  [0] rows.csv — text/csv, 15 bytes, disposition=clean (read_attachment gets it)
  [1] big.bin — application/octet-stream, 9 bytes, disposition=stripped (withheld by policy, no bytes)
  [2] x — application/octet-stream, 0 bytes, disposition=clean (its bytes are not published)
  [3] (unnamed) — application/octet-stream, 0 bytes, disposition=unscanned (its bytes are not published)

Count the rows.
	Then report.end"
}

@test "values of other kinds and hostile names are shown harmless" {
	message "notice-$NID.json" '.from = 7 | .to = ["a"] | .cc = "c\u0085c" | .date = null | .subject = "a\nb\u2028c\u0000d" |
	    .body_text = "x\u0000y\u001b[31m\u0009z" | .attachments = [1]'
	call read_message "{\"id\":\"$NID\"}" >out
	unbanner out
	run -0 cat out
	assert_output "From:    (unknown)
To:      (none)
Cc:      c c
Date:    ?
Subject: a b c d
Id:      $NID

BANNER

xy[31m	z"
}

@test "an id names notice-ID.json before ID.json, and nothing else" {
	message notice-x.json '.subject = "first"'
	message x.json '.subject = "second"'
	message y.json '.subject = "legacy"'
	call read_message '{"id":"x"}' | grep -q 'Subject: first'
	call read_message '{"id":"notice-x"}' | grep -q 'Subject: first'
	call read_message '{"id":"y"}' | grep -q 'Subject: legacy'
	ln -s /etc/hostname peer/messages/z.json
	run -1 call read_message '{"id":"z"}'
	assert_output "read_message: id z: a symbolic link"
	run -1 call read_message '{"id":"none"}'
	assert_output "read_message: id none is not resolved: there is neither notice-none.json nor none.json"
	ids=()
	for id in '"../x"' '"a/b"' '".x"' '"-x"' '""' '"a..b"' '"x\n"' '"x\u0000"' 7 null '["x"]' "\"$(printf '%0201d' 0)\""; do
		ids+=("{\"id\":$id,\"message_id\":$id,\"index\":0}")
	done
	for tool in read_message read_attachment; do
		run -0 texts "$tool" "${ids[@]}"
		assert_equal "$(grep -c '^error "read_message: the id must be one that list_messages shows, not ' <<<"$output")" "${#ids[@]}"
	done
	run -1 call read_message '{}'
	assert_output "read_message: there is no id: give one that list_messages shows"
}

@test "a document that is no message is an error that says why" {
	head -c 8388609 /dev/zero | tr '\0' ' ' >peer/messages/big.json
	echo '[]' >peer/messages/list.json
	printf '{"contract_version":"2","a":%s1%s}' "$(printf '[%.0s' {1..100})" "$(printf ']%.0s' {1..100})" >peer/messages/deep.json
	mkfifo peer/messages/fifo.json
	message 3.json '.contract_version = "3"'
	for pair in 'big:too large' 'list:not an object' 'deep:not JSON: line 1: nested too deep' 'fifo:Invalid argument' \
	    "3:contract_version '3' refused"; do
		run -1 call read_message "{\"id\":\"${pair%%:*}\"}"
		assert_output "read_message: id ${pair%%:*}: ${pair#*:}"
	done
	run -0 call list_messages '{}'		# and one of them is not in the way of the others
	assert_line "id: list"
}

@test "an attachment is checked, its place told, and a short text shown" {
	with_files
	call read_attachment "{\"message_id\":\"$NID\",\"index\":0}" >out
	unbanner out
	run -0 cat out
	assert_output "BANNER
filename:   rows.csv
media_type: text/csv
size_bytes: 15
sha256:     3c945046ce5433af5724305f95b0ce5b6bd3dd9eac2a755263789faa3a46e25a
path:       $PWD/peer/notices/$NID.attachments/0
(clean says that the runtime vouches for it; nothing was scanned)

alpha,1
beta,2"
}

@test "an attachment that is not what was stated is an error" {
	with_files
	bytes=peer/notices/$NID.attachments/0
	attachment() { run -1 call read_attachment "{\"message_id\":\"$NID\",\"index\":$1}"; }
	attachment 1
	assert_output "read_attachment: its bytes are withheld; disposition=stripped"
	attachment 2
	assert_output "read_attachment: its bytes are withheld; disposition=clean"
	attachment 4
	assert_output "read_attachment: index 4 is not in 0..3"
	for index in -1 0.5 true '"0"' null; do
		attachment "$index"
		assert_output "read_attachment: 'index' must be a whole number, 0 or more"
	done
	printf 'alpha,1\nbeta,3\n' >"$bytes"
	attachment 0
	assert_output "read_attachment: its bytes do not have the digest that was stated"
	printf 'x' >>"$bytes"
	attachment 0
	assert_output "read_attachment: its bytes do not have the size that was stated"
	printf 'alpha,1\nbeta,2\n' >real
	ln real other
	ln -f real "$bytes"
	attachment 0
	assert_output "read_attachment: its bytes cannot be read: Too many links"
	ln -sf ../../../real "$bytes"
	attachment 0
	assert_output "read_attachment: its bytes cannot be read: Too many levels of symbolic links"
	rm "$bytes"
	mkfifo "$bytes"
	attachment 0
	assert_output "read_attachment: its bytes cannot be read: Invalid argument"
	mv "peer/notices/$NID.attachments" peer/elsewhere
	ln -s ../elsewhere "peer/notices/$NID.attachments"
	attachment 0
	assert_output "read_attachment: its bytes cannot be read: Too many levels of symbolic links"
}

@test "a digest, a reference or a disposition that is not exactly its form publishes nothing" {
	with_files
	for change in '.sha256 += "\n"' '.sha256 |= ascii_upcase' '.content_ref += "\n"' '.content_ref = "y.attachments/0"' \
	    '.content_ref |= sub("/0$"; "/00")' '.content_ref |= sub("/0$"; "/1")' '.disposition = "Clean"' \
	    'del(.sha256)' '.content_ref = 7'; do
		jq -c ".attachments[0] |= ($change)" "peer/messages/notice-$NID.json" >peer/messages/notice-x.json
		sed -i 's/"content_ref":"'"$NID"'/"content_ref":"x/' peer/messages/notice-x.json
		mkdir -p peer/notices/x.attachments
		cp "peer/notices/$NID.attachments/0" peer/notices/x.attachments/0
		run -1 call read_attachment '{"message_id":"x","index":0}'
		assert_line --partial "read_attachment: its bytes are withheld; disposition=" || fail "$change: $output"
	done
}

@test "bytes that are no text, or more than 64 KiB of it, are not shown" {
	for content in '\377\376' 'a\0b' "$(printf '%065537d' 1)"; do
		printf "$content" >"peer/notices/$NID.attachments/0"
		sha=$(sha256sum <"peer/notices/$NID.attachments/0" | cut -c1-64)
		size=$(wc -c <"peer/notices/$NID.attachments/0")
		message "notice-$NID.json" '.attachments = [{filename: "f", media_type: "text/plain", size_bytes: '"$size"',
		    disposition: "clean", content_ref: ($nid + ".attachments/0"), sha256: "'"$sha"'"}]'
		run -0 call read_attachment "{\"message_id\":\"$NID\",\"index\":0}"
		assert_equal "${lines[-1]}" "(clean says that the runtime vouches for it; nothing was scanned)"
	done
}

@test "a tree that is really mounted read-only is served" {
	bwrap --ro-bind / / true 2>/dev/null || skip "bwrap cannot make a namespace here"
	with_files
	echo '{"id":1,"method":"tools/call","params":{"name":"read_attachment","arguments":{"message_id":"'$NID'","index":0}}}' >in
	run -0 bwrap --ro-bind / / --dev /dev --proc /proc "$BIN/inbox-mcp-vol" <in
	assert_output --partial 'beta,2'
}

@test "every golden fixture of a message is listed or refused as its class says" {
	[ -n "${AMAP_SPEC_DIR-}" ] || skip "AMAP_SPEC_DIR is not set"
	cp "$AMAP_SPEC_DIR"/fixtures/valid/message-*.json peer/messages/
	run -0 call list_messages '{}'
	refute_output --partial unreadable
	assert_equal "$(grep -c '^id: ' <<<"$output")" 2
}
