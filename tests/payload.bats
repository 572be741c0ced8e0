# The payload in an image of another distribution: no libc of this host's, none of
# its libraries, a shell and tools that are not its own.
load common
load sandbox

@test "every library that a payload program loads is the payload's own, and all that it lists are needed" {
	installed_payload payload
	(cd payload && find lib -type f ! -name ld.so | sort) >listed
	for program in payload/* payload/bin/* payload/lib/lib*; do
		readelf -d "$program" 2>/dev/null | sed -n 's,.*(NEEDED).*\[\(.*\)\],lib/\1,p'
	done | grep -v '^lib/ld-linux' | sort -u >needed
	run -0 diff listed needed
	for program in payload/* payload/bin/*; do
		case $(head -c 4 "$program" 2>/dev/null | tr -d '\0') in
		?ELF) run -0 readelf -lW "$program"
		    assert_output --partial '[Requesting program interpreter: /opt/amap/payload/lib/ld.so]' ;;
		esac
	done
}

@test "every payload program starts beside another libc, whatever the environment says of libraries" {
	bwrap --ro-bind / / true 2>/dev/null || skip "bwrap cannot make a namespace here"
	musl_tree
	installed_payload payload
	mkdir -p tree/opt/amap/payload
	strange() {
		bwrap --ro-bind tree / --ro-bind payload /opt/amap/payload --proc /proc --dev /dev --tmpfs /tmp \
		    --setenv LD_LIBRARY_PATH /lib --setenv ASAN_OPTIONS detect_leaks=0 -- "$@"
	}
	run strange "/lib/$(basename /lib/ld-musl-*.so.1)"
	assert_output --partial 'musl libc'
	n=0
	for program in payload/[a-z]* payload/bin/*; do
		name=${program##*/}
		[ -e "$BIN/$name" ] || continue
		run -0 strange "/opt/amap/${program}" --version
		assert_output --regexp "^$name [0-9.]+$"
		n=$((n + 1))
	done
	assert_equal "$n" 9
	# The same program with the host's libraries cannot.
	cp "$BIN/inbox-submit" payload/
	run ! strange /opt/amap/payload/inbox-submit --version
	run -0 strange sh -c 'cd /tmp && MAILBOX_ROOT_DIR=/tmp /opt/amap/payload/bin/inbox-submit submit --to ~nobody@b.example --body x && cat dropbox/req-00000000.json'
	assert_line --partial '"~nobody@b.example"'
}

@test "an embedded sandbox of another libc takes a delegation and answers it" {
	not_sanitized "a sanitized amap-confine is not static, so it cannot start in a foreign root"
	musl_tree
	fleet alpha
	installed_payload "$home/payload"
	install -m 0755 "$TOP/examples/agents/files.sh" "$home/payload/agent"
	lanes=$home/instances/alpha
	mkdir -p "$lanes"/inbox/notices "$lanes"/inbox/messages "$lanes"/peer/notices "$lanes"/peer/messages
	[ "$(id -u)" -ne 0 ] || chown -R "$run_as" "$home"
	amap-render-policy --member alpha --run-as "$run_as" <members >alpha.yaml
	run -0 amap-sandbox sandbox create --name alpha --detach --no-tty --from ./tree --policy alpha.yaml \
	    --driver-config-json "$(driver alpha)" --env AMAP_INBOX_DIR=/opt/amap/lanes/inbox \
	    --env AMAP_PEER_DIR=/opt/amap/lanes/peer --env AMAP_OUTBOX_DIR=/opt/amap/lanes/outbox \
	    --env AMAP_SELF_ADDRESS=alpha@agents.example.org -- /opt/amap/payload/amap-main
	id=0123456789abcdef0123456789abcdef
	printf '{"contract_version":"2","notice_id":"%s","id":"m-1","date":"2026-10-05T09:00:00Z","from":"beta@agents.example.org",
	    "to":"alpha@agents.example.org","subject":"s","body_text":"Please list your files."}' $id >"$lanes/peer/messages/notice-$id.json"
	printf '{"contract_version":"2","notice_id":"%s","ts":"2026-10-05T09:00:00Z","kind":"peer","message":{"id":"m-1",
	    "from":"beta@agents.example.org","subject":"s","preview":"p","mailbox":"peer"}}' $id >"$lanes/peer/notices/.n"
	mv "$lanes/peer/notices/.n" "$lanes/peer/notices/notice-$id.json"
	for _ in $(seq 200); do
		[ ! -e "$lanes/outbox/ext/claude-code/outcomes/peer-$id.json" ] || break
		sleep 0.05
	done
	run -0 jq -r '.outcome, .detail' "$lanes/outbox/ext/claude-code/outcomes/peer-$id.json"
	assert_output "delivered
