load common
load router

setup_tasks() {
	fleet '"peer_senders":{"beta":["alpha"]}'"${1:+,$1}" alpha beta gamma
	once 2>/dev/null
}

# The id of the one notice in a lane.
notice_id() {
	basename "$(echo home/instances/"$1"/"$2"/notices/notice-*.json)" .json | cut -c8-
}

sha() {
	printf '%s' "$1" | sha256sum | cut -d' ' -f1
}

@test "the documents of a delegation have exactly the members that the spec gives them" {
	setup_tasks
	request alpha 1 beta '.draft.body_text = "tab\there, soft\u00adhyphen, line\u2028end\n" + ("x" * 300) | .draft.subject = "Grüße"'
	once
	id=$(notice_id beta peer)
	assert_equal "$(jq -cS 'del(.ts, .message.sender_exposure.window_end, .message.sender_exposure.window_start, .message.preview)' home/instances/beta/peer/notices/notice-"$id".json)" \
	    "{\"contract_version\":\"2\",\"kind\":\"peer\",\"message\":{\"from\":\"alpha@fleet.example\",\"id\":\"$id\",\"mailbox\":\"peer\",\"sender_exposure\":{\"asserted_by\":\"amap.router@fleet.example\",\"external_mail_delivered\":false},\"subject\":\"Grüße\"},\"notice_id\":\"$id\"}"
	assert_equal "$(jq -r .message.preview home/instances/beta/peer/notices/notice-"$id".json)" \
	    "tab here, soft hyphen, line end $(printf 'x%.0s' $(seq 168))"
	assert_equal "$(jq -cS 'del(.date, .body_text)' home/instances/beta/peer/messages/notice-"$id".json)" \
	    "{\"contract_version\":\"2\",\"from\":\"alpha@fleet.example\",\"id\":\"$id\",\"notice_id\":\"$id\",\"subject\":\"Grüße\",\"to\":\"beta@fleet.example\"}"
	assert_equal "$(jq -cS 'del(.ts)' home/router-state/beta/delivered/notice-"$id".json)" \
	    "{\"from_address\":\"alpha@fleet.example\",\"from_instance\":\"alpha\",\"message_id\":\"$id\",\"notice_id\":\"$id\",\"req_id\":\"1\",\"to_instance\":\"beta\",\"transport\":\"local\",\"tree\":\"peer\"}"
	assert_equal "$(jq -cS '[keys, .event, .reply_basis, .origin]' home/router-state/beta/audit/log.jsonl)" \
	    '[["demotion_cause","event","from","from_instance","in_reply_to","instance","message_id","notice_id","origin","reply_basis","req_id","sender_exposure","signature_verdict","to","to_instance","tree","ts"],"peer_notice_placed",null,"local"]'
	assert_equal "$(jq -cS 'del(.ts)' home/instances/alpha/outbox/results/1.json)" \
	    "{\"contract_version\":\"2\",\"detail\":null,\"job_id\":null,\"message_id\":\"$id\",\"outcome\":\"accepted\",\"reason_code\":\"peer_routed\",\"recipients\":[\"beta@fleet.example\"],\"req_id\":\"1\"}"
	assert_equal "$(find home/instances home/router-state -type f \( -name 'notice-*' -o -path '*results/*' -o -name log.jsonl -o -name first-seen.json \) -printf '%m\n' | sort -u)" 600
	documents_are_sound
}

