# A home moves from the original router to ours and back. The original's files are written here as the
# specification shows them: keys sorted, ", " and ": " between, a final newline nowhere.
load common
load router

N=1c13dfb77ee93f54d0bb08b8d84153f6
M=2d24efc88ff04065e1cc19c9e95264f7

# pythonic: JSON as the original prints it.
pythonic() {
	jq -cS . | sed 's/":/": /g; s/,"/, "/g; s/},{/}, {/g' | tr -d '\n'
}

# What the original leaves after alpha's task 00000001 to beta, a mail from gamma to beta, one held request of beta,
# and a request of alpha that was there before.
original_home() {
	fleet '"peer_senders":{"beta":["alpha"]},"peers":{"gamma":["beta"],"beta":["gamma"]}' alpha beta gamma
	local s=home/router-state i=home/instances ts
	ts=$(date -u +%FT%TZ)
	mkdir -p $s/{alpha,beta,gamma}/results $s/beta/{delivered,held,audit,outcomes} $s/alpha/quarantine
	request alpha 00000000 beta
	request alpha 00000001 beta
	request beta 00000001 alpha
	mv $i/alpha/outbox/req-*.json $i/alpha/outbox/processed/
	mv $i/beta/outbox/req-*.json $i/beta/outbox/processed/
	cp $i/beta/outbox/processed/req-00000001.json $s/beta/held/
	cp $i/alpha/outbox/processed/req-00000000.json $s/alpha/quarantine/
	sum() { sha256sum <"$1" | cut -d' ' -f1; }
	jq -n --arg root "$PWD/$i/alpha" --arg sum "$(sum $i/alpha/outbox/processed/req-00000000.json)" --arg ts "$ts" '{schema: 1, instance: "alpha",
	    first_seen_ts: $ts, mode: "handoff", declared_root: $root, outbox_snapshot: [{filename: "req-00000000.json", sha256: $sum, size: 112}]}' |
	    pythonic >$s/alpha/first-seen.json
	for n in beta gamma; do
		jq -n --arg root "$PWD/$i/$n" --arg n $n --arg ts "$ts" '{schema: 1, instance: $n, first_seen_ts: $ts, mode: "handoff",
		    declared_root: $root, outbox_snapshot: []}' | pythonic >$s/$n/first-seen.json
	done
	result() {
		jq -n --arg id "$1" --arg o "$2" --arg r "$3" --arg ts "$ts" --argjson m "$4" '{contract_version: "2", detail: null, job_id: null, message_id: $m,
		    outcome: $o, reason_code: $r, req_id: $id, ts: $ts} + if $o == "accepted" then {recipients: ["beta@fleet.example"]} else {} end'
	}
	envelope() {
		result "${@:2}" | pythonic >$i/"$1"/outbox/results/"$2".json
		jq -n --arg d "$(sum $i/"$1"/outbox/processed/req-"$2".json)" --slurpfile r $i/"$1"/outbox/results/"$2".json '{digest: $d, result: $r[0]}' |
		    pythonic >$s/"$1"/results/"$2".json
	}
	envelope alpha 00000000 rejected quarantined_pre_approval null
	envelope alpha 00000001 accepted peer_routed "\"$N\""
	envelope beta 00000001 queued_for_human recipient_not_allowlisted null
	ledger() {	# RECIPIENT ID FROM REQ TREE
		jq -n --arg id "$2" --arg from "$3" --arg to "$1" --arg q "$4" --arg ts "$ts" --arg tree "$5" '{from_address: ($from + "@fleet.example"), from_instance: $from, message_id: $id,
		    notice_id: $id, req_id: $q, to_instance: $to, transport: "local", ts: $ts} + if $tree == "" then {} else {tree: $tree} end' | pythonic
	}
	ledger beta $N alpha 00000001 peer >$s/beta/delivered/notice-$N.json
	ledger beta $M gamma 00000005 '' >$s/beta/delivered/notice-$M.json		# an old one: no tree is mail
	for n in "peer $N alpha" "inbox $M gamma"; do
		set -- $n
		jq -n --arg id "$2" --arg from "$3@fleet.example" --arg ts "$ts" '{body_text: "b", contract_version: "2", date: $ts, from: $from, id: $id, notice_id: $id,
		    subject: "s", to: "beta@fleet.example"}' | pythonic >$i/beta/"$1"/messages/notice-"$2".json
		jq -n --arg id "$2" --arg from "$3@fleet.example" --arg ts "$ts" --arg lane "$1" '{contract_version: "2", kind: (if $lane == "peer" then "peer" else "deliver" end),
		    message: {from: $from, id: $id, mailbox: $lane, preview: "b", subject: "s"}, notice_id: $id, ts: $ts}' | pythonic >$i/beta/"$1"/notices/notice-"$2".json
	done
	printf '{"event": "peer_notice_placed", "instance": "beta", "notice_id": "%s", "ts": "%s"}\n' $N "$ts" >$s/beta/audit/log.jsonl
	printf '{"schema": 1, "pid": 7, "polls": 3, "last_poll_ts": "%s", "interval_s": 5.0, "admitted": ["alpha"], "instances": {}}' "$ts" >$s/status.json
	printf 7 >$s/.router.lock
}

