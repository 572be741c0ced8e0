load common
load embedded

teardown() {
	embedded_teardown
}

# verify ARGUMENT...: one report; its lines that are no PASS, by id where the machine form is asked for.
verify() { amap verify "$@"; }

@test "embedded: a fleet that bring-up made is 39 times PASS, and each thing broken is its own finding" {
	embedded_setup
	run amap bring-up --agent "$TOP/examples/agents/files.sh" --apply
	assert_line "AMAP is up"
	run -0 --separate-stderr verify
	[ -z "$stderr" ]
	assert_equal "$(grep -c '^  PASS    ' <<<"$output")" 39
	assert_equal "$(grep -v '^  PASS    ' <<<"$output")" "install: the installed payload and layout
router-config: the router's rendered configuration
gateway: the gateway's configuration
members: each member
router-container: the router's container
router-health: the router's health"
	mkdir scratch
	TMPDIR=$PWD/scratch verify >/dev/null
	assert_equal "$(ls -A scratch)" ""

	bad() { verify --format jsonl >checks || :; jq -r 'select(.outcome and .outcome != "PASS") | "\(.id) \(.subject // "-") \(.outcome)"' checks; }
	assert_equal "$(bad)" ''

	# A generated file is not the operator's to edit.
	printf ' ' >>"$H/router.json"
	assert_equal "$(bad)" 'C1 - FAIL'
	amap router-config --apply >/dev/null

	# Payload, record, layout.
	chmod 700 "$H/payload/amap-main"
	mv "$H/commands" "$H/commands.away"
	assert_equal "$(bad)" $'I1 - FAIL\nI2 - FAIL'
	mv "$H/commands.away" "$H/commands"
	chmod 755 "$H/payload/amap-main"
	cp "$H/membership.json" record
	jq '.members[0].id = "id-other"' record >"$H/membership.json"
	assert_equal "$(bad)" 'M1 alpha FAIL'
	rm "$H/membership.json"
	assert_equal "$(bad)" $'I3 - UNKNOWN\nC1 - UNKNOWN\nC2 - UNKNOWN\nM1 alpha UNKNOWN\nM1 beta UNKNOWN'
	cp record "$H/membership.json"

	# A sandbox that stands still, a router that does, and both again.
	amap-sandbox sandbox stop beta
	assert_equal "$(bad | tr '\n' ' ')" 'M5 alpha UNKNOWN M4 beta UNKNOWN M5 beta UNKNOWN M6 beta UNKNOWN M7 beta UNKNOWN '
	amap-sandbox sandbox start beta
	amap-sandbox service stop amap-router
	assert_equal "$(bad)" $'K1 - FAIL\nK2 - UNKNOWN\nK3 - UNKNOWN\nK4 - UNKNOWN'
}