@test "27.4 mail: to one, to two with a copy, its reply stays mail, and needs no list" {
	fleet '"peers":{"alpha":["beta","gamma"],"beta":["alpha"],"gamma":["ALLOW_ANY"]}' alpha beta gamma
	once
	request alpha 1 beta
	request alpha 2 beta '.draft.cc = ["gamma@fleet.example"]'
	once
	assert_equal "$(verdict alpha 1) $(verdict alpha 2)" "accepted allowlisted accepted allowlisted"
	assert_equal "$(jq -c '[.recipients, .message_id]' home/instances/alpha/outbox/results/2.json)" \
	    '[["beta@fleet.example","gamma@fleet.example"],null]'
	id=$(notice_id gamma inbox)
	assert_equal "$(jq -cS 'del(.ts)' home/instances/gamma/inbox/notices/notice-"$id".json)" \
	    "{\"contract_version\":\"2\",\"kind\":\"deliver\",\"message\":{\"from\":\"alpha@fleet.example\",\"id\":\"$id\",\"mailbox\":\"inbox\",\"preview\":\"b\",\"provenance\":\"internal\",\"subject\":\"s\"},\"notice_id\":\"$id\"}"
	assert_equal "$(jq -r .tree home/router-state/gamma/delivered/notice-"$id".json)" inbox
	[ ! -e home/router-state/gamma/audit ]

	# gamma is taken off every list: the reply is bound all the same, a new mail is not.
	jq -c '.peers = {}' home/router.json >r && mv r home/router.json
	request gamma 1 beta ".in_reply_to = \"$id\""
	request gamma 2 alpha
	once
	assert_equal "$(verdict gamma 1) $(verdict gamma 2)" "accepted recipient_bound queued_for_human recipient_not_allowlisted"
	assert_equal "$(notices alpha inbox) $(notices alpha peer)" "1 0"
	assert_equal "$(jq -r .message.in_reply_to home/instances/alpha/inbox/notices/*.json)" "$id"
	documents_are_sound
	run -0 amap-router check home/router-state
	assert_output "0 problems, 0 notes"
}

@test "27.3 a reply goes to the bound sender, whatever the agent wrote" {
	setup_tasks
	request alpha 1 beta
	once
	id=$(notice_id beta peer)
	request beta 1 gamma ".in_reply_to = \"$id\" | .draft.cc = [\"beta@fleet.example\"]"
	request beta 2 gamma ".draft.reply_to_message_id = \"$id\""
	request beta 3 alpha ".in_reply_to = \"garbage\" | .draft.reply_to_message_id = \"$id\""
	request beta 4 alpha ".in_reply_to = \"notice-$id\""
	printf '{}' >home/instances/beta/peer/notices/notice-ffffffffffffffffffffffffffffffff.json
	request beta 5 alpha '.in_reply_to = "ffffffffffffffffffffffffffffffff"'
	request gamma 1 alpha ".in_reply_to = \"$id\""
	once 2>log
	for i in 1 2; do
		assert_equal "$(verdict beta $i)" "accepted peer_routed"
		assert_equal "$(jq -c .recipients home/instances/beta/outbox/results/$i.json)" '["alpha@fleet.example"]'
	done
	for i in 3 4 5; do
		assert_equal "$(verdict beta $i)" "rejected unresolved_reply"
	done
	assert_equal "$(verdict gamma 1)" "rejected unresolved_reply"
	assert_equal "$(notices alpha peer) $(notices gamma peer)" "2 0"
	grep -q 'reply 1 of beta: bound to its sender, 2 other recipients discarded' log
	run ! grep -q gamma@ log
}

