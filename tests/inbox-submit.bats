load common

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	export OUTBOX_DIR=$PWD/outbox
}

# texts TOOL ARGUMENTS...: what one server answers to the calls, a line each, "error" before an error's.
texts() {
	local tool=$1
	shift
	for arguments in "$@"; do
		printf '{"id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n' "$tool" "${arguments//$'\n'/}"
	done | inbox-submit mcp | jq -r '.result | (if .isError then "error " else "" end) + .content[0].text'
}

@test "usage, version, and a full standard output" {
	usage_is_sound inbox-submit
	for words in '' 'nosuch' 'submit' 'submit --body x' 'submit --to a@b more' 'submit-result' 'submit-result 1 2' 'mcp x' 'peers a b'; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr inbox-submit $words </dev/null
		assert_equal "$output/${stderr:0:19}" "/usage: inbox-submit"
	done
}

@test "without an outbox there is nothing to do" {
	run -1 env -u OUTBOX_DIR inbox-submit submit --to a@b --body x
	assert_output "inbox-submit: no outbox: set OUTBOX_DIR or MAILBOX_ROOT_DIR"
	run -0 env -u OUTBOX_DIR MAILBOX_ROOT_DIR="$PWD/root" inbox-submit submit --to a@b --body x
	assert_file_exists root/dropbox/req-00000000.json
}

