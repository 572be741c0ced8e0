load common

policy() {
	printf '{"workspace":"default","fleet_domain":"agents.example.org",%s}\n' "$1"
}

@test "amap-fleet answers the usual options" {
	usage_is_sound amap-fleet
}

@test "the plan has every key in its order, one line" {
	policy '"groups":{"crew":["carol","bob"]},"default_peers":["alice"],"peers":{"alice":["@crew"],"bob":["ALLOW_ANY"]},"task_graph":{"dave":["erin"]}' >fleet.json
	run -0 amap-fleet fleet.json
	assert_output '{"workspace":"default","domain":"agents.example.org","router":"amap.router@agents.example.org","members":[{"name":"alice","address":"alice@agents.example.org","peers":["bob","carol"],"senders":[]},{"name":"bob","address":"bob@agents.example.org","peers":["ALLOW_ANY"],"senders":[]},{"name":"carol","address":"carol@agents.example.org","peers":["alice"],"senders":[]},{"name":"dave","address":"dave@agents.example.org","peers":["alice"],"senders":["erin"]},{"name":"erin","address":"erin@agents.example.org","peers":["alice"],"senders":[]}],"warnings":[{"kind":"one-sided","from":"dave","to":"alice"},{"kind":"one-sided","from":"erin","to":"alice"}],"overlaps":[]}'
}