@test "27.4 a reply without an edge has its window, with one it never expires; a broken time is over" {
	setup_tasks '"peer_reply_window_seconds":3600'
	for i in 1 2 3; do request alpha $i beta; done
	once
	cd home/router-state/beta/delivered
	set -- notice-*.json
	for age in '30 minutes' '61 minutes' broken; do
		f=$1 ts=$(date -u -d "$age ago" +%FT%TZ 2>/dev/null || echo "2026-13-01T00:00:00Z")
		jq -c --arg ts "$ts" '.ts = $ts' "$f" >t && mv t "$f"
		id=${f#notice-}
		(cd ../../../.. && request beta "$(tr ' ' _ <<<"$age")" alpha ".in_reply_to = \"${id%.json}\"")
		shift
	done
	cd ../../../..
	once
	assert_equal "$(verdict beta 30_minutes)" "accepted peer_routed"
	assert_equal "$(verdict beta 61_minutes)" "rejected peer_reply_window_expired"
	assert_equal "$(verdict beta broken)" "rejected peer_reply_window_expired"
	assert_equal "$(jq -c 'select(.event == "peer_refused") | [.req_id, .reason_code, .recipients]' home/router-state/beta/audit/log.jsonl)" \
	    $'["61_minutes","peer_reply_window_expired",["alpha"]]\n["broken","peer_reply_window_expired",["alpha"]]'
	assert_equal "$(jq -r .reply_basis home/router-state/alpha/audit/log.jsonl)" reply_window
	# Now beta may task alpha: the edge decides, not the window.
	jq -c '.peer_senders.alpha = ["beta"]' home/router.json >r && mv r home/router.json
	old=$(jq -r .draft.reply_to_message_id,.in_reply_to home/instances/beta/outbox/processed/req-61_minutes.json | grep -v null)
	request beta again alpha ".in_reply_to = \"$old\""
	once
	assert_equal "$(verdict beta again)" "accepted peer_routed"
	assert_equal "$(tail -n 1 home/router-state/alpha/audit/log.jsonl | jq -r .reply_basis)" edge
}

@test "a reply to oneself, to one who left, and to one without a delegation lane" {
	setup_tasks
	for i in 1 2; do request alpha $i beta; done
	once
	set -- home/router-state/beta/delivered/notice-*.json
	jq -c '.from_instance = "beta"' "$1" >t && mv t "$1"
	a=$(basename "$1" .json) b=$(basename "$2" .json)
	request beta 1 alpha ".in_reply_to = \"${a#notice-}\""
	once
	assert_equal "$(verdict beta 1)" "rejected self_send"
	select_members beta gamma
	request beta 2 gamma ".in_reply_to = \"${b#notice-}\""
	once
	assert_equal "$(verdict beta 2)" "rejected unresolved_reply"
}

@test "27.5 in_reply_to stands on a notice exactly when the ledger resolved it" {
	setup_tasks
	request alpha 1 beta
	once
	id=$(notice_id beta peer)
	assert_equal "$(jq '.message | has("in_reply_to")' home/instances/beta/peer/notices/*.json)" false
	request beta 1 alpha ".in_reply_to = \"$id\""
	once
	assert_equal "$(jq -r .message.in_reply_to home/instances/alpha/peer/notices/*.json)" "$id"
}

@test "27.7 lanes replaced by a link or a file: nothing is written through, each request is answered once" {
	setup_tasks '"peers":{"alpha":["gamma"],"gamma":["alpha"]}'
	mkdir target
	n=0
	for lane in peer peer/notices peer/messages inbox inbox/notices inbox/messages; do
		case $lane in peer*) to=beta ;; *) to=gamma ;; esac
		for kind in link file fifo; do
			n=$((n + 1))
			mv home/instances/$to/"$lane" saved
			case $kind in
			link) ln -s "$PWD/target" home/instances/$to/"$lane" ;;
			file) : >home/instances/$to/"$lane" ;;
			fifo) mkfifo home/instances/$to/"$lane" ;;
			esac
			request alpha $n $to
			once 2>/dev/null
			assert_equal "$lane $kind: $(verdict alpha $n)" "$lane $kind: queued_for_human delivery_failed"
			assert_equal "$(jq -c .recipients home/instances/alpha/outbox/results/$n.json)" '[]'
			rm home/instances/$to/"$lane"
			mv saved home/instances/$to/"$lane"
		done
	done
	for leaf in results processed; do
		for kind in link file fifo; do
			n=$((n + 1))
			mv home/instances/alpha/outbox/$leaf saved
			case $kind in
			link) ln -s "$PWD/target" home/instances/alpha/outbox/$leaf ;;
			file) : >home/instances/alpha/outbox/$leaf ;;
			fifo) mkfifo home/instances/alpha/outbox/$leaf ;;
			esac
			request alpha $n beta
			once 2>/dev/null
			[ ! -e home/instances/alpha/outbox/req-$n.json ]
			assert_equal "$(jq -r .result.reason_code home/router-state/alpha/results/$n.json)" peer_routed
			rm home/instances/alpha/outbox/$leaf
			mv saved home/instances/alpha/outbox/$leaf
		done
	done
	assert_equal "$(ls target)" ""
	assert_equal "$(notices beta peer) $(notices gamma inbox)" "6 0"
	run -0 --separate-stderr once --json
	assert_equal "$(jq .alpha.outbound_seen <<<"$output")" 0
	run -0 amap-router check home/router-state
	assert_output "0 problems, 0 notes"
}

