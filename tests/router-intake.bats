load common
load router

# The fleet of tests/data/router/requests.txt, seen once.
wide_fleet() {
	fleet '"peer_senders":{"beta":["alpha"]},"peers":{"alpha":["gamma","delta"],"gamma":["alpha"],"delta":[]},
	    "attachment_max_count":3,"attachment_max_bytes":100,"attachment_max_total_bytes":250' alpha beta gamma delta epsilon
	once 2>/dev/null
}

@test "the answer to each kind of request" {
	wide_fleet
	while IFS=$'\t' read -r label filter want; do
		case $label in '#'*) continue ;; esac
		printf '%s\t%s\n' "$label" "$want" >>want
		request alpha "$label" beta "$filter"
	done <"$DATA/router/requests.txt"
	once 2>log
	while IFS=$'\t' read -r label want; do
		printf '%s\t%s\n' "$label" "$(verdict alpha "$label")" >>got
	done <want
	diff want got
	[ "$(wc -l <want)" -ge 80 ]
	assert_equal "$(find home/instances/alpha/outbox -maxdepth 1 -name 'req-*')" ""
	assert_equal "$(find home/instances/alpha/outbox/processed -name 'req-*.json' | wc -l)" "$(wc -l <want)"
	documents_are_sound
	run -0 amap-router check home/router-state
}