receipt: delivered"
	run -0 jq -r '.draft | .reply_to_message_id, .body_text' "$lanes/outbox/req-00000000.json"
	assert_output "m-1
The files of my workspace:
notes.txt"
	run -0 inside alpha /opt/amap/payload/bin/amap-probe-running inbox-delivery
	run -0 inside alpha /opt/amap/payload/bin/amap-probe-write /opt/amap/lanes/inbox/x
	assert_output EROFS
}

@test "the payload's texts name only variables that a sandbox gets, and files that it holds and no agent can write" {
	amap-fleet "$TOP/examples/fleet.json" | amap-lanes --home /srv/amap >members
	amap-render-create --member alpha <members >create
	grep -o -- '--env AMAP_[A-Z_]*' create | cut -d' ' -f2 | sort >given
	cd "$TOP/payload"
	grep -ohE '\$\{?AMAP_[A-Z_]+' INBOX-POLICY.md mcp-servers.json | tr -d '${' | sort -u >"$BATS_TEST_TMPDIR/named"
	cd "$BATS_TEST_TMPDIR"
	run -0 comm -13 given named
	assert_output ""
	[ -s named ]
	head -n 1 members | jq -r '.rows[] | select(.read_only) | .target' >read_only
	cut -f2 "$TOP/payload/payload.list" | sed 's,^,/opt/amap/payload/,' >held
	echo /opt/amap/roster/roster.json >>held
	{ grep -ohE '/opt/amap/[A-Za-z0-9./_-]*[A-Za-z0-9_-]' "$TOP"/payload/*.md "$TOP"/payload/*.json; tr ' ' '\n' <create | grep ^/opt/amap/payload; } | sort -u >paths
	while IFS= read -r path; do
		run -0 grep -Fxq "$path" held
		run -0 grep -Fxq "$(cut -d/ -f1-4 <<<"$path")" read_only
	done <paths
	[ "$(wc -l <paths)" -ge 6 ]
}

@test "claude is told of all tools at once, takes messages, and asks nothing" {
	run -0 jq -cS . "$TOP/payload/claude-settings.json"
	assert_output '{"crossSessionInbound":"accept","env":{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC":"1"},"hooks":{"SessionStart":[{"hooks":[{"command":"/opt/amap/payload/claude-session-start","type":"command"}]}]},"skipDangerousModePermissionPrompt":true,"tui":"default"}'
	run -0 jq -r '.mcpServers | to_entries[] | [.key, (.value.command | ltrimstr("/opt/amap/payload/bin/")), (.value.args // [] | join(" ")), .value.alwaysLoad, (.value.env | to_entries | map("\(.key)=\(.value)") | join(" "))] | map(tostring) | join(" | ")' "$TOP/payload/mcp-servers.json"
	assert_output 'inbox | inbox-mcp-vol |  | true | INBOX_MESSAGE_DIR=${AMAP_INBOX_DIR}/messages INBOX_LANE=mail
delegation | inbox-mcp-vol |  | true | INBOX_MESSAGE_DIR=${AMAP_PEER_DIR}/messages INBOX_LANE=peer
inbox-submit | inbox-submit | mcp | true | OUTBOX_DIR=${AMAP_OUTBOX_DIR}'
	# What a turn brings is matched by these words, and they are the last thing to know about a delegation.
	for words in '-- added by inbox-delivery --' 'message id:' SendMessage in_reply_to 'not a teammate' ambiguous; do
		run -0 grep -qF -- "$words" "$TOP/payload/INBOX-POLICY.md"
	done
}