@test "27.8 message, ledger, audit, notice in this order; a failing notice leaves none" {
	setup_tasks
	request alpha 1 beta
	strace -o /dev/null true 2>/dev/null || skip "no strace here"
	# the leak checker cannot work under strace
	ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=renameat,renameat2,write,openat,openat2 -o trace \
	    amap-router --config home/router.json once
	assert_equal "$(grep -oE 'renameat[^<]*"notice-|renameat.*"[0-9]+\.json"|openat2?\(.*log.jsonl|renameat.*req-1.json' trace | wc -l)" 7
	order=$(grep -nE '"notice-[0-9a-f]*\.json"|log.jsonl' trace | grep -E 'renameat|log.jsonl' | sed 's/.*log.jsonl.*/audit/;s/.*renameat.*/notice-file/' | xargs)
	assert_equal "$order" "notice-file notice-file audit notice-file"
	mv home/instances/beta/peer/notices n && : >home/instances/beta/peer/notices
	request alpha 2 beta
	once 2>/dev/null
	rm home/instances/beta/peer/notices && mv n home/instances/beta/peer/notices
	assert_equal "$(notices beta peer)" 1
}

@test "27.9 a failed delivery is answered once; with two recipients it is partial" {
	fleet '"mail_graph":"all"' alpha beta gamma
	once
	rm -r home/instances/beta/inbox && : >home/instances/beta/inbox
	request alpha 1 beta
	request alpha 2 beta,gamma
	once 2>/dev/null
	assert_equal "$(verdict alpha 1)" "queued_for_human delivery_failed"
	assert_equal "$(jq -c '[.outcome, .reason_code, .recipients, .message_id]' home/instances/alpha/outbox/results/2.json)" \
	    '["accepted","partial_delivery",["gamma@fleet.example"],null]'
	[[ $(jq -r .detail home/instances/alpha/outbox/results/2.json) == *beta* ]]
	[ ! -e home/router-state/alpha/held/req-1.json ]
	run -0 --separate-stderr once --json
	assert_equal "$(jq .alpha.outbound_seen <<<"$output")" 0
	documents_are_sound
}

@test "attachments travel by bytes and descriptor; the sidecar goes" {
	setup_tasks
	mkdir home/instances/alpha/outbox/req-1.attachments
	printf hello >home/instances/alpha/outbox/req-1.attachments/0
	: >home/instances/alpha/outbox/req-1.attachments/1
	request alpha 1 beta ".draft.attachments = [
	    {filename: \"  ../../ok\\u2028.txt \", media_type: \"text/plain\", size_bytes: 5, sha256: \"$(sha hello)\"},
	    {filename: \"\\u2028\", media_type: \"\\u00a0\", size_bytes: 0, sha256: \"$(sha '')\"}]"
	once
	assert_equal "$(verdict alpha 1)" "accepted peer_routed"
	id=$(notice_id beta peer)
	assert_equal "$(jq -c '.message.attachments' home/instances/beta/peer/notices/notice-"$id".json)" \
	    "$(jq -nc --arg id "$id" --arg a "$(sha hello)" --arg b "$(sha '')" '[
	    {content_ref: ($id + ".attachments/0"), disposition: "clean", filename: "../../ok .txt", media_type: "text/plain", sha256: $a, size_bytes: 5},
	    {content_ref: ($id + ".attachments/1"), disposition: "clean", filename: "attachment-1", media_type: "application/octet-stream", sha256: $b, size_bytes: 0}]')"
	assert_equal "$(cat home/instances/beta/peer/notices/"$id".attachments/0)" hello
	assert_equal "$(jq -c .attachments home/instances/alpha/outbox/results/1.json)" \
	    '[{"detail":null,"index":0,"outcome":"accepted"},{"detail":null,"index":1,"outcome":"accepted"}]'
	[ ! -e home/instances/alpha/outbox/req-1.attachments ]
	documents_are_sound
	run -0 amap-router check home/router-state
	assert_output "0 problems, 0 notes"
}

# attached ID JQ-SIDECAR: a request with two one-byte attachments, whose sidecar a command spoils.
attached() {
	mkdir home/instances/alpha/outbox/req-"$1".attachments
	printf a >home/instances/alpha/outbox/req-"$1".attachments/0
	printf b >home/instances/alpha/outbox/req-"$1".attachments/1
	(cd home/instances/alpha/outbox/req-"$1".attachments && eval "$2")
	request alpha "$1" beta ".draft.attachments = [{filename: \"a\", media_type: \"m\", size_bytes: 1, sha256: \"$(sha a)\"},
	    {filename: \"b\", media_type: \"m\", size_bytes: 1, sha256: \"$(sha b)\"}]"
}

@test "a sidecar that is not exactly as described is refused whole; 25.3 the diagnostics stand at their index" {
	setup_tasks
	attached extra 'printf c >2'
	attached tmp 'printf c >.tmp'
	attached zero 'mv 1 01'
	attached missing 'rm 1'
	attached short ': >1'
	attached long 'printf bb >1'
	attached other 'printf c >1'
	attached first 'printf c >0'
	attached link 'mv 1 ../b; ln -s ../b 1'
	attached hard 'ln 1 ../hard-link'
	attached fifo 'rm 1; mkfifo 1'
	attached dir 'rm 1; mkdir 1'
	attached gone 'cd ..; rm -r req-gone.attachments'
	attached file 'cd ..; rm -r req-file.attachments; : >req-file.attachments'
	attached linked 'cd ..; mv req-linked.attachments elsewhere; ln -s elsewhere req-linked.attachments'
	attached deep 'mkdir -p x/y/z; : >x/y/z/f'
	attached sparse 'truncate -s 10G 1'
	request alpha stray beta
	mkdir home/instances/alpha/outbox/req-stray.attachments
	request alpha straylink beta
	ln -s nowhere home/instances/alpha/outbox/req-straylink.attachments
	once
	for id in extra tmp zero missing short long other first link hard fifo dir gone file linked deep sparse stray straylink; do
		assert_equal "$id: $(verdict alpha $id)" "$id: rejected attachment_mismatch"
		[ ! -e home/instances/alpha/outbox/req-$id.attachments ] && [ ! -L home/instances/alpha/outbox/req-$id.attachments ]
	done
	assert_equal "$(jq -c .attachments home/instances/alpha/outbox/results/other.json)" \
	    '[{"detail":null,"index":0,"outcome":"accepted"},{"detail":null,"index":1,"outcome":"rejected_type"}]'
	assert_equal "$(jq -c .attachments home/instances/alpha/outbox/results/first.json)" \
	    '[{"detail":null,"index":0,"outcome":"rejected_type"}]'
	[ -e home/instances/alpha/outbox/elsewhere/0 ]
	assert_equal "$(notices beta peer)" 0
	documents_are_sound
}

@test "limits come before anything is opened, and keep a copy for the operator" {
	setup_tasks '"attachment_max_bytes":10,"attachment_max_total_bytes":15,"attachment_max_count":2'
	for spec in count:1,1,1 first:11 second:1,11 total:8,8; do
		id=${spec%%:*}
		mkfifo home/instances/alpha/outbox/req-$id.attachments
		request alpha $id beta ".draft.attachments = ([${spec#*:}] | map({filename: \"f\", media_type: \"m\", size_bytes: ., sha256: \"$(sha '')\"}))"
	done
	once
	assert_equal "$(for id in count first second total; do verdict alpha $id; done | xargs -n2)" \
	    "queued_for_human attachment_count_exceeded
queued_for_human attachment_too_large
queued_for_human attachment_too_large
queued_for_human attachment_too_large"
	assert_equal "$(for id in count first second total; do jq -c '.attachments' home/instances/alpha/outbox/results/$id.json; done)" \
	    'null
[{"detail":null,"index":0,"outcome":"too_large"}]
[{"detail":null,"index":0,"outcome":"accepted"},{"detail":null,"index":1,"outcome":"too_large"}]
null'
	assert_equal "$(ls home/router-state/alpha/held)" $'req-count.json\nreq-first.json\nreq-second.json\nreq-total.json'
	documents_are_sound
}

@test "sender_exposure: foreign mail in the window flips it, the router's own does not" {
	fleet '"peer_senders":{"beta":["alpha"]},"sender_exposure_window_seconds":3600' alpha beta
	once
	jq -c '.first_seen_ts = "2026-01-01T00:00:00Z"' home/router-state/alpha/first-seen.json >t && mv t home/router-state/alpha/first-seen.json
	exposure() {
		once
		id=$(jq -r .message_id home/instances/alpha/outbox/results/"$1".json)
		jq -c '.message.sender_exposure | [.external_mail_delivered, has("last_external_delivery_ts")]' home/instances/beta/peer/notices/notice-"$id".json
	}
	request alpha 1 beta
	assert_equal "$(exposure 1)" "[false,false]"
	# A status notice is the router's own.
	mkdir -p home/instances/beta/outbox/ext/claude-code/outcomes
	printf '{"outcome":"denied","ts":"t","tree":"peer","notice_id":"%s"}' "$(notice_id beta peer)" \
	    >home/instances/beta/outbox/ext/claude-code/outcomes/peer-"$(notice_id beta peer)".json
	once
	assert_equal "$(notices alpha inbox)" 1
	request alpha 2 beta
	assert_equal "$(exposure 2)" "[false,false]"
	printf '{}' >home/instances/alpha/inbox/notices/notice-from-outside.json
	touch -d '2 hours ago' home/instances/alpha/inbox/notices/notice-from-outside.json
	request alpha 3 beta
	assert_equal "$(exposure 3)" "[false,false]"
	touch -d '10 minutes ago' home/instances/alpha/inbox/notices/notice-from-outside.json
	request alpha 4 beta
	assert_equal "$(exposure 4)" "[true,true]"
	rm home/instances/alpha/inbox/notices/notice-from-outside.json
	printf '{"origin":"external","ts":"%s"}' "$(date -u +%FT%TZ)" >home/router-state/alpha/delivered/notice-x.json
	request alpha 5 beta
	assert_equal "$(exposure 5)" "[true,true]"
	documents_are_sound
}

@test "sender_exposure follows foreign mail while the router runs, also between mails of its own" {
	fleet '"peer_senders":{"beta":["alpha"]},"peers":{"alpha":["gamma"],"gamma":["alpha"]}' alpha beta gamma
	start_router 60
	request alpha 1 beta
	request gamma 1 alpha
	eventually test -s home/instances/gamma/outbox/results/1.json
	request alpha 2 beta
	eventually test -s home/instances/alpha/outbox/results/2.json
	printf '{}' >home/instances/alpha/inbox/notices/notice-foreign.json
	request gamma 2 alpha
	eventually test -s home/instances/gamma/outbox/results/2.json
	request alpha 3 beta
	eventually test -s home/instances/alpha/outbox/results/3.json
	for i in 1 2 3; do
		id=$(jq -r .message_id home/instances/alpha/outbox/results/$i.json)
		jq .message.sender_exposure.external_mail_delivered home/instances/beta/peer/notices/notice-"$id".json
	done >got
	assert_equal "$(xargs <got)" "false false true"
}

@test "ten recipients in turn, over and over: each placement is in its own recipient's directories" {
	names=$(seq -f 'm%.0f' 10)
	fleet '"task_graph":"all"' alpha $names
	once 2>/dev/null
	for i in $(seq 20); do
		put alpha "$i" "{\"contract_version\":\"2\",\"req_id\":\"$i\",\"draft\":{\"to\":[\"m$((i % 10 + 1))@fleet.example\"],\"subject\":\"m$((i % 10 + 1))\",\"body_text\":\"\"}}"
	done
	once 2>/dev/null
	for to in $names; do
		assert_equal "$(jq -r .message.subject home/instances/"$to"/peer/notices/*.json | xargs)" "$to $to"
		assert_equal "$(jq -r .to_instance home/router-state/"$to"/audit/log.jsonl | xargs)" "$to $to"
	done
	run -0 amap-router check home/router-state
	assert_output "0 problems, 0 notes"
}

@test "more attachments than files may be open at the same time" {
	setup_tasks '"attachment_max_count":200'
	mkdir home/instances/alpha/outbox/req-1.attachments
	for i in $(seq 0 149); do printf '%s' "$i" >home/instances/alpha/outbox/req-1.attachments/"$i"; done
	request alpha 1 beta ".draft.attachments = [$(for i in $(seq 0 149); do
		printf '{"filename":"f%s","media_type":"m","size_bytes":%s,"sha256":"%s"}\n' "$i" "${#i}" "$(sha "$i")"
	done | paste -sd ,)]"
	run -0 sh -c 'ulimit -n 64; amap-router --config home/router.json once'
	assert_equal "$(verdict alpha 1)" "accepted peer_routed"
	for i in $(seq 0 149); do [ "$(<"$(echo home/instances/beta/peer/notices/*.attachments)/$i")" = "$i" ]; done
	run -0 amap-router check home/router-state
	assert_output "0 problems, 0 notes"
}
