load common

@test "amap-validate: help, version, usage" {
	usage_is_sound amap-validate
}

@test "every fixture of the specification is judged as its directory says" {
	[ -n "${AMAP_SPEC_DIR:-}" ] || skip "AMAP_SPEC_DIR is not set"
	run -0 amap-validate "$AMAP_SPEC_DIR"/fixtures/valid/*.json
	assert_equal "$(grep -c '^PASS ' <<<"$output")" 34
	assert_equal "${#lines[@]}" 34
	count=0
	for f in "$AMAP_SPEC_DIR"/fixtures/invalid/*.json; do
		run -1 --separate-stderr amap-validate "$f"
		[[ $output == "FAIL "* ]]
		[ -z "$stderr" ]
		count=$((count + 1))
	done
	assert_equal "$count" 55
}