@test "a request has exactly the members of the contract, and is sound" {
	run -0 --separate-stderr inbox-submit submit --to ' a@b, ,c@d' --cc e@f --subject s --body $'b\n' --reply-to-id r
	assert_output "Submitted request 00000000 to the relay drop-box ($OUTBOX_DIR/req-00000000.json).
Result will appear at: $OUTBOX_DIR/results/00000000.json"
	run -0 jq -c '.ts |= test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}\\+00:00$")' outbox/req-00000000.json
	assert_output '{"contract_version":"2","req_id":"00000000","ts":true,"draft":{"to":["a@b","c@d"],"cc":["e@f"],"subject":"s","body_text":"b\n","reply_to_message_id":"r"}}'
	run -0 env MAILBOX_AGENT_ID=' beta ' inbox-submit submit --to a@b --body b
	run -0 jq -c 'del(.ts)' outbox/req-00000001.json
	assert_output '{"contract_version":"2","req_id":"00000001","draft":{"to":["a@b"],"cc":[],"subject":"","body_text":"b","reply_to_message_id":null},"agent_id":"beta"}'
	run -0 amap-validate --class submit-request outbox/*.json
	assert_equal "$(stat -c %a outbox/req-00000000.json)" 644
	run -0 find outbox -name '*.tmp'
	assert_output ""
}

@test "the text comes from standard input where there is no --body" {
	printf 'from a pipe\n' | inbox-submit submit --to a@b
	run -0 jq -j .draft.body_text outbox/req-00000000.json
	assert_output "from a pipe"
	run -1 inbox-submit submit --to a@b </dev/null
	assert_output "inbox-submit: submit: 'body_text' must be a string that is not empty"
	run -1 script -qec "inbox-submit submit --to a@b" /dev/null </dev/null
	assert_output --partial "standard input is a terminal"
	run -1 sh -c 'inbox-submit submit --to a@b <&-'
	assert_output "inbox-submit: standard input: Bad file descriptor"
}

@test "every argument is checked, in order, before anything is written" {
	run -0 texts submit '{}' '{"to":"a@b"}' '{"to":["a@b",7],"body_text":"x"}' '{"to":[""," "],"body_text":"x"}' \
	    '{"to":["a@b"],"cc":"c@d","body_text":"x"}' '{"to":["a@b"],"cc":[[]],"body_text":"x"}' '{"to":["a@b"],"subject":1,"body_text":"x"}' \
	    '{"to":["a@b"]}' '{"to":["a@b"],"body_text":""}' '{"to":["a@b"],"body_text":["x"]}' '{"to":["a@b"],"body_text":"x","in_reply_to":7}' \
	    '{"to":["a@b"],"body_text":"x","attachments":"f"}'
	assert_output "error submit: 'to' must be a list of addresses
error submit: 'to' must be a list of addresses
error submit: 'to' must be a list of addresses
error submit: 'to' names nobody
error submit: 'cc' must be a list of addresses
error submit: 'cc' must be a list of addresses
error submit: 'subject' must be a string
error submit: 'body_text' must be a string that is not empty
error submit: 'body_text' must be a string that is not empty
error submit: 'body_text' must be a string that is not empty
error submit: 'in_reply_to' must be a string
error submit: attachments must be a list"
	assert_dir_not_exists outbox
	run -0 texts submit '{"to":["a@b"],"cc":null,"subject":null,"in_reply_to":"","body_text":" ","more":1}'
	assert_output '{"req_id": "00000000", "status": "queued"}'
	run -0 jq -c .draft outbox/req-00000000.json
	assert_output '{"to":["a@b"],"cc":[],"subject":"","body_text":" ","reply_to_message_id":""}'
}

# ---- numbers ----

@test "a number is above all that wait, that were processed and that were answered" {
	mkdir -p outbox/processed outbox/results
	touch outbox/processed/req-00000000.json outbox/results/00000044.json outbox/results/x.json outbox/req-00000001.json \
	    outbox/req-2x.json outbox/99.json outbox/req-9999999999999999999999.json outbox/req-77.attachments
	run -0 texts submit '{"to":["a@b"],"body_text":"x"}'
	assert_output '{"req_id": "00000045", "status": "queued"}'
}

@test "a number is not used again after everything was removed" {
	for want in 00000000 00000001 00000002; do
		run -0 texts submit '{"to":["a@b"],"body_text":"x"}'
		assert_output "{\"req_id\": \"$want\", \"status\": \"queued\"}"
		rm -rf outbox/req-* outbox/processed outbox/results
	done
}

@test "two hundred requests of eight writers have two hundred numbers" {
	for writer in 1 2 3 4 5 6 7 8; do
		for i in {1..25}; do
			printf '{"id":%d,"method":"tools/call","params":{"name":"submit","arguments":{"to":["a@b"],"body_text":"%s.%s"}}}\n' "$i" "$writer" "$i"
		done | inbox-submit mcp >"out.$writer" 3>&- &
	done
	wait
	run -0 sh -c 'jq -r ".result.content[0].text | fromjson.req_id" out.* | sort -u | wc -l'
	assert_output 200
	run -0 sh -c 'cat outbox/req-*.json | jq -r .draft.body_text | sort -u | wc -l'
	assert_output 200
}

@test "a writer that is killed leaves nothing half published, and the next goes on" {
	head -c 20000000 /dev/zero >big
	for after in 0.01 0.02 0.04 0.08 0.16; do
		timeout -s KILL "$after" inbox-submit submit --to a@b --body x --attach big >/dev/null 2>&1 || :
	done
	run -0 inbox-submit submit --to a@b --body x --attach big
	for request in outbox/req-*.json; do
		stem=${request%.json}
		assert_equal "$(jq -r '.draft.attachments[0].sha256' "$request")" "$(sha256sum <"$stem.attachments/0" | cut -c1-64)"
	done
	run -0 sh -c 'inbox-submit submit --to a@b --body y && ls outbox | grep -c "json.tmp$"; :'
	assert_equal "${lines[-1]}" 0
}

@test "an outbox that cannot be written is an error, and leaves nothing" {
	: >file
	run -1 env OUTBOX_DIR="$PWD/file/outbox" inbox-submit submit --to a@b --body x
	assert_output "inbox-submit: submit: $PWD/file/outbox: Not a directory"
	mkdir -p outbox elsewhere
	ln -s "$PWD/elsewhere" outbox/ext
	run -1 inbox-submit submit --to a@b --body x
	assert_output "inbox-submit: submit: ext/claude-code/last-request: Not a directory"
	assert_equal "$(ls elsewhere)" ""
}

@test "a full disk is named, and nothing of the request is left" {
	unshare -rm true 2>/dev/null || skip "no namespaces here"
	mkdir outbox
	head -c 3000000 /dev/zero >big
	run -1 unshare -rm sh -c 'mount -t tmpfs -o size=1m none outbox && inbox-submit submit --to a@b --body x >/dev/null || exit 9
	    inbox-submit submit --to a@b --body x --attach big; rc=$?; find outbox -name "req-*"; exit $rc'
	assert_output "inbox-submit: submit: attachments[0]: No space left on device
outbox/req-00000000.json"
}

# ---- attachments ----

@test "attachments are copied, cleaned, typed, counted and hashed" {
	mkdir sub
	printf 'abc' >report.txt
	: >sub/Empty.TAR.GZ
	ln -s report.txt link
	run -0 texts submit '{"to":["a@b"],"body_text":"x","attachments":["report.txt",
	    {"path":"report.txt","filename":"a/b\tc  d\n.txt"},{"path":"'"$PWD"'/sub/Empty.TAR.GZ"},{"path":"link","media_type":"x/y"},
	    {"path":"link","filename":"\u200b"}]}'
	assert_output --regexp '^\{"req_id": "00000000", "status": "queued", "attachments": 5, "note": "[^"]+"\}$'
	run -0 jq -c '.draft.attachments[] | [.filename, .media_type, .size_bytes, .sha256[0:8]]' outbox/req-00000000.json
	assert_output '["report.txt","text/plain",3,"ba7816bf"]
["a_bc d .txt","text/plain",3,"ba7816bf"]
["Empty.TAR.GZ","application/x-tar",0,"e3b0c442"]
["link","x/y",3,"ba7816bf"]
["(unnamed)","application/octet-stream",3,"ba7816bf"]'
	run -0 sh -c 'cd outbox/req-00000000.attachments && stat -c "%a %F %s %n" * && stat -c %a .'
	assert_output "644 regular file 3 0
644 regular file 3 1
644 regular empty file 0 2
644 regular file 3 3
644 regular file 3 4
755"
	run -0 amap-validate --class submit-request outbox/req-00000000.json
}

@test "an attachment that is not fit is named by its place, and nothing is published" {
	mkfifo fifo
	printf 'abcd' >four
	files() { printf '{"to":["a@b"],"body_text":"x","attachments":%s}' "$1"; }
	run -0 env INBOX_ATTACH_MAX_BYTES=3 bash -c 'true'
	export INBOX_ATTACH_MAX_BYTES=3
	run -0 texts submit "$(files '["none"]')" "$(files '["four"]')" "$(files '[7]')" "$(files '[{}]')" "$(files '[{"path":""}]')" \
	    "$(files '[{"path":"four","content_ref":"x"}]')" "$(files '[{"path":"four","filename":7}]')" "$(files '["a\u0000b"]')" \
	    "$(files '["fifo"]')" "$(files '["."]')" "$(files '["~/x"]')" "$(files "[$(printf '"four",%.0s' {1..16})\"four\"]")"
	assert_output "error submit: attachments[0]: No such file or directory
error submit: attachments[0]: four: is larger than the limit for one attachment
error submit: attachments[0]: is neither a path nor an object
error submit: attachments[0]: has no path
error submit: attachments[0]: has no path
error submit: attachments[0]: may hold path, filename and media_type only
error submit: attachments[0]: path, filename and media_type must be strings without a NUL
error submit: attachments[0]: path, filename and media_type must be strings without a NUL
error submit: attachments[0]: fifo: is no regular file
error submit: attachments[0]: .: is no regular file
error submit: attachments[0]: No such file or directory
error submit: attachments: 17 files, and at most 16 can go with one request"
	assert_dir_not_exists outbox
}

@test "what an interrupted writer left at a name is cleared, and a link there is not followed" {
	mkdir -p outbox/req-00000000.attachments keep
	touch outbox/req-00000000.attachments/5 keep/me
	printf x >f
	run -0 inbox-submit submit --to a@b --body x --attach f
	assert_output --partial "Attachments copied: 1"
	assert_equal "$(ls outbox/req-00000000.attachments)" 0
	ln -s ../keep outbox/req-00000001.attachments
	run -0 inbox-submit submit --to a@b --body x --attach f
	assert_equal "$(ls keep)" me
	assert_equal "$(ls outbox/req-00000001.attachments)" 0
}

# ---- results ----

@test "a result is pending until there is one, and is shown as it is" {
	mkdir -p outbox/results
	echo '{"outcome":"accepted","b":1,"a":[]}' >outbox/results/1.json
	echo '{"attestation":{"form":"verifiable"}}' >outbox/results/2.json
	echo '{"attestation":{"form":"self-stamp"}}' >outbox/results/3.json
	echo '{"attestation":{}}' >outbox/results/4.json
	echo '7' >outbox/results/5.json
	printf '{' >outbox/results/6.json
	printf '\377' >outbox/results/7.json
	mkdir outbox/results/8.json
	ln -s 1.json outbox/results/9.json
	mkfifo outbox/results/10.json
	run -0 texts submit_result '{"req_id":"0"}' '{"req_id":"1"}' '{"req_id":"2"}' '{"req_id":"3"}' '{"req_id":"4"}' '{"req_id":"5"}' \
	    '{"req_id":"6"}' '{"req_id":"7"}' '{"req_id":"8"}' '{"req_id":"9"}' '{"req_id":"../1"}' '{"req_id":1}' '{}'
	assert_output 'pending
{
  "outcome": "accepted",
  "b": 1,
  "a": []
}
attestation: verifiable
{
  "attestation": {
    "form": "verifiable"
  }
}
attestation: self-stamp (put on by the runtime; to a stranger it proves nothing)
{
  "attestation": {
    "form": "self-stamp"
  }
}
{
  "attestation": {}
}
7
error submit_result: results/6.json: line 1: an object whose key is no string
error submit_result: results/7.json: line 1: not JSON
pending
error submit_result: results/9.json: Too many levels of symbolic links
error submit_result: '"'req_id'"' must be the number that submit answered
error submit_result: '"'req_id'"' must be the number that submit answered
error submit_result: '"'req_id'"' must be the number that submit answered'
	run -0 inbox-submit submit-result 0
	assert_output pending
	run -0 timeout 60 inbox-submit submit-result 10
	assert_output pending
	run -1 inbox-submit submit-result ../1
}

# ---- peers ----

roster() {
	mkdir -p roster
	jq -n '{contract_version: "2", router: "amap.router@fleet.example", written_at: "2026-01-02T03:04:05Z", interval_s: 5,
	    members: [{address: "alpha@fleet.example", state: "admitted"}, {address: "Beta@fleet.example", state: "admitted"},
	    {address: "beta-old@fleet.example"}, {address: "no address"}, 7, {}, {address: "gamma@fleet.example", state: 3}]} | '"${1:-.}" \
	    >roster/roster.json
	export AMAP_ROSTER_DIR=$PWD/roster AMAP_SELF=beta@fleet.example
}

@test "peers tells who matches best, and what is known about the list" {
	roster
	run -0 texts peers '{}'
	assert_equal "$(jq -c 'del(.age_s)' <<<"$output")" '{"query":"","members":[{"address":"alpha@fleet.example","state":"admitted"},{"address":"Beta@fleet.example","state":"admitted","self":true},{"address":"beta-old@fleet.example","state":null},{"address":"gamma@fleet.example","state":null}],"ambiguous":false,"written_at":"2026-01-02T03:04:05Z","interval_s":5,"skipped_entries":3}'
	matches() {
		run -0 texts peers "{\"query\":\"$1\"}"
		assert_equal "$1: $(jq -r '[(.members[].address | split("@")[0]), .ambiguous] | join(" ")' <<<"$output")" "$1: $2"
	}
	matches ' BETA ' 'Beta false'
	matches beta@fleet.example 'Beta false'
	matches be 'Beta beta-old true'
	matches a 'alpha false'
	matches ta 'Beta beta-old true'
	matches OLD 'beta-old false'
	matches nobody false
	matches fleet false
}

@test "the age is told for every form of RFC 3339, else null" {
	for pair in '2026-01-02T03:04:05Z:true' '2026-01-02t03:04:05.5z:true' '2026-01-02 03:04:05+00:00:true' '2026-01-02T03:04:05:false' \
	    'yesterday:false' '2026-01-02T03:04:05+0000:false' '2099-01-01T00:00:00Z:true'; do
		roster ".written_at = \"${pair%:*}\""
		run -0 texts peers '{}'
		assert_equal "$pair $(jq '.age_s != null' <<<"$output")" "$pair ${pair##*:}"
	done
	roster '.written_at = (now - 7200 | strftime("%Y-%m-%dT%H:%M:%S-00:00"))'
	run -0 texts peers '{}'
	run -0 jq '.age_s | . > 7199 and . < 7300' <<<"$output"
	assert_output true
	roster '.written_at = (now | strftime("%Y-%m-%dT%H:%M:%S+02:00")) | del(.interval_s)'
	run -0 texts peers '{}'
	run -0 jq -c '[(.age_s > 7199 and .age_s < 7300), .interval_s]' <<<"$output"
	assert_output '[true,null]'
}

@test "every reason why the members are not known is told apart from an empty fleet" {
	export AMAP_ROSTER_DIR=$PWD/roster
	error() {	# EXPECTED
		run -0 texts peers "${2:-{\}}"
		assert_output "error peers: $1"
	}
	error "'query' must be a string" '{"query":7}'
	error "$PWD/roster/roster.json does not exist: who the members are is UNKNOWN now, which is not the same as nobody"
	roster '.contract_version = "3.0"'
	error "$PWD/roster/roster.json: its contract_version is not understood: only major 2 is"
	roster '.members = {}'
	error "$PWD/roster/roster.json: it has no list of members"
	roster '[]'
	error "$PWD/roster/roster.json: it is no object"
	printf '{"a":1\0}' >roster/roster.json
	error "$PWD/roster/roster.json: line 1: an object without its end"
	head -c 4194305 /dev/zero >roster/roster.json
	error "$PWD/roster/roster.json: File too large"
	export AMAP_SELF=
	error "AMAP_SELF is set and is no address"
	unset AMAP_SELF AMAP_ROSTER_DIR
	error "AMAP_ROSTER_DIR is not set, so it is not known where the roster is; this is not an empty fleet"
	run -1 inbox-submit peers
}

# ---- texts ----

@test "the texts say what an agent must know" {
	run -0 sh -c 'echo "{\"id\":1,\"method\":\"tools/list\"}" | inbox-submit mcp | jq -r ".result.tools[] | select(.name == \"submit\").description, select(.name == \"submit\").inputSchema.properties.in_reply_to.description, select(.name == \"peers\").description"'
	for words in 'ANSWER A DELEGATION' in_reply_to SendMessage 'message id:' 'NOT AN ALLOWLIST' 'never pick'; do
		assert_output --partial "$words"
	done
	run -0 sh -c 'echo "{\"id\":1,\"method\":\"initialize\"}" | inbox-submit mcp | jq -r .result.instructions'
	for words in 'sends nothing' accepted 'in_reply_to' 'message id:' SendMessage scans; do
		assert_output --partial "$words"
	done
	[ "${#output}" -lt 4096 ]
}

@test "every result fixture of the contract is shown whole" {
	[ -n "${AMAP_SPEC_DIR-}" ] || skip "AMAP_SPEC_DIR is not set"
	mkdir -p outbox/results
	for file in "$AMAP_SPEC_DIR"/fixtures/valid/result-*.json; do
		cp "$file" outbox/results/
		name=$(basename "$file" .json)
		run -0 texts submit_result "{\"req_id\":\"$name\"}"
		run -0 jq -e --slurpfile want "$file" '. == $want[0]' <<<"$(sed '/^attestation: /d' <<<"$output")"
	done
}

@test "a flush that fails is told, and then nothing is published" {
	cc -O1 -shared -fPIC -w -D_GNU_SOURCE -o fault.so "$BATS_TEST_DIRNAME/tools/fault.c" -ldl
	mkdir outbox
	failed=0
	echo kept >file
	for n in 1 2 3 4 5 6 7 8; do
		if ! FAULT_ON=fsync FAULT_AT=$n FAULT_DO=EIO LD_PRELOAD=$PWD/fault.so \
		    inbox-submit submit --to a@b --body x --attach file >/dev/null 2>&1; then
			failed=$((failed + 1))
			run -0 find outbox -name 'req-*'
			assert_output ""
		fi
		rm -rf outbox/req-*
	done
	[ "$failed" -ge 4 ]
}

@test "an outbox whose name comes to nothing is refused" {
	X='' OUTBOX_DIR='$X' run -1 inbox-submit submit --to a@b --body x
	assert_output "inbox-submit: submit: : No such file or directory"
}
