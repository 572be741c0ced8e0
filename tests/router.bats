load common
load router

@test "amap-router: help, version, usage" {
	usage_is_sound amap-router
}

@test "a task travels, its reply comes back, what is not granted is held" {
	fleet '"peer_senders":{"alpha":[],"beta":["alpha"]}' alpha beta
	request alpha 00000000 beta
	start_router 60
	assert_equal "$(verdict alpha 00000000)" "rejected quarantined_pre_approval"

	request alpha 00000001 beta '.draft.body_text = "list\nfiles"'
	eventually test -s home/instances/alpha/outbox/results/00000001.json
	assert_equal "$(verdict alpha 00000001)" "accepted peer_routed"
	id=$(jq -r .message_id home/instances/alpha/outbox/results/00000001.json)
	assert_equal "$(jq -r '.message.preview, .kind' home/instances/beta/peer/notices/notice-"$id".json)" $'list files\npeer'
	assert_equal "$(jq -r .body_text home/instances/beta/peer/messages/notice-"$id".json)" $'list\nfiles'
	[ ! -e home/instances/alpha/outbox/req-00000001.json ]
	[ -e home/instances/alpha/outbox/processed/req-00000001.json ]

	request beta 1 alpha ".draft.reply_to_message_id = \"$id\""
	request beta 2 alpha
	request beta 3 gamma
	request beta 4 beta
	eventually test -s home/instances/beta/outbox/results/4.json
	assert_equal "$(for i in 1 2 3 4; do verdict beta $i; done)" "accepted peer_routed
queued_for_human recipient_not_allowlisted
rejected recipient_unknown
rejected self_send"
	cmp home/router-state/beta/held/req-2.json home/instances/beta/outbox/processed/req-2.json
	reply=$(jq -r .message_id home/instances/beta/outbox/results/1.json)
	assert_equal "$(jq -r .message.in_reply_to home/instances/alpha/peer/notices/notice-"$reply".json)" "$id"
	stop_router
	assert_equal "$(jq -c '.totals | [.drained, .accepted, .rejected, .queued_for_human, .found_by_event, .found_by_scan]' home/router-state/status.json)" "[6,2,3,1,5,1]"
	documents_are_sound
}
