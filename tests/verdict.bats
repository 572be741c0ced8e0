load common

# check SECTION ID SUBJECT OUTCOME CLAIM: one sound record.
check() {
	jq -nc --arg s "$1" --arg i "$2" --arg m "$3" --arg o "$4" --arg c "$5" '{section: $s, id: $i,
	    subject: (if $m == "-" then null else $m end), claim: $c, outcome: $o, expected: true,
	    actual: ($o == "PASS"), provenance: "the test", reason: (if $o == "UNKNOWN" then "no answer" else null end),
	    remedy: "mend it", avoid: null}'
}

# ended FILE: closes a stream of that file's lines.
ended() { printf '{"end":%d}\n' "$(wc -l <"$1")" >>"$1"; }

@test "usage is sound" {
	usage_is_sound amap-verdict
	run -2 amap-verdict --format html
	run -2 amap-verdict absent
}

@test "the report: sections in their order, then findings, then warnings" {
	{
		check router-health H2 - FAIL 'it is fresh'
		check members M10 beta PASS 'beta: ten'
		check members M2 beta UNKNOWN 'beta: two'
		check members M1 alpha PASS 'alpha: one'
		echo '{"section":"router-health","warning":"a name is retired"}'
		check install I1 - PASS 'the payload is right'
	} >in
	ended in
	run -1 amap-verdict <in
	assert_output "install: the installed payload and layout
  PASS    the payload is right
members: each member
  PASS    alpha: one
  UNKNOWN beta: two
  PASS    beta: ten
router-health: the router's health
  FAIL    it is fresh
UNKNOWN whether beta: two: no answer — mend it
NOT it is fresh: expected true, found false (expected from the test) — mend it
warning: a name is retired"
}

@test "exit 0 only when a check ran and all are PASS" {
	check install I1 - PASS a >in
	ended in
	run -0 amap-verdict in
	echo '{"section":"install","warning":"w"}' >>in
	echo '{"end":1}' >>in
	run -0 amap-verdict in
	assert_line 'warning: w'
	check install I2 - UNKNOWN a >>in
	echo '{"end":1}' >>in
	run -1 amap-verdict in
	echo '{"end":0}' >in
	run -1 amap-verdict in
	assert_output ""
}

@test "the wrong fix is named once, whichever way it begins" {
	check install I1 - FAIL a | jq -c '.avoid = "Do not edit it"' >in
	check install I2 - FAIL b | jq -c '.avoid = "editing it"' >>in
	ended in
	run -1 amap-verdict in
	assert_line 'NOT a: expected true, found false (expected from the test) — mend it (Do not edit it)'
	assert_line 'NOT b: expected true, found false (expected from the test) — mend it (do not: editing it)'
}

@test "a difference names the rows" {
	while IFS= read -r row; do
		{
			check install I1 - FAIL c | jq -c --argjson row "$row" '.expected = $row.expected | .actual = $row.actual'
			echo '{"end":1}'
		} >in
		run -1 amap-verdict in
		assert_line "NOT c: $(jq -r .text <<<"$row") (expected from the test) — mend it"
	done <"$DATA/verify/difference.jsonl"
}

@test "a value longer than 400 characters is cut to 397 and dots" {
	{
		check install I1 - FAIL c | jq -c '.expected = "x" * 500 | .actual = "y" * 398'
		echo '{"end":1}'
	} >in
	run -1 amap-verdict in
	assert_line "NOT c: expected \"$(printf 'x%.0s' $(seq 396))..., found \"$(printf 'y%.0s' $(seq 398))\" (expected from the test) — mend it"
}

@test "B14 bytes that a terminal obeys are printed as what they are" {
	{
		check install I1 - FAIL c | jq -c '.claim = "a\u001b[2Jb\nc\u202e\u009bé"'
		echo '{"end":1}'
	} >in
	run -1 amap-verdict in
	assert_line '  FAIL    a\x1b[2Jb\x0ac\xe2\x80\xae\xc2\x9bé'
	for form in tap junit nagios prometheus; do
		run -1 amap-verdict --format $form in
		refute_output --partial $'\e'
		refute_output --partial $'\u202e'
	done
}

@test "a stream that is cut is an UNKNOWN, at every byte" {
	{ check install I1 - PASS a; check install I2 - PASS b; echo '{"end":2}'; } >in
	run -0 amap-verdict in
	size=$(wc -c <in)
	for n in $(seq 0 23 $((size - 1))) $((size - 1)); do
		head -c "$n" in >cut
		run -1 amap-verdict install=cut
		assert_line '  UNKNOWN every check of this part was made'
	done
}

@test "a named section without a check is UNKNOWN, whoever was silent" {
	{ check install I1 - PASS a; echo '{"end":1}'; } >in
	echo '{"end":0}' >empty
	: >nothing
	run -1 amap-verdict install=in members=empty gateway=nothing
	assert_line '  PASS    a'
	assert_line 'UNKNOWN whether every check of this part was made: no probe printed a check — run verify again and look at what its probes say on standard error'
	assert_line 'UNKNOWN whether every check of this part was made: nothing: the stream is cut: no {"end":COUNT} line closes it — run verify again and look at what its probes say on standard error'
	run -0 amap-verdict install=in install=empty
}

