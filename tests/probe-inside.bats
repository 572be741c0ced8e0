load common
load evidence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	fleet "$PWD/home"
}

@test "usage is sound" {
	usage_is_sound amap-probe-inside
	run -2 amap-probe-inside answers
}

# Each line: ask, status, what was printed (with \n), the check, its outcome.
@test "what the probes inside printed decides, whatever their status" {
	while IFS='|' read -r ask status printed check outcome; do
		answer "$ask" alpha "$status" "$(printf %b "$printed")" 'Error: not ready' >answers
		ended answers
		run -1 amap-probe-inside --members members answers
		assert_line --partial "\"id\":\"$check\",\"subject\":\"alpha\""
		assert_equal "$(outcomes <<<"$output" | grep "$check alpha")" "$check alpha $outcome"
	done <<-'END'
		write|0|EROFS\n|M6|PASS
		write|0|EACCES\n|M6|FAIL
		write|0|OPENED\n|M6|FAIL
		write|2|OPENED\n|M6|FAIL
		write|-|OPENED\n|M6|FAIL
		write|0|motd\n\nEROFS \r\n\n|M6|PASS
		write|0|EROFS x\n|M6|FAIL
		write|0|30\n|M6|FAIL
		write|0||M6|UNKNOWN
		write|0|\n \n|M6|UNKNOWN
		write|1|EROFS\n|M6|UNKNOWN
		write|1||M6|UNKNOWN
		write|124||M6|UNKNOWN
		write|-|EROFS\n|M6|UNKNOWN
		other|0|EROFS\n|M6|UNKNOWN
		delivery|0|1\n|M7|PASS
		delivery|0|2\n|M7|PASS
		delivery|0|10\n|M7|PASS
		delivery|0|0\n|M7|FAIL
		delivery|0|00\n|M7|FAIL
		delivery|0|99999999999999999999\n|M7|PASS
		delivery|0|-1\n|M7|UNKNOWN
		delivery|0|1.0\n|M7|UNKNOWN
		delivery|0|one\n|M7|UNKNOWN
		delivery|0||M7|UNKNOWN
		delivery|1|1\n|M7|UNKNOWN
		delivery|-|1\n|M7|UNKNOWN
	END
}

@test "both members pass, whole" {
	for name in alpha beta; do
		answer write "$name" 0 $'EROFS\n'
		answer delivery "$name" 0 $'1\n'
	done >answers
	ended answers
	run -0 amap-probe-inside --members members answers
	assert_line --index 0 '{"section":"members","id":"M6","subject":"alpha","claim":"alpha: a write to its inbox is denied by the mount","outcome":"PASS","expected":"EROFS","actual":"EROFS","provenance":"the errno of a read-only mount","reason":null,"remedy":"stop the member and make it anew: its inbox must be a read-only mount (see its mounts above)","avoid":"do not make the directory read-only on the host: the router must write there"}'
	assert_equal "$(outcomes <<<"$output")" $'M6 alpha PASS\nM7 alpha PASS\nM6 beta PASS\nM7 beta PASS'
}

@test "members that are not known are nothing to say, answers that are cut are exit 2" {
	answer write alpha 0 EROFS >answers
	run -2 amap-probe-inside --members members answers
	ended answers
	echo '{"end":0}' >members
	run -0 amap-probe-inside --members members answers
	assert_output '{"end":0}'
	run -2 sh -c 'amap-probe-inside --members members answers >/dev/full'
}