@test "ours goes on where the original stopped: nothing is seen, answered or delivered anew" {
	original_home
	run -0 amap-router check home/router-state
	assert_output "0 problems, 0 notes"
	find home -type f -name '*.json' -not -name status.json | sort | xargs sha256sum >before
	start_router 60
	assert_equal "$(sed 's/.*{/{/' log | grep -c "'first_sight': 1")" 0
	sha256sum --quiet -c before
	# The same bytes again are resumed, other bytes refused, the quarantined name stays quarantined.
	cp home/instances/alpha/outbox/processed/req-00000001.json t && put alpha 00000001 "$(cat t)"
	eventually test ! -e home/instances/alpha/outbox/req-00000001.json
	request alpha 00000000 beta '.draft.subject = "other"'
	request beta 00000002 alpha ".in_reply_to = \"$N\""
	request beta 00000003 gamma ".in_reply_to = \"$M\""
	eventually test -s home/instances/beta/outbox/results/00000003.json
	eventually test ! -e home/instances/alpha/outbox/req-00000000.json
	assert_equal "$(verdict alpha 00000000)" "rejected req_id_reused"
	assert_equal "$(verdict beta 00000002) $(verdict beta 00000003)" "accepted peer_routed accepted recipient_bound"
	assert_equal "$(jq -r .message.in_reply_to home/instances/alpha/peer/notices/*.json home/instances/gamma/inbox/notices/*.json | xargs)" "$N $M"
	assert_equal "$(notices beta peer)" 1
	# What the original held can be released.
	run -0 amap-held --config home/router.json release beta 00000001 --as task
	assert_equal "$(notices alpha peer)" 2
	stop_router
	documents_are_sound
	run -0 amap-router check home/router-state
	assert_output "0 problems, 0 notes"
}

@test "the original can go on where ours stopped: each file has the members that it reads, of their kinds" {
	fleet '"peer_senders":{"beta":["alpha"]},"peers":{"gamma":["beta"],"beta":["gamma"]}' alpha beta gamma
	request alpha 0 beta
	start_router 60
	request alpha 1 beta
	request gamma 1 beta
	request beta 1 alpha
	eventually test -s home/instances/beta/outbox/results/1.json
	id=$(jq -r .message_id home/instances/alpha/outbox/results/1.json)
	mkdir -p home/instances/beta/outbox/ext/claude-code/outcomes
	jq -nc --arg id "$id" '{outcome: "denied", ts: "t", tree: "peer", notice_id: $id}' >home/instances/beta/outbox/ext/claude-code/outcomes/.t
	mv home/instances/beta/outbox/ext/claude-code/outcomes/.t home/instances/beta/outbox/ext/claude-code/outcomes/peer-"$id".json
	kill -HUP "$router"
	eventually test -s home/router-state/beta/outcomes/peer-"$id".denied.json
	stop_router
	cd home/router-state
	shape() { jq -cS 'to_entries | map(.key + ":" + (.value | type)) | sort | join(" ")' "$@" | sort -u; }
	assert_equal "$(shape */first-seen.json)" '"declared_root:string first_seen_ts:string instance:string mode:string outbox_snapshot:array schema:number"'
	assert_equal "$(jq -c '.outbox_snapshot[]' alpha/first-seen.json | shape)" '"filename:string sha256:string size:number"'
	assert_equal "$(shape */results/*.json)" '"digest:string result:object"'
	assert_equal "$(shape */delivered/*.json)" \
	    '"authored_by:string from_address:string from_instance:null message_id:string notice_id:string req_id:string to_instance:string transport:string tree:string ts:string"
"from_address:string from_instance:string message_id:string notice_id:string req_id:string to_instance:string transport:string tree:string ts:string"'
	assert_equal "$(shape */outcomes/*.json)" \
	    '"detail:null from_instance:string notice_id:string outcome:string outcome_ts:string recorded_ts:string req_id:string to_instance:string tree:string"'
	assert_equal "$(shape alpha/quarantine/*.meta.json)" \
	    '"current_digest:string filename:string first_seen_ts:string quarantined_ts:string req_id:string snapshot_digest:string"'
	cmp beta/held/req-1.json ../instances/beta/outbox/processed/req-1.json
	# Names that the original does not know are none of those that it reads; what was in hand is done.
	assert_equal "$(find . -mindepth 1 -maxdepth 1 -name '.*' | sort | xargs)" "./.decisions ./.intent ./.router.lock"
	[ ! -s .intent ]
	assert_equal "$(find . -mindepth 2 -maxdepth 2 -not -path './.*' -printf '%f\n' | sort -u | xargs)" \
	    "audit delivered first-seen.json held outcomes quarantine results"
	assert_equal "$(grep -c . beta/audit/log.jsonl)" "$(jq -s length beta/audit/log.jsonl)"
}