@test "what is no sound record is an UNKNOWN, never dropped" {
	for row in '{"section":"install"}' '{"section":"install","id":"I1","claim":"c","outcome":"OK"}' \
	    '{"section":"install","id":"I1","claim":"c","outcome":"FAIL","remedy":""}' \
	    '{"section":"install","id":"I1","claim":"c","outcome":"UNKNOWN","remedy":"r"}' \
	    '{"section":"install","claim":"c","outcome":"PASS"}' '{"outcome":"PASS","id":"x","claim":"c"}' \
	    '{"section":"install","id":"I1","claim":"a\u0000b","outcome":"PASS"}' '{}' '[]' '{' '"x"'; do
		printf '%s\n{"end":1}\n' "$row" >in
		run -1 amap-verdict install=in
		assert_line --partial '  UNKNOWN '
	done
}

@test "a check without its two sides is still printed" {
	printf '{"section":"install","id":"I1","claim":"c","outcome":"FAIL","remedy":"r"}\n{"end":1}\n' >in
	run -1 amap-verdict in
	assert_line 'NOT c: expected null, found null (expected from the claim itself) — r'
}

@test "jsonl is a checks stream again, in the report's order" {
	{ check members M2 beta PASS b; check install I1 - PASS a; echo '{"section":"x","warning":"w"}'; echo '{"end":3}'; } >in
	run -0 amap-verdict --format jsonl in
	assert_line --index 0 --partial '"id":"I1"'
	assert_line --index 1 --partial '"id":"M2"'
	assert_line --index 2 '{"section":"x","warning":"w"}'
	assert_line --index 3 '{"end":3}'
	printf '%s\n' "$output" >again
	run -0 amap-verdict --format jsonl again
	assert_equal "$output" "$(cat again)"
}

@test "the forms for other programs, whole" {
	{
		check install I1 - PASS 'a & b'
		check install I2 - FAIL 'c #1 "d" <e> | f \'
		check members M1 alpha UNKNOWN 'alpha: g'
		echo '{"section":"x","warning":"w"}'
	} >in
	ended in
	run -1 amap-verdict --format tap in
	assert_output 'TAP version 13
1..3
ok 1 - install I1 a & b
not ok 2 - install I2 c \#1 "d" <e> | f \\
# NOT c #1 "d" <e> | f \: expected true, found false (expected from the test) — mend it
not ok 3 - members M1 alpha: g
# UNKNOWN whether alpha: g: no answer — mend it
# warning: w'
	run -1 amap-verdict --format junit in
	assert_output '<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1" errors="1">
  <testsuite name="install" tests="2" failures="1" errors="0">
    <testcase classname="amap.install" name="I1 a &amp; b"/>
    <testcase classname="amap.install" name="I2 c #1 &quot;d&quot; &lt;e&gt; | f \">
      <failure message="NOT c #1 &quot;d&quot; &lt;e&gt; | f \: expected true, found false (expected from the test) — mend it"/>
    </testcase>
  </testsuite>
  <testsuite name="members" tests="1" failures="0" errors="1">
    <testcase classname="amap.members" name="M1 alpha: g">
      <error message="UNKNOWN whether alpha: g: no answer — mend it"/>
    </testcase>
  </testsuite>
</testsuites>'
	run -1 amap-verdict --format nagios in
	assert_output 'AMAP CRITICAL - 1 of 3 checks pass|pass=1 fail=1 unknown=1
NOT c #1 "d" <e> / f \: expected true, found false (expected from the test) — mend it
UNKNOWN whether alpha: g: no answer — mend it'
	run -1 amap-verdict --format prometheus in
	assert_output '# HELP amap_checks Checks of the last verify, by outcome.
# TYPE amap_checks gauge
amap_checks{outcome="PASS"} 1
amap_checks{outcome="FAIL"} 1
amap_checks{outcome="UNKNOWN"} 1
# HELP amap_check_pass 1 when the check is a PASS, 0 when it is a FAIL or an UNKNOWN.
# TYPE amap_check_pass gauge
amap_check_pass{section="install",id="I1",member="",outcome="PASS"} 1
amap_check_pass{section="install",id="I2",member="",outcome="FAIL"} 0
amap_check_pass{section="members",id="M1",member="alpha",outcome="UNKNOWN"} 0'
}

@test "output that cannot be written is exit 2, and no input is 1" {
	{ check install I1 - PASS a; echo '{"end":1}'; } >in
	run -2 sh -c 'amap-verdict in >/dev/full'
	run -2 sh -c 'amap-verdict in >&-'
	run -1 sh -c 'amap-verdict <&-'
}
