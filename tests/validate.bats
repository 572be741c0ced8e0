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

@test "each rule of each class, with the path of every offending member" {
	count=0
	while IFS=$'\t' read -r prefix filter want; do
		case $prefix in '#'* | '') continue ;; esac
		count=$((count + 1))
		jq -c "$filter" "$DATA/documents/$prefix.json" >"$prefix-x.json"
		run --separate-stderr amap-validate "$prefix-x.json"
		got=$(sed -E 's/^PASS .*/PASS/; s/^FAIL [^ ]* [^ ]* version refused: .*/VERSION/; s/^FAIL [^ ]* [^ ]* (.*): .*$/\1/' <<<"$output" | sed 's/: .*//' | xargs -d '\n')
		if [ "$got" != "$want" ] || [ "$status" -ne "$([ "$want" = PASS ]; echo $?)" ] || [ -n "$stderr" ]; then
			echo "$prefix: $filter" "want: $want" "got: $status $output $stderr" >&2
			return 1
		fi
	done <"$DATA/documents/cases.txt"
	[ "$count" -ge 130 ]
}

@test "the class: by option, by the prefix of the name, or none is known" {
	cp "$DATA/documents/peer.json" notice-live.json
	run -1 amap-validate notice-live.json
	run -0 amap-validate --class peer notice-live.json
	assert_output "PASS notice-live.json peer-notice"
	run -0 amap-validate --class peer-notice - <notice-live.json
	assert_output "PASS <stdin> peer-notice"
	mkdir request-x && cp notice-live.json request-x/live.json
	run -2 --separate-stderr amap-validate request-x/live.json
	assert_equal "$stderr" "amap-validate: request-x/live.json: no class is known for it; name one with --class"
	run -2 --separate-stderr amap-validate <notice-live.json
	run -2 --separate-stderr amap-validate --class nonsense notice-live.json
	assert_equal "$stderr" "amap-validate: --class nonsense: no such class; --list prints them"
}

@test "several files: each is judged, the worst decides" {
	cp "$DATA/documents/result.json" result-a.json
	jq -c 'del(.outcome)' result-a.json >result-b.json
	run -1 amap-validate result-a.json result-b.json result-a.json
	assert_output "PASS result-a.json result
FAIL result-b.json result \$.outcome: missing
PASS result-a.json result"
	run -2 --separate-stderr amap-validate result-a.json result-absent.json result-b.json
	assert_equal "${#lines[@]}" 2
	assert_equal "$stderr" "amap-validate: result-absent.json: No such file or directory"
	run -1 amap-validate -q result-b.json
	[ -z "$output" ]
}

@test "what is no strict JSON fails, and never repeats what stood there" {
	for bytes in '' '{' '{}x' '{"a":1,"a":2}' $'\xef\xbb\xbf{}' $'{"a":"\xff"}' '{"a":nan}' '{"a":"\ud800"}' '{"secret":"s3cr3t'; do
		printf '%s' "$bytes" >result-x.json
		run -1 --separate-stderr amap-validate result-x.json
		[[ $output == 'FAIL result-x.json result $: '* ]]
		[[ $output != *s3cr3t* ]]
		[ "${#lines[@]}" = 1 ]
	done
	printf '{}\0{}' >result-x.json
	run -1 amap-validate result-x.json
	size=$(stat -c %s "$DATA/documents/notice.json")
	for n in $(seq 0 37 "$size"); do
		head -c "$n" "$DATA/documents/notice.json" >notice-cut.json
		run -1 amap-validate notice-cut.json
	done
	head -c 17000000 /dev/zero >result-x.json
	run -1 amap-validate result-x.json
}

@test "names and members that would move a terminal are quoted" {
	jq -c '.["\u001b]0;x\u0007"] = 1' "$DATA/documents/request.json" >$'request-\e[31m.json'
	run -1 amap-validate request-*.json
	[[ $output != *$'\e'* ]]
	assert_output --partial 'request-\x1b[31m.json submit-request $.\x1b]0;x\x07'
	# a name is told as often as there are faults
	jq -c '.draft.attachments = [range(9) | {odd: 1}]' "$DATA/documents/request.json" >request-nine.json
	run -1 amap-validate request-nine.json
	assert_equal "$(cut -d ' ' -f 1-3 <<<"$output" | sort -u)" 'FAIL request-nine.json submit-request'
}

@test "--list: eight classes, and 21 items that no validator can check" {
	run -0 amap-validate --list
	assert_equal "$(grep -cE '^  [a-z-]+ +[a-z]+ ' <<<"$output")" 8
	assert_equal "$(sed '1,/^not checked here:/d' <<<"$output" | awk '{ print $1 }' | xargs)" \
	    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16a 16b 16c 16d 16e 16f"
	run -2 amap-validate --list x
	run -2 sh -c 'amap-validate --list >/dev/full'
	run -2 sh -c "amap-validate '$DATA/documents/../documents/request.json' --class request <&- >/dev/full"
}