@test "what is no JSON text, or too large, is malformed; exactly one MiB is not" {
	wide_fleet
	put alpha bom $'\xef\xbb\xbf{}'
	put alpha utf8 $'{"contract_version":"2","req_id":"utf8","draft":{"subject":"\xff"}}'
	put alpha empty ''
	put alpha array '[]'
	put alpha number 7
	put alpha two '{} {}'
	put alpha nan '{"contract_version":NaN}'
	put alpha zeros '{"contract_version":007}'
	put alpha twice '{"contract_version":"1","contract_version":"2","req_id":"twice","draft":{"to":["beta@fleet.example"],"subject":"","body_text":""}}'
	put alpha surrogate '{"contract_version":"2","req_id":"surrogate","draft":{"to":["beta@fleet.example"],"subject":"","body_text":"\ud800"}}'
	printf '{"contract_version":"2","req_id":"nul","draft":{}}\0' >home/instances/alpha/outbox/req-nul.json
	head=$(jq -nc '{contract_version: "2", req_id: "mib", draft: {to: ["beta@fleet.example"], subject: "", body_text: "%"}}')
	for id in mib big; do
		room=$((1048576 - ${#head} + 1))
		[ $id = mib ] || room=$((room + 1))
		printf '%s' "${head%\%*}" | sed "s/\"mib\"/\"$id\"/" >t
		head -c "$room" /dev/zero | tr '\0' x >>t
		printf '%s' "${head#*\%}" >>t
		mv t home/instances/alpha/outbox/req-$id.json
	done
	assert_equal "$(stat -c %s home/instances/alpha/outbox/req-{mib,big}.json | xargs)" "1048576 1048577"
	once
	for id in bom utf8 empty array number two nan zeros twice surrogate nul big; do
		assert_equal "$id: $(verdict alpha $id)" "$id: rejected malformed_request"
	done
	assert_equal "$(verdict alpha mib)" "accepted peer_routed"
	assert_equal "$(jq .digest home/router-state/alpha/results/big.json)" null
	documents_are_sound
}

@test "25.2 what the parser cannot bear is answered once: depth, huge numbers" {
	wide_fleet
	printf '{"contract_version":"2","req_id":"deep","draft":%s%s}' "$(printf '[%.0s' $(seq 5000))" "$(printf ']%.0s' $(seq 5000))" >home/instances/alpha/outbox/req-deep.json
	printf '{"contract_version":"2","req_id":"digits","draft":%s}' "$(printf '9%.0s' $(seq 9999))" >home/instances/alpha/outbox/req-digits.json
	once
	assert_equal "$(verdict alpha deep)" "rejected malformed_request"
	assert_equal "$(verdict alpha digits)" "rejected malformed_request"
	run -0 --separate-stderr once --json
	assert_equal "$(jq .alpha.outbound_seen <<<"$output")" 0
}

@test "27.1 what was staged is quarantined whatever it becomes; a new name is delivered in the same poll" {
	fleet '"task_graph":"all"' alpha beta
	request alpha 1 beta
	request alpha 2 beta
	ln -s req-1.json home/instances/alpha/outbox/req-3.json
	mkdir home/instances/alpha/outbox/req-4.json
	request alpha 5 beta
	chmod 000 home/instances/alpha/outbox/req-5.json
	once
	cp home/router-state/alpha/first-seen.json marker
	assert_equal "$(jq -c '[.outbox_snapshot[].filename]' marker)" '["req-1.json","req-2.json","req-3.json","req-4.json","req-5.json"]'
	assert_equal "$(jq -c '[.schema, .instance, .mode, .declared_root]' marker)" "[1,\"alpha\",\"handoff\",\"$PWD/home/instances/alpha\"]"
	assert_equal "$(jq -r '.outbox_snapshot[0].sha256' marker)" "$(sha256sum <home/instances/alpha/outbox/processed/req-1.json | cut -d' ' -f1)"
	assert_equal "$(jq -c '.outbox_snapshot[2] | [.sha256, .size]' marker)" '[null,null]'
	assert_equal "$(verdict alpha 1)" "rejected quarantined_pre_approval"
	cmp home/router-state/alpha/quarantine/req-1.json home/instances/alpha/outbox/processed/req-1.json
	assert_equal "$(jq -c '[.req_id, .filename, .snapshot_digest == .current_digest] + (keys)' home/router-state/alpha/quarantine/req-1.json.meta.json)" \
	    '["1","req-1.json",true,"current_digest","filename","first_seen_ts","quarantined_ts","req_id","snapshot_digest"]'

	rm home/instances/alpha/outbox/req-3.json
	rmdir home/instances/alpha/outbox/req-4.json
	request alpha 3 beta
	request alpha 4 beta
	request alpha 6 beta
	once
	assert_equal "$(verdict alpha 3)" "rejected quarantined_pre_approval"
	assert_equal "$(verdict alpha 4)" "rejected quarantined_pre_approval"
	assert_equal "$(verdict alpha 6)" "accepted peer_routed"
	cmp home/router-state/alpha/first-seen.json marker
	assert_equal "$(notices beta peer)" 1

	# Other bytes under a staged name that was never answered.
	rm home/router-state/alpha/results/1.json
	request alpha 1 beta '.draft.subject = "other"'
	once
	assert_equal "$(verdict alpha 1)" "rejected quarantined_pre_approval"
	assert_equal "$(jq -c '.snapshot_digest == .current_digest' home/router-state/alpha/quarantine/req-1.json.meta.json)" false
	assert_equal "$(notices beta peer)" 1
}

@test "25.13 a quarantine copy that cannot be written is told; 25.14 a huge staged file is not read whole" {
	timed
	fleet '"task_graph":"all"' alpha beta
	mkdir -p home/router-state/alpha
	: >home/router-state/alpha/quarantine
	request alpha 1 beta
	truncate -s 10G home/instances/alpha/outbox/req-2.json
	SECONDS=0
	run -0 --separate-stderr once --json
	[ "$SECONDS" -lt 5 ]
	[[ $stderr == *"no quarantine copy of request 1 of alpha: "* ]]
	assert_equal "$(verdict alpha 1) $(verdict alpha 2)" "rejected quarantined_pre_approval rejected malformed_request"
	assert_equal "$(jq -c '.outbox_snapshot | map([.sha256 != null, .size])' home/router-state/alpha/first-seen.json)" \
	    "[[true,$(stat -c %s home/instances/alpha/outbox/processed/req-1.json)],[false,null]]"
	documents_are_sound
}

@test "27.1 a broken marker is taken anew, a legacy approval is adopted" {
	fleet '"task_graph":"all"' alpha beta
	once
	printf '{' >home/router-state/alpha/first-seen.json
	request alpha 1 beta
	once
	assert_equal "$(verdict alpha 1)" "rejected quarantined_pre_approval"
	rm home/router-state/alpha/first-seen.json
	printf '{"outbox_snapshot":[{"filename":"req-2.json"}],"approved_ts":"2026-01-02T03:04:05Z","who":"x"}' >home/router-state/alpha/approval.json
	request alpha 2 beta
	request alpha 3 beta
	once
	assert_equal "$(verdict alpha 2) $(verdict alpha 3)" "rejected quarantined_pre_approval accepted peer_routed"
	assert_equal "$(jq -c '[.schema, .instance, .first_seen_ts, .adopted_from, .who]' home/router-state/alpha/first-seen.json)" \
	    '[1,"alpha","2026-01-02T03:04:05Z","approval.json","x"]'
}

@test "27.2 the same bytes again: resumed, one notice, the same result; other bytes: refused, the record stays" {
	wide_fleet
	request alpha 1 beta
	once
	cp home/instances/alpha/outbox/results/1.json first
	cp home/router-state/alpha/results/1.json record
	rm home/instances/alpha/outbox/results/1.json
	request alpha 1 beta
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.alpha | [.outbound_resumed, .drained, .accepted]' <<<"$output")" "[1,1,0]"
	cmp home/instances/alpha/outbox/results/1.json first
	assert_equal "$(notices beta peer)" 1

	request alpha 1 beta '.draft.subject = "other"'
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.alpha | [.outbound_req_id_reused, .drained, .rejected]' <<<"$output")" "[1,1,1]"
	assert_equal "$(verdict alpha 1)" "rejected req_id_reused"
	cmp home/router-state/alpha/results/1.json record
	assert_equal "$(notices beta peer)" 1

	mkdir d && request alpha 1 beta && ln home/instances/alpha/outbox/req-1.json d/link
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.alpha | [.outbound_errored, .drained]' <<<"$output")" "[1,0]"
	[ -e home/instances/alpha/outbox/req-1.json ]
	rm -r d
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.alpha | [.outbound_errored, .outbound_resumed]' <<<"$output")" "[0,1]"
}

@test "25.15 an answer that cannot be read is kept aside, and the request is answered afresh" {
	wide_fleet
	request alpha 1 beta
	once
	printf '{"digest"' >home/router-state/alpha/results/1.json
	request alpha 1 beta
	once
	assert_equal "$(verdict alpha 1)" "rejected malformed_request"
	assert_equal "$(cat home/router-state/alpha/results/1.json.corrupt)" '{"digest"'
	[ ! -e home/instances/alpha/outbox/req-1.json ]
	assert_equal "$(notices beta peer)" 1
}

@test "27.6 links, bad names and special files are never opened, and the rest is served; 25.5 a newline ends no name" {
	wide_fleet
	cd home/instances/alpha/outbox
	echo '{}' >plain
	ln -s "$place/home/router.json" req-link.json
	echo '{}' >req-a.b.json
	echo '{}' >req-.json
	echo '{}' >req-x.tmp
	echo '{}' >x.json
	echo '{}' >"req-$(printf 'a%.0s' $(seq 65)).json"
	echo '{}' >$'req-x.json\n'
	echo '{}' >$'req-\xff.json'
	mkfifo req-fifo.json
	mkdir req-dir.json
	cd - >/dev/null
	request alpha 1 beta
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.alpha | [.outbound_seen, .outbound_skipped_bad_name, .drained, .outbound_errored]' <<<"$output")" "[10,9,1,0]"
	assert_equal "$(verdict alpha 1)" "accepted peer_routed"
	assert_equal "$(find home/instances/alpha/outbox -maxdepth 1 -not -type d -printf . | wc -c)" 10
	[ -d home/instances/alpha/outbox/req-dir.json ]
	assert_equal "$(ls home/instances/alpha/outbox/results)" "1.json"
}

@test "a hard link and an unreadable request are malformed, and leave the outbox" {
	wide_fleet
	request alpha 1 beta
	ln home/instances/alpha/outbox/req-1.json kept
	once
	assert_equal "$(verdict alpha 1)" "rejected malformed_request"
	assert_equal "$(jq .digest home/router-state/alpha/results/1.json)" null
	if [ "$(id -u)" -ne 0 ]; then
		request alpha 2 beta
		chmod 000 home/instances/alpha/outbox/req-2.json
		once
		assert_equal "$(verdict alpha 2)" "rejected malformed_request"
	fi
	[ ! -e home/instances/alpha/outbox/req-1.json ]
}

@test "25.13 a held copy that cannot be written leaves the request waiting, and says so" {
	wide_fleet
	mkdir -p home/router-state/alpha
	touch home/router-state/alpha/held
	request alpha 1 delta
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.alpha | [.outbound_errored, .queued_for_human]' <<<"$output")" "[1,0]"
	[[ $stderr == *"no copy of held request 1 of alpha"* ]]
	rm home/router-state/alpha/held
	once
	assert_equal "$(verdict alpha 1)" "queued_for_human recipient_not_allowlisted"
	assert_equal "$(find home/router-state/alpha/held -type f)" home/router-state/alpha/held/req-1.json
}

@test "25.14 a symlinked outbox is not followed, and the others are served" {
	wide_fleet
	mkdir elsewhere
	mv home/instances/alpha/outbox home/instances/alpha/away
	ln -s "$PWD/elsewhere" home/instances/alpha/outbox
	echo '{}' >elsewhere/req-1.json
	mkdir -p home/instances/gamma/outbox
	request gamma 1 alpha
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '[.alpha.instance_errored, .gamma.accepted]' <<<"$output")" "[1,1]"
	[[ $stderr == *"alpha cannot be drained"* ]]
	assert_equal "$(ls elsewhere)" "req-1.json"
}
