load common
load evidence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	fleet "$PWD/home"
	mkdir sources
	echo one >sources/one
	echo two >sources/two
	cp sources/one home/payload/one
	cp sources/two home/payload/bin/two
	chmod 644 sources/* home/payload/one
	chmod 755 home/payload/bin/two
	files one 0644 bin/two 0755
	answer list - 0 $'default/alpha\ndefault/beta\nother/stranger\n' >answers
	ended answers
}

# files PATH MODE...: the stream that install publishes the payload from.
files() {
	{
		echo '{"path":"payload","mode":"0755","directory":true}'
		while [ $# -gt 0 ]; do
			jq -nc --arg p "payload/$1" --arg m "$2" --arg s "$PWD/sources/${1##*/}" '{path: $p, mode: $m, source: $s}'
			shift 2
		done
		echo '{"path":"fleet.json","mode":"0644","content":"x"}'
	} >files
	ended files
}

probe() { amap-probe-install --home "$PWD/home" --payload files --members members "$@" answers; }

# only CHECK: its outcome is this line, the other three are PASS.
only() {
	assert_equal "$(outcomes <<<"$output" | grep -v PASS)" "$1"
	assert_equal "$(outcomes <<<"$output" | wc -l)" 4
}

# finding: what is said of the one check that is no PASS.
finding() { amap-verdict <<<"$output" | grep -E '^(NOT|UNKNOWN)' | sed 's/ — .*//'; }

@test "usage is sound" {
	usage_is_sound amap-probe-install
	run -2 amap-probe-install answers
	run -2 amap-probe-install --home absent --payload files --members members answers
}

@test "what install made is four times PASS" {
	run -0 probe
	assert_equal "$(outcomes <<<"$output")" $'I1 - PASS\nI2 - PASS\nI3 - PASS\nI4 - PASS'
	sum=$(sha256sum <sources/one | cut -d ' ' -f 1)
	assert_equal "$(jq -r 'select(.id == "I1") | .actual.one' <<<"$output")" "0644 $sum"
	printf '%s\n' "$output" >checks
	sound checks
}

@test "a payload byte, mode, file, link or special file that is not its source's is named" {
	echo ONE >home/payload/one
	run -1 probe
	only 'I1 - FAIL'
	assert_regex "$(finding)" '^NOT the payload is exactly its sources: one: expected "0644 [0-9a-f]{64}", found "0644 [0-9a-f]{64}" '
	cp sources/one home/payload/one
	chmod 600 home/payload/one
	run -1 probe
	assert_regex "$(finding)" 'one: expected "0644 [0-9a-f]{64}", found "0600 '
	rm home/payload/one
	run -1 probe
	assert_regex "$(finding)" 'missing one: expected'
	ln -s "$PWD/sources/one" home/payload/one
	run -1 probe
	assert_regex "$(finding)" "one: expected \"0644 [0-9a-f]{64}\", found \"symlink to $PWD/sources/one\""
	rm home/payload/one
	mkfifo home/payload/one
	run -1 probe
	assert_regex "$(finding)" 'found "neither a file nor a directory"'
	rm home/payload/one
	cp sources/one home/payload/one
	mkdir -p home/payload/deep/down
	echo x >home/payload/deep/down/extra
	run -1 probe
	assert_regex "$(finding)" 'unexpected deep/down/extra: found "0644 '
	rm -r home/payload/deep
	run -0 probe
}

@test "an absent payload, or a link in its place, is an empty one" {
	mv home/payload elsewhere
	run -1 probe
	assert_equal "$(outcomes <<<"$output" | grep -v PASS)" $'I1 - FAIL\nI2 - FAIL'
	assert_equal "$(jq -c 'select(.id == "I1") | .actual' <<<"$output")" '{}'
	ln -s ../elsewhere home/payload
	run -1 probe
	assert_equal "$(outcomes <<<"$output" | grep -v PASS)" $'I1 - FAIL\nI2 - FAIL'
}

@test "a source that cannot be read is UNKNOWN" {
	rm sources/two
	run -1 probe
	only 'I1 - UNKNOWN'
	assert_equal "$(finding)" "UNKNOWN whether the payload is exactly its sources: its source $PWD/sources/two: No such file or directory"
	mkdir sources/two
	run -1 probe
	only 'I1 - UNKNOWN'
	head -c -5 files >cut
	mv cut files
	run -1 probe
	only 'I1 - UNKNOWN'
	rm files
	run -1 probe
	only 'I1 - UNKNOWN'
}

@test "an installed file that cannot be read is UNKNOWN" {
	[ "$(id -u)" -ne 0 ] || skip 'root reads everything'
	chmod 0 home/payload/one
	run -1 probe
	only 'I1 - UNKNOWN'
	chmod 644 home/payload/one
	chmod 0 home/payload/bin
	run -1 probe
	chmod 755 home/payload/bin
	assert_equal "$(outcomes <<<"$output" | head -n 1)" 'I1 - UNKNOWN'
}

@test "a directory of the layout that is missing, a file or a link is named" {
	for dir in roster instances policies commands router-state payload/bin; do
		mv "home/$dir" elsewhere
		run -1 probe
		assert_equal "$(jq -c 'select(.id == "I2") | [.outcome, .expected - .actual]' <<<"$output")" "[\"FAIL\",[\"$dir\"]]"
		ln -s "$PWD/elsewhere" "home/$dir"
		run -1 probe
		assert_equal "$(jq -c 'select(.id == "I2") | [.outcome, .expected - .actual]' <<<"$output")" "[\"FAIL\",[\"$dir\"]]"
		rm "home/$dir"
		mv elsewhere "home/$dir"
	done
}

@test "an unrecorded member and a recorded stranger are FAILs; an empty record too; an absent one is UNKNOWN" {
	record home alpha=id-alpha
	run -1 probe
	only 'I3 - FAIL'
	record home alpha=id-alpha beta=id-beta gamma=id-gamma
	run -1 probe
	only 'I3 - FAIL'
	assert_regex "$(finding)" ': found \["gamma"\] '
	echo '{"version":1,"members":[]}' >home/membership.json
	run -1 probe
	only 'I3 - FAIL'
	rm home/membership.json
	run -1 probe
	only 'I3 - UNKNOWN'
	echo '{' >home/membership.json
	run -1 probe
	only 'I3 - UNKNOWN'
}

@test "a stray sandbox is named, and a list that failed is UNKNOWN" {
	answer list - 0 $'default/alpha\ndefault/stray\nother/x\n' >answers
	ended answers
	run -1 probe
	only 'I4 - FAIL'
	assert_regex "$(finding)" ': found \["stray"\] '
	answer list - 1 $'default/alpha\n' 'gateway unreachable' >answers
	ended answers
	run -1 probe
	only 'I4 - UNKNOWN'
	echo '{"end":0}' >answers
	run -1 probe
	only 'I4 - UNKNOWN'
	answer list - 0 '' >answers
	ended answers
	run -0 probe
}

@test "members that are not known make I3 and I4 UNKNOWN" {
	printf '{"problem":"fleet.json: no members"}\n{"end":1}\n' >members
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'I1 - PASS\nI2 - PASS\nI3 - UNKNOWN\nI4 - UNKNOWN'
}

@test "output that cannot be written is exit 2" {
	run -2 sh -c 'amap-probe-install --home home --payload files --members members answers >/dev/full'
}
