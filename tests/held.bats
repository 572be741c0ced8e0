load common
load router

held() {
	amap-held --config home/router.json "$@"
}

# A held task from beta to alpha, and a router that runs.
setup_held() {
	fleet '"peer_senders":{"alpha":[],"beta":["alpha"]}' alpha beta
	start_router 60
	request beta 7 alpha '.draft.subject = "new\u001b[31m" | .draft.subject = "new work" | .draft.body_text = "line one\nline \u001b two"'
	eventually test -s home/instances/beta/outbox/results/7.json
	assert_equal "$(verdict beta 7)" "queued_for_human recipient_not_allowlisted"
}

@test "amap-held: help, version, usage" {
	usage_is_sound amap-held
}

@test "list names each held request, oldest first, and show quotes what the sender wrote" {
	setup_held
	touch -d '2026-01-02T03:04:05Z' home/router-state/beta/held/req-7.json
	request beta 8 alpha
	eventually test -s home/instances/beta/outbox/results/8.json
	run -0 held list
	assert_line --index 0 "beta  7  2026-01-02T03:04:05Z  recipient_not_allowlisted  alpha@fleet.example  new work"
	assert_equal "${#lines[@]}" 2
	run -0 held list --json
	assert_equal "$(jq -c '[.req_id, .to, .attachments, .reason_code]' <<<"${lines[0]}")" \
	    '["7",["alpha@fleet.example"],0,"recipient_not_allowlisted"]'
	assert_equal "${lines[2]}" '{"end":2}'
	run -0 held show beta 7
	assert_line "| line one"
	assert_line '| line \x1b two'
}

@test "release as a task delivers the held bytes once, and tells the sender" {
	setup_held
	before=$(cat home/instances/beta/outbox/results/7.json)
	run -0 held release beta 7 --as task
	assert_output "beta 7: released"
	assert_equal "$(notices alpha peer)" 1
	notice=$(cat home/instances/alpha/peer/notices/notice-*.json)
	assert_equal "$(jq -r '.message.from + " " + .message.subject' <<<"$notice")" "beta@fleet.example new work"
	# The reply to it is bound as to any task.
	request alpha 1 beta ".in_reply_to = \"$(jq -r .notice_id <<<"$notice")\""
	eventually test -s home/instances/alpha/outbox/results/1.json
	assert_equal "$(verdict alpha 1)" "accepted peer_routed"

	assert_equal "$(cat home/instances/beta/outbox/results/7.json)" "$before"
	assert_equal "$(jq -r '.message | .from, .subject' home/instances/beta/inbox/notices/notice-*.json)" \
	    $'amap.router@fleet.example\nHeld request 7: released'
	assert_equal "$(jq -r 'select(.event == "held_released") | .as + " " + .recipients[0]' home/router-state/beta/audit/log.jsonl)" \
	    "task alpha@fleet.example"
	[ ! -e home/router-state/beta/held/req-7.json ]

	run -1 --separate-stderr held release beta 7 --as task
	assert_equal "$stderr" "amap-held: beta 7: no such request is held"
	assert_equal "$(notices alpha peer)" 1
	documents_are_sound
}

@test "root decides where another user's router keeps what waits" {
	[ "$(id -u)" -eq 0 ] || skip "needs root to run the router as another user"
	fleet '"peer_senders":{"alpha":[],"beta":["alpha"]}' alpha beta
	request beta 7 alpha
	chown -R 1000:1000 .
	setpriv --reuid 1000 --regid 1000 --clear-groups "$BIN/amap-router" --config home/router.json run --interval 60 >log 2>&1 3>&- &
	router=$!
	eventually test -s home/instances/beta/outbox/processed/req-7.json
	request beta 8 alpha
	eventually test -s home/instances/beta/outbox/results/8.json
	run -0 held release beta 8 --as task
	assert_output "beta 8: released"
	assert_equal "$(notices alpha peer)" 1
	assert_equal "$(find home/router-state ! -user 1000)" ""
	assert_equal "$(jq -r .decision home/router-state/beta/decided/req-8.json)" release
}

