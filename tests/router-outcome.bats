load common
load router

# Four tasks placed with beta; their notice ids in $1 to $4 by "set -- $(ids)".
setup_placed() {
	fleet '"peer_senders":{"beta":["alpha"]}'"${1:+,$1}" alpha beta
	once 2>/dev/null
	for i in 1 2 3 4; do request alpha $i beta; done
	once
	outcomes=home/instances/beta/outbox/ext/claude-code/outcomes
	mkdir -p $outcomes
}

ids() {
	for i in 1 2 3 4; do jq -r .message_id home/instances/alpha/outbox/results/$i.json; done
}

# outcome NID VALUE [JQ]: the file that a connector writes, renamed into its place.
outcome() {
	jq -nc --arg id "$1" --arg o "$2" '{outcome: $o, ts: "2026-01-01T00:00:00Z", tree: "peer", notice_id: $id} | '"${3:-.}" >$outcomes/.tmp
	mv $outcomes/.tmp $outcomes/peer-"$1".json
}

@test "27.11 each outcome: record, audit, counter, alert, status notice" {
	setup_placed
	set -- $(ids)
	outcome "$1" delivered '.detail = "injected"'
	outcome "$2" held
	outcome "$3" denied '.detail = "no \u001b thanks"'
	outcome "$4" refused
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta | [.peer_outcomes_seen, .peer_delivered, .peer_held, .peer_denied, .peer_refused, .peer_dsn_sent, .peer_outcome_discarded]' <<<"$output")" \
	    "[4,1,1,1,1,2,0]"
	assert_equal "$(jq -c '.beta.peer_alerts | map(.kind) | sort' <<<"$output")" '["held","refused"]'
	assert_equal "$(jq -c '.beta.peer_alerts[0] | [keys, .sender, .recipient]' <<<"$output")" '[["kind","notice_id","recipient","sender","ts"],"alpha","beta"]'
	assert_equal "$(ls $outcomes)" ""
	assert_equal "$(jq -cS 'del(.recorded_ts)' home/router-state/beta/outcomes/peer-"$1".delivered.json)" \
	    "{\"detail\":\"injected\",\"from_instance\":\"alpha\",\"notice_id\":\"$1\",\"outcome\":\"delivered\",\"outcome_ts\":\"2026-01-01T00:00:00Z\",\"req_id\":\"1\",\"to_instance\":\"beta\",\"tree\":\"peer\"}"
	assert_equal "$(jq -r 'select(.event == "outcome_consumed") | .outcome' home/router-state/beta/audit/log.jsonl | sort | xargs)" "delivered denied held refused"
	outcome "$1" ambiguous_target
	outcome "$2" inject_failed
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta | [.peer_ambiguous_target, .peer_inject_failed, .peer_dsn_sent, (.peer_alerts | length)]' <<<"$output")" "[1,1,0,1]"
	documents_are_sound
}

@test "27.12 27.3 a status notice has exactly these members, no detail, claims nothing as its own, and binds no reply" {
	setup_placed
	set -- $(ids)
	outcome "$3" denied '.detail = "SECRET DETAIL"'
	once
	n=home/instances/alpha/inbox/notices/notice-*.json
	id=$(jq -r .notice_id $n)
	assert_equal "$(jq -cS 'del(.ts, .message.preview)' $n)" \
	    "{\"contract_version\":\"2\",\"kind\":\"deliver\",\"message\":{\"from\":\"amap.router@fleet.example\",\"id\":\"$id\",\"in_reply_to\":\"$3\",\"mailbox\":\"inbox\",\"provenance\":\"internal\",\"subject\":\"Not delivered: denied\"},\"notice_id\":\"$id\"}"
	body=$(jq -r .body_text home/instances/alpha/inbox/messages/notice-"$id".json)
	assert_equal "$(sed -n '2,4p' <<<"$body")" "reported outcome: denied
peer message id: $3
recipient: beta@fleet.example"
	assert_equal "$(sed -n '1p;6p' <<<"$body" | grep -c sandbox)" 2
	[[ $body != *SECRET* ]]
	assert_equal "$(jq -cS 'del(.ts)' home/router-state/alpha/delivered/notice-"$id".json)" \
	    "{\"authored_by\":\"router\",\"from_address\":\"amap.router@fleet.example\",\"from_instance\":null,\"message_id\":\"$id\",\"notice_id\":\"$id\",\"req_id\":\"\",\"to_instance\":\"alpha\",\"transport\":\"local\",\"tree\":\"inbox\"}"
	assert_equal "$(jq -cS 'select(.event == "dsn_sent") | del(.ts)' home/router-state/alpha/audit/log.jsonl)" \
	    "{\"event\":\"dsn_sent\",\"from\":\"amap.router@fleet.example\",\"in_reply_to\":\"$3\",\"instance\":\"alpha\",\"notice_id\":\"$id\",\"outcome\":\"denied\",\"peer_notice_id\":\"$3\",\"peer_recipient\":\"beta@fleet.example\",\"subject\":\"Not delivered: denied\",\"to\":\"alpha@fleet.example\",\"to_instance\":\"alpha\",\"tree\":\"inbox\"}"
	request alpha 9 beta ".in_reply_to = \"$id\""
	request alpha 10 beta ".draft.reply_to_message_id = \"$id\""
	once
	assert_equal "$(verdict alpha 9) $(verdict alpha 10)" "rejected unresolved_reply rejected unresolved_reply"
	assert_equal "$(notices beta peer) $(notices beta inbox)" "4 0"
	documents_are_sound
}

