load common
load evidence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	fleet "$PWD/home"
	{ sandbox alpha id-alpha; sandbox beta id-beta; answer list - 0 $'default/alpha\ndefault/beta\n'; } >answers
	ended answers
}

# edit FILTER: the answers, changed by jq.
edit() {
	jq -c "$1" answers >edited
	mv edited answers
}

probe() { amap-probe-identity --members members --membership home/membership.json "$@" answers; }

@test "usage is sound" {
	usage_is_sound amap-probe-identity
	run -2 amap-probe-identity
	run -2 amap-probe-identity --members members answers
}

@test "the recorded sandbox is a PASS, whole" {
	run -0 probe
	assert_output '{"section":"members","id":"M1","subject":"alpha","claim":"alpha: its sandbox is the one that was recorded","outcome":"PASS","expected":{"workspace":"default","name":"alpha","id":"id-alpha"},"actual":{"workspace":"default","name":"alpha","id":"id-alpha"},"provenance":"membership.json","reason":null,"remedy":"an ID does not come back: amap-openshell deprovision alpha --apply, then provision alpha --apply","avoid":"do not edit membership.json to make the two agree"}
{"section":"members","id":"M1","subject":"beta","claim":"beta: its sandbox is the one that was recorded","outcome":"PASS","expected":{"workspace":"default","name":"beta","id":"id-beta"},"actual":{"workspace":"default","name":"beta","id":"id-beta"},"provenance":"membership.json","reason":null,"remedy":"an ID does not come back: amap-openshell deprovision beta --apply, then provision beta --apply","avoid":"do not edit membership.json to make the two agree"}
{"end":2}'
}

@test "another ID, name or workspace, or an unusable ID, is a FAIL" {
	for change in '.id = "id-new"' '.name = "beta"' '.workspace = "other"' '.id = ""' 'del(.id)' '.id = 7' \
	    '.id = "a b"' '.id = "id-alpha\n"' '.id = "id-alpha\u0000"'; do
		jq -c "if .ask == \"get\" and .subject == \"alpha\" then .stdout |= (fromjson | $change | tojson) else . end" \
		    answers >changed
		run -1 amap-probe-identity --members members --membership home/membership.json changed
		assert_equal "$(outcomes <<<"$output")" $'M1 alpha FAIL\nM1 beta PASS'
	done
}

@test "a member that is not recorded is a FAIL" {
	record home beta=id-beta
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'M1 alpha FAIL\nM1 beta PASS'
}

@test "a record that is absent or broken is UNKNOWN for all" {
	for content in '' '{' '[]' '{"version":2,"members":[]}'; do
		printf %s "$content" >home/membership.json
		run -1 probe
		assert_equal "$(outcomes <<<"$output")" $'M1 alpha UNKNOWN\nM1 beta UNKNOWN'
	done
	rm home/membership.json
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'M1 alpha UNKNOWN\nM1 beta UNKNOWN'
}

@test "absent is what a list that succeeded does not name; any doubt is UNKNOWN" {
	edit 'if .ask == "get" and .subject == "alpha" then .status = 1 | .stdout = "" | .stderr = "Error: gone\n" else . end'
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'M1 alpha UNKNOWN\nM1 beta PASS'
	assert_output --partial '"reason":"it is listed, but program: exit status 1: Error: gone"'
	edit 'if .ask == "list" then .stdout = "default/alphabet\nother/alpha\ndefault/beta\n" else . end'
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'M1 alpha FAIL\nM1 beta PASS'
	edit 'if .ask == "list" then .status = 1 else . end'
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'M1 alpha UNKNOWN\nM1 beta PASS'
}

@test "no answer, an answer that is no object, and a question never asked are UNKNOWN" {
	for change in '.status = null | .reason = "ran out of time"' '.stdout = "[]"' '.stdout = "no JSON"' '.stdout = ""' \
	    '.stdout = null' '.stdout = "{\"id\":\"id-alpha\",\"id\":\"id-alpha\"}"' '.ask = "other"'; do
		jq -c "if .ask == \"get\" and .subject == \"alpha\" then $change else . end" answers >changed
		run -1 amap-probe-identity --members members --membership home/membership.json changed
		assert_equal "$(outcomes <<<"$output")" $'M1 alpha UNKNOWN\nM1 beta PASS'
	done
}

@test "a list that may be cut proves no absence" {
	seq -f 'default/m%.0f' 100 >names
	{ sandbox beta id-beta; answer get alpha 1 '' 'not found'; answer list - 0 "$(cat names)"; } >answers
	ended answers
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'M1 alpha FAIL\nM1 beta PASS'
	run -1 probe --list-may-be-cut
	assert_equal "$(outcomes <<<"$output")" $'M1 alpha UNKNOWN\nM1 beta PASS'
}

@test "answers may stand in several files" {
	{ grep -e '"list"' answers; } >list
	ended list
	{ grep -e '"get"' answers; } >get
	ended get
	run -0 amap-probe-identity --members members --membership home/membership.json get list
	run -0 sh -c 'amap-probe-identity --members members --membership home/membership.json get - <list'
	run -2 amap-probe-identity --members members --membership home/membership.json get absent
}

@test "members that are not known are one UNKNOWN with the reason" {
	printf '{"problem":"fleet.json: it names nobody"}\n{"end":1}\n' >members
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" 'M1 - UNKNOWN'
	assert_output --partial '"reason":"fleet.json: it names nobody"'
	for content in '' '{"end":0}' '{"name":"alpha"}'; do
		printf '%s\n' "$content" >members
		run -1 probe
		assert_equal "$(outcomes <<<"$output")" 'M1 - UNKNOWN'
	done
}

@test "answers that are cut, and output that cannot be written, are exit 2" {
	head -c -5 answers >cut
	run -2 --separate-stderr amap-probe-identity --members members --membership home/membership.json cut
	assert_equal "${stderr:0:21}" 'amap-probe-identity: '
	run -2 sh -c 'amap-probe-identity --members members --membership home/membership.json answers >/dev/full'
	run -2 sh -c 'amap-probe-identity --members members --membership home/membership.json <&-'
}