@test "release as mail goes to the inbox; deny delivers nothing and says so" {
	setup_held
	request beta 8 alpha
	eventually test -s home/instances/beta/outbox/results/8.json
	run -0 held release beta 7 --as mail
	assert_equal "$(notices alpha inbox) $(notices alpha peer)" "1 0"
	run -0 held deny beta 8
	assert_output "beta 8: denied"
	assert_equal "$(notices alpha inbox) $(notices alpha peer)" "1 0"
	assert_equal "$(cat home/instances/beta/inbox/notices/*.json | jq -r .message.subject | sort)" \
	    $'Held request 7: released\nHeld request 8: denied'
	assert_equal "$(jq -r .decision home/router-state/beta/decided/req-8.json)" deny
	run -0 held list
	assert_output ""
	documents_are_sound
}

@test "a held request keeps its sidecar bytes, and they are delivered on release" {
	fleet '"peer_senders":{"alpha":[],"beta":["alpha"]}' alpha beta
	start_router 60
	mkdir home/instances/beta/outbox/req-9.attachments
	printf hello >home/instances/beta/outbox/req-9.attachments/0
	request beta 9 alpha ".draft.attachments = [{filename: \"a.txt\", media_type: \"text/plain\", size_bytes: 5, sha256: \"$(printf hello | sha256sum | cut -d' ' -f1)\"}]"
	eventually test -s home/instances/beta/outbox/results/9.json
	eventually test ! -e home/instances/beta/outbox/req-9.attachments
	assert_equal "$(cat home/router-state/beta/held/req-9.attachments/0)" hello
	run -0 held show beta 9
	assert_line "file:    a.txt"
	run -0 held release beta 9 --as task
	assert_equal "$(cat home/instances/alpha/peer/notices/*.attachments/0)" hello
	assert_equal "$(ls home/router-state/beta/held)" ""
	documents_are_sound
}

@test "what cannot be released is refused by name, and stays held" {
	setup_held
	request beta 8 gamma,alpha
	request beta 9 alpha
	eventually test -s home/instances/beta/outbox/results/9.json
	select_members beta
	kill -HUP "$router"
	eventually grep -q 'instance removed: alpha' log
	run -1 --separate-stderr held release beta 7 --as task
	assert_equal "$stderr" "amap-held: beta 7: a recipient is no member of this fleet"
	run -1 --separate-stderr held release beta 99 --as task
	assert_equal "$stderr" "amap-held: beta 99: no such request is held"
	run -2 --separate-stderr held release beta ../7 --as task
	assert_equal "$stderr" "amap-held: ../7: not a request's id"
	[ -e home/router-state/beta/held/req-7.json ]
	stop_router
	touch -d '1 hour ago' home/router-state/status.json
	jq -c '.last_poll_ts = "2026-01-01T00:00:00Z"' home/router-state/status.json >s && mv s home/router-state/status.json
	run -2 --separate-stderr held deny beta 7
	[[ $stderr == *"no router that would carry it out"* ]]
}

@test "a decision about other bytes than are held is refused" {
	setup_held
	printf ' ' >>home/router-state/beta/held/req-7.json
	mkdir -p home/router-state/.decisions/answers
	printf '{"schema":1,"instance":"beta","req_id":"7","decision":"release","as":"task","digest":"%064d"}' 0 >home/router-state/.decisions/.t
	mv home/router-state/.decisions/.t 'home/router-state/.decisions/beta~7.json'
	eventually test -s 'home/router-state/.decisions/answers/beta~7.json'
	assert_equal "$(jq -c . 'home/router-state/.decisions/answers/beta~7.json')" \
	    '{"done":false,"why":"the held bytes are not those that were decided about"}'
	assert_equal "$(notices alpha peer)" 0
}

@test "B56 the number that waits in the status is the number of the lines that list prints, whatever else lies there" {
	setup_held
	request beta 8 alpha
	eventually test -s home/instances/beta/outbox/results/8.json
	cd home/router-state/beta/held
	echo junk >note.txt
	echo '{}' >req-a.b.json
	echo '{' >req-9.json
	ln -s req-7.json req-link.json
	mkdir req-dir.json req-7.attachments
	mkfifo req-fifo.json
	cd "$place"
	kill -HUP "$router"
	eventually status_is .polls 2
	run -0 --separate-stderr held list
	assert_equal "$(jq .instances.beta.held home/router-state/status.json)" "${#lines[@]}"
	assert_equal "$(sed -n 's/^beta  \([^ ]*\) .*/\1/p' <<<"$output" | sort | xargs)" "7 8 9"
}
