load common

key=sk-ant-0123456789abcdefghijklmnopqrstuvwxyz

record() {
	amap-record --dir evidence --step 6 --run 20260101T000000Z "$@" 3<<<"$key"
}

@test "usage, version, and a full standard output" {
	usage_is_sound amap-record
	usage_is_sound amap-redact
	run -2 amap-record --dir d --step 1 --run r --label l
	run -2 amap-record --dir d --step x --run r --label l -- true
	run -2 amap-record --dir d --step 1 --run r/s --label l -- true
	run -2 amap-record --dir d --step 1 --run r --label l --timeout 0x -- true
	run -2 amap-redact --secrets-fd 99
	run -2 amap-redact --secrets-fd -1
	run -2 sh -c 'echo x | amap-redact >/dev/full'
}

@test "redact: the key, its end, the token, and what stands behind their names" {
	while IFS='|' read -r in out; do
		run -0 bash -c 'amap-redact --secrets-fd 3 3<<<"$1"' bash "$key" <<<"$in"
		assert_output "$out"
	done <<CASES
nothing here|nothing here
a $key b|a [REDACTED] b
$key$key|[REDACTED][REDACTED]
x${key: -20}y|x[REDACTED]y
x${key: -19}y|x${key: -19}y
${key:0:20}|${key:0:20}
ANTHROPIC_API_KEY=abc def|ANTHROPIC_API_KEY=[REDACTED] def
export ANTHROPIC_API_KEY="a b"|export ANTHROPIC_API_KEY="[REDACTED] b"
ANTHROPIC_API_KEY: abc|ANTHROPIC_API_KEY: [REDACTED]
"ANTHROPIC_API_KEY":"abc","x":1|"ANTHROPIC_API_KEY":"[REDACTED]","x":1
CLAUDE_CODE_MESSAGING_TOKEN = 'q'|CLAUDE_CODE_MESSAGING_TOKEN = '[REDACTED]'
{"peerToken": "t"}|{"peerToken": "[REDACTED]"}
{"x":"{\\"peerToken\\": \\"t\\"}"}|{"x":"{\\"peerToken\\": \\"[REDACTED]\\"}"}
ANTHROPIC_API_KEY is not set|ANTHROPIC_API_KEY is not set
ANTHROPIC_API_KEY=|ANTHROPIC_API_KEY=
CASES
	CLAUDE_CODE_MESSAGING_TOKEN=tok123 run -0 amap-redact <<<'see tok123'
	assert_output 'see [REDACTED]'
	run -0 amap-redact < <(printf 'no newline')
	assert_output 'no newline'
	printf 'a\0%s\0b\xff\n' "$key" >bytes
	amap-redact --secrets-fd 3 <bytes 3<<<"$key" | cmp - <(printf 'a\0[REDACTED]\0b\xff\n')
}

@test "redact: a log is appended to, private, and no link" {
	amap-redact --log log <<<one >/dev/null
	amap-redact --log log --secrets-fd 3 <<<"two $key" 3<<<"$key" >/dev/null
	assert_equal "$(cat log)" "one
two [REDACTED]"
	assert_equal "$(stat -c %a log)" 600
	ln -s log link
	run -2 amap-redact --log link <<<x
	mkfifo pipe
	run -2 amap-redact --log pipe <<<x
}

@test "record: what it ran, when, how it ended and what it said, without the key, in private files" {
	run -3 --separate-stderr record --label 'Docker BUILD, of it' --secrets-fd 3 -- \
	    sh -c "cat; echo out $key; echo err $key >&2; exit 3"
	assert_output 'out [REDACTED]'
	assert_equal "$stderr" 'err [REDACTED]'
	file=evidence/step-6/20260101T000000Z-001-docker-build--of-it.json
	assert_equal "$(jq -c 'del(.started, .ended, .seconds, .cwd)' $file)" \
	    '{"kind":"command","step":6,"check":null,"label":"Docker BUILD, of it","argv":["sh","-c","cat; echo out [REDACTED]; echo err [REDACTED] >&2; exit 3"],"exit":3,"timed_out":false,"stdout":"out [REDACTED]\n","stderr":"err [REDACTED]\n"}'
	assert_equal "$(jq -r 'keys_unsorted | join(" ")' $file)" \
	    'kind step check label argv cwd started ended seconds exit timed_out stdout stderr'
	assert_regex "$(jq -r .started $file)" '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z$'
	assert_equal "$(jq -r .cwd $file)" "$PWD"
	assert_equal "$(stat -c %a evidence evidence/step-6 $file | paste -sd ' ')" '700 700 600'
	run -1 grep -r "$key" evidence
	run -1 grep -r "${key: -20}" evidence
}

@test "record: a taken name gets the next number, nothing is written twice" {
	for _ in 1 2 3; do
		record --label same -- true
	done
	assert_equal "$(ls evidence/step-6)" "20260101T000000Z-001-same.json
20260101T000000Z-002-same.json
20260101T000000Z-003-same.json"
	ln -s "$PWD/elsewhere" evidence/step-6/20260101T000000Z-004-same.json
	record --label same -- true
	[ ! -e elsewhere ]
	[ -f evidence/step-6/20260101T000000Z-005-same.json ]
}

@test "record: out of time, killed, not there, left running" {
	timed
	run -124 record --label slow --timeout 1 -- sh -c 'sleep 60 & sleep 60'
	run -143 record --label killed -- sh -c 'kill -TERM $$'
	run -127 record --label absent -- no-such-program
	run -126 record --label dir -- /etc
	assert_equal "$(jq -c '[.exit, .timed_out]' evidence/step-6/*-slow.json)" '[null,true]'
	assert_equal "$(jq -c '[.exit, .timed_out]' evidence/step-6/*-killed.json)" '[null,false]'
	SECONDS=0
	run -0 record --label daemon -- sh -c 'sleep 6 & echo started'
	assert_output started
	[ $SECONDS -lt 5 ]
}

@test "record: a long output is kept by its tail" {
	run -0 record --label long -- sh -c 'head -c 3000000 /dev/zero | tr "\0" x; echo END'
	[ "${#output}" -ge 1048576 ]
	[ "${output: -5}" = xxEND ]
	assert_equal "$(jq '.stdout | length' evidence/step-6/*-long.json)" 1048587
	assert_equal "$(jq -r '.stdout[:12]' evidence/step-6/*-long.json)" '[truncated]x'
	assert_equal "$(jq -r '.stdout[-5:]' evidence/step-6/*-long.json)" 'xEND'
}

@test "record: a link or a file in place of its directories is refused" {
	mkdir elsewhere
	ln -s elsewhere evidence
	run -125 record --label x -- true
	rm evidence
	mkdir evidence
	ln -s "$PWD/elsewhere" evidence/step-6
	run -125 record --label x -- true
	rm evidence/step-6
	: >evidence/step-6
	run -125 record --label x -- true
	run -125 amap-record --dir /proc/none --step 1 --run r --label x -- true
	assert_equal "$(ls -A elsewhere)" ''
}
