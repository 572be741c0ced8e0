load common
load evidence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	fleet "$PWD/home"
	amap-fleet --membership home/membership.json home/fleet.json | amap-render-router --home "$PWD/home" >router.json
	amap-membership selected home/membership.json >selected.json
	cp router.json selected.json home/
}

probe() {
	amap-ask drift -- amap-drift router.json home/router.json |
	    amap-probe-drift --home "$PWD/home" --selected selected.json
}

@test "usage is sound" {
	usage_is_sound amap-probe-drift
	run -2 amap-probe-drift --home x
	run -2 amap-probe-drift --home x --selected y --problem z
	run -2 amap-probe-drift --selected y
}

@test "the rendered files are twice PASS" {
	run -0 probe
	assert_equal "$(outcomes <<<"$output")" $'C1 - PASS\nC2 - PASS'
	printf '%s\n' "$output" >checks
	sound checks
}

@test "router.json: each line of its drift is named; one added space is a FAIL" {
	while read -r change; do
		cp router.json home/router.json
		eval "$change"
		run -1 probe
		assert_equal "$(outcomes <<<"$output")" $'C1 - FAIL\nC2 - PASS'
		assert_equal "$(jq -r 'select(.id == "C1") | .actual[]' <<<"$output")" "$(amap-drift router.json home/router.json)"
	done <<-'END'
		printf ' ' >>home/router.json
		jq '.state_dir = "/x"' router.json >home/router.json
		jq '.more = 1' router.json >home/router.json
		echo '{' >home/router.json
		echo '[1]' >home/router.json
		rm home/router.json
	END
}

@test "selected.json: absent, other bytes, no JSON, another document" {
	while IFS=@ read -r change actual; do
		cp selected.json home/selected.json
		eval "$change"
		run -1 probe
		assert_equal "$(outcomes <<<"$output")" $'C1 - PASS\nC2 - FAIL'
		assert_equal "$(jq -c 'select(.id == "C2") | .actual' <<<"$output")" "[\"$actual\"]"
	done <<-'END'
		rm home/selected.json@selected.json is absent
		printf ' ' >>home/selected.json@the same document in other bytes
		jq -c . selected.json >home/selected.json@the same document in other bytes
		echo '{' >home/selected.json@selected.json is not valid JSON
		jq 'del(.selected[0])' selected.json >home/selected.json@another document
	END
}

@test "what cannot be read, and what cannot be rendered, is UNKNOWN" {
	rm home/router.json home/selected.json
	ln -s router.json home/router.json
	mkdir home/selected.json
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'C1 - UNKNOWN\nC2 - UNKNOWN'
	run -1 amap-probe-drift --home "$PWD/home" --problem 'fleet.json: it is no JSON'
	assert_equal "$(outcomes <<<"$output")" $'C1 - UNKNOWN\nC2 - UNKNOWN'
	assert_output --partial '"reason":"fleet.json: it is no JSON"'
	echo '{"end":0}' >answers
	cp selected.json home/selected.json.new
	run -1 amap-probe-drift --home "$PWD/home" --selected absent answers
	assert_equal "$(outcomes <<<"$output")" $'C1 - UNKNOWN\nC2 - UNKNOWN'
}

@test "answers that are cut, and output that cannot be written, are exit 2" {
	echo '{"end":1}' >answers
	run -2 amap-probe-drift --home home --selected selected.json answers
	run -2 sh -c 'amap-probe-drift --home home --problem x >/dev/full'
}