@test "27.11 duplicates, another's id and every malformed shape are discarded and deleted" {
	setup_placed
	set -- $(ids)
	outcome "$1" delivered
	once
	outcome "$1" delivered
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta | [.peer_outcome_discarded, .peer_delivered]' <<<"$output")" "[1,0]"
	assert_equal "$(jq -r 'select(.event == "outcome_discarded") | .cause' home/router-state/beta/audit/log.jsonl)" duplicate
	outcome 00000000000000000000000000000000 denied
	once
	assert_equal "$(tail -n 1 home/router-state/beta/audit/log.jsonl | jq -r .cause)" unknown_notice_id
	for filter in '.outcome = "maybe"' '.outcome = null' 'del(.outcome)' '.tree = "inbox"' 'del(.tree)' '.notice_id = "x"' \
	    'del(.ts)' '.ts = ""' '.ts = 7' '.detail = null' '.detail = 7' '.more = 1' '[.]' '7'; do
		outcome "$2" denied "$filter"
		run -0 --separate-stderr once --json
		assert_equal "$filter $(jq -c '.beta | [.peer_outcomes_seen, .peer_outcome_discarded]' <<<"$output")" "$filter [1,1]"
		assert_equal "$(tail -n 1 home/router-state/beta/audit/log.jsonl | jq -r .cause)" malformed
	done
	for bytes in '' '{' $'\xff' $'\xef\xbb\xbf{}' '{"outcome":"denied"}{}'; do
		printf '%s' "$bytes" >$outcomes/peer-"$2".json
		once
		assert_equal "$(tail -n 1 home/router-state/beta/audit/log.jsonl | jq -r .cause)" malformed
	done
	assert_equal "$(ls $outcomes)" ""
	assert_equal "$(notices alpha inbox)" 0
}

@test "27.11 other names are left untouched; links and large files stay and are told of once (25.9)" {
	setup_placed
	set -- $(ids)
	touch $outcomes/.peer-"$1".json.tmp $outcomes/peer-"$(tr a-f A-F <<<"$1")".json $outcomes/peer-1.json $outcomes/other
	cp $outcomes/other saved
	outcome "$1" delivered
	mv $outcomes/peer-"$1".json real && ln -s "$PWD/real" $outcomes/peer-"$1".json
	outcome "$2" delivered && ln $outcomes/peer-"$2".json hard
	head -c 65537 /dev/zero >$outcomes/peer-"$3".json
	mkfifo $outcomes/peer-"$4".json
	before=$(ls $outcomes)
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta | [.peer_outcome_errored, .peer_delivered, .peer_outcome_discarded]' <<<"$output")" "[4,0,0]"
	assert_equal "$(ls $outcomes)" "$before"
	rm $outcomes/*
	outcome "$2" delivered && ln -f $outcomes/peer-"$2".json hard
	start_router 0.1
	eventually status_is '.polls > 2' true
	sleep 0.5
	assert_equal "$(grep -c 'left alone' log)" 1
	# A symlinked directory is not entered.
	stop_router
	mv home/instances/beta/outbox/ext/claude-code/outcomes moved && rm moved/*
	outcomes=moved outcome "$1" delivered
	ln -s "$PWD/moved" home/instances/beta/outbox/ext/claude-code/outcomes
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta.peer_outcomes_seen' <<<"$output")" 0
}

@test "27.11 several connectors: in the order of the configuration, one transition under two ids acted on once" {
	setup_placed '"connector_outcome_ids":["zeta","claude-code"]'
	set -- $(ids)
	outcome "$1" denied '.detail = "second"'
	outcomes=home/instances/beta/outbox/ext/zeta/outcomes
	mkdir -p $outcomes
	outcome "$1" denied '.detail = "first"'
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta | [.peer_denied, .peer_outcome_discarded, .peer_dsn_sent]' <<<"$output")" "[1,1,1]"
	assert_equal "$(jq -r .detail home/router-state/beta/outcomes/*.json)" first
	assert_equal "$(notices alpha inbox)" 1
}

@test "27.11 at most 1000 files a poll, over all connectors together" {
	setup_placed '"connector_outcome_ids":["a","b"]'
	for id in a b; do
		mkdir -p home/instances/beta/outbox/ext/$id/outcomes
		(cd home/instances/beta/outbox/ext/$id/outcomes && seq -f '%032.0f' 1 600 | sed 's/.*/peer-&.json/' | xargs touch)
	done
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta | [.peer_outcomes_seen, .peer_outcome_discarded]' <<<"$output")" "[1000,1000]"
	assert_equal "$(ls home/instances/beta/outbox/ext/a/outcomes | wc -l) $(ls home/instances/beta/outbox/ext/b/outcomes | wc -l)" "0 200"
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta.peer_outcomes_seen' <<<"$output")" 200
}

@test "outcomes of an instance that was never seen are consumed; a sender that left counts as failed" {
	setup_placed
	set -- $(ids)
	rm home/router-state/beta/first-seen.json
	outcome "$1" denied
	select_members beta
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta | [.peer_denied, .peer_dsn_sent, .peer_dsn_failed]' <<<"$output")" "[1,0,1]"
	[ -e home/router-state/beta/outcomes/peer-"$1".denied.json ]
}

@test "25.12 an outcome whose record or audit line cannot be written stays, and is taken later" {
	setup_placed
	set -- $(ids)
	outcome "$1" denied
	mv home/router-state/beta/audit audit && : >home/router-state/beta/audit
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta | [.peer_denied, .peer_outcome_errored]' <<<"$output")" "[0,1]"
	[ -e $outcomes/peer-"$1".json ]
	[ ! -e home/router-state/beta/outcomes/peer-"$1".denied.json ]
	rm home/router-state/beta/audit && mv audit home/router-state/beta/audit
	: >home/router-state/beta/outcomes.bad
	mv home/router-state/beta/outcomes o && : >home/router-state/beta/outcomes
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta.peer_outcome_errored' <<<"$output")" 1
	rm home/router-state/beta/outcomes && mv o home/router-state/beta/outcomes
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta | [.peer_denied, .peer_dsn_sent]' <<<"$output")" "[1,1]"
	[ ! -e $outcomes/peer-"$1".json ]
}

@test "27.13 placed but denied: the latest record decides, also after a restart" {
	setup_placed
	set -- $(ids)
	outcome "$1" denied
	outcome "$2" refused
	outcome "$3" delivered
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta.peer_placed_denied | map([.notice_id, .sender, .recipient, .outcome, .req_id])' <<<"$output")" \
	    "$(printf '%s\n' "[\"$1\",\"alpha\",\"beta\",\"denied\",\"1\"]" "[\"$2\",\"alpha\",\"beta\",\"refused\",\"2\"]" | sort | jq -sc .)"
	outcome "$1" delivered
	jq -c '.recorded_ts = "2026-01-01T00:00:00Z"' home/router-state/beta/outcomes/peer-"$1".denied.json >t
	mv t home/router-state/beta/outcomes/peer-"$1".denied.json
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta.peer_placed_denied | map(.notice_id)' <<<"$output")" "[\"$2\"]"
	run -0 --separate-stderr once --json
	assert_equal "$(jq -c '.beta.peer_placed_denied | map(.notice_id)' <<<"$output")" "[\"$2\"]"
}

@test "27.13 the list is replaced at each poll, and kept where a poll failed" {
	setup_placed
	start_router 60
	set -- $(ids)
	listed() { eventually status_is "[.polls, (.instances.beta.placed_but_denied | map(.notice_id))]" "[$1,$2]"; }
	again() { kill -HUP "$router"; }
	outcome "$1" denied
	eventually test -s home/router-state/beta/outcomes/peer-"$1".denied.json
	again
	listed 2 "[\"$1\"]"
	mv home/router-state/beta/outcomes kept
	: >home/router-state/beta/outcomes
	again
	listed 3 "[\"$1\"]"
	rm home/router-state/beta/outcomes kept/*
	mv kept home/router-state/beta/outcomes
	again
	listed 4 '[]'
}

@test "a directory of outcomes that is made later is seen at once: in steps, moved in whole, and made again" {
	fleet '"peer_senders":{"beta":["alpha"]}' alpha beta
	start_router 60
	for i in 1 2 3 4; do request alpha $i beta; done
	eventually test -s home/instances/alpha/outbox/results/4.json
	set -- $(ids)
	outbox=home/instances/beta/outbox
	outcomes=$outbox/ext/claude-code/outcomes
	consumed() { eventually test -s home/router-state/beta/outcomes/peer-"$1".delivered.json; }
	mkdir $outbox/ext
	sleep 0.1
	mkdir $outbox/ext/claude-code
	sleep 0.1
	mkdir $outcomes
	sleep 0.1
	outcome "$1" delivered
	consumed "$1"
	rm -r $outbox/ext
	mkdir -p $outcomes
	outcome "$2" delivered
	consumed "$2"
	mv $outbox/ext gone
	rm -rf gone/claude-code/outcomes/*
	outcomes=gone/claude-code/outcomes outcome "$3" delivered
	mv gone $outbox/ext
	consumed "$3"
	# A whole outbox that is put in the place of the old one, with a request and an outcome in it.
	mkdir -p new/results new/processed new/ext/claude-code/outcomes
	outcomes=new/ext/claude-code/outcomes outcome "$4" delivered
	mv $outbox old && mv new $outbox
	consumed "$4"
	request beta 1 alpha
	eventually test -s home/instances/beta/outbox/results/1.json
	stop_router
	assert_equal "$(jq -c '[.polls, .instances.beta.totals.peer_delivered, .totals.instance_errored]' home/router-state/status.json)" '[1,4,0]'
}
