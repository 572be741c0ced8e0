load common
load evidence

outbox=/srv/amap/instances/alpha/outbox
prefix='amap-openshell interceptor: '

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	info='{"extensions":[{"kind":"gateway-interceptor","configured_name":"amap-openshell-mounts","name":"x"}]}'
}

# probe INFO-STATUS INFO CREATE-STATUS OUT ERR
probe() {
	{ answer gateway-info - "$1" "$2"; answer probe-create - "$3" "$4" "$5"; } >answers
	ended answers
	amap-probe-interceptor --source "$outbox" answers
}

@test "usage is sound" {
	usage_is_sound amap-probe-interceptor
	run -2 amap-probe-interceptor answers
}

@test "V2: the list of extensions decides" {
	refusal="status: PermissionDenied, message: \"${prefix}bind source $outbox ...\""
	run -0 probe 0 "$info" 1 '' "$refusal"
	assert_equal "$(outcomes <<<"$output")" $'V2 - PASS\nV3 - PASS'
	while IFS=@ read -r status document outcome; do
		run -1 probe "$status" "$document" 1 '' "$refusal"
		assert_equal "$(outcomes <<<"$output" | head -n 1)" "V2 - $outcome"
	done <<-'END'
		0@{"extensions":[]}@FAIL
		0@{"extensions":[{"kind":"other","configured_name":"amap-openshell-mounts"}]}@FAIL
		0@{"extensions":[{"kind":"gateway-interceptor","configured_name":"other"}]}@FAIL
		0@{"extensions":[{"kind":"gateway-interceptor","name":"amap-openshell-mounts"}]}@FAIL
		0@{"extensions":["amap-openshell-mounts",7]}@FAIL
		0@{"extensions":{}}@UNKNOWN
		0@{}@UNKNOWN
		0@[]@UNKNOWN
		0@no JSON@UNKNOWN
		1@{"extensions":[]}@UNKNOWN
		-@{"extensions":[]}@UNKNOWN
	END
}

@test "V3: who refused the create, and why, is read from the refusal" {
	wrapped="Error:   × code: 'The caller does not have permission', message: \"amap-openshell
  │ interceptor: mounts[0].source: /srv/amap/instances/
  │ alpha/outbox is not one of the member's own\""
	while IFS=@ read -r code text outcome actual; do
		[ "$text" != WRAPPED ] || text=$wrapped
		rc=1
		[ "$outcome" != PASS ] || rc=0
		for stream in out err; do
			if [ $stream = out ]; then run -$rc probe 0 "$info" "$code" "$text" ''
			else run -$rc probe 0 "$info" "$code" '' "$text"; fi
			assert_equal "$(outcomes <<<"$output" | tail -n 1)" "V3 - $outcome"
			[ -z "$actual" ] || assert_equal "$(jq -r 'select(.id == "V3") | .actual' <<<"$output")" "$actual"
		done
	done <<-END
		1@WRAPPED@PASS@refused by the interceptor
		1@status: PermissionDenied, message: "${prefix}bind source $outbox ..."@PASS@refused by the interceptor
		1@${prefix}name: not a member@FAIL@refused by the interceptor, but not for the outbox
		1@gateway interceptor 'amap-openshell-mounts' failed closed: transport error@FAIL@the interceptor failed closed
		1@status: InvalidArgument, message: "invalid docker driver_config: unknown field"@FAIL@refused by the gateway, not the interceptor
		2@usage@FAIL@refused by the gateway, not the interceptor
		1@@FAIL@refused by the gateway, not the interceptor
		0@Created sandbox@FAIL@created: nothing refused it
		0@${prefix}$outbox@FAIL@created: nothing refused it
		-@${prefix}$outbox@UNKNOWN@
	END
}

@test "the remedy quotes the first line that was said, and says what to delete" {
	run -1 probe 0 "$info" 1 '' $'\n  \nError: \e[1mno\nmore'
	assert_equal "$(jq -r 'select(.id == "V3") | .remedy' <<<"$output")" \
	    'the interceptor must run and be registered; the gateway said: Error: \x1b[1mno'
	run -1 probe 0 "$info" 0 'made it' ''
	assert_regex "$(jq -r 'select(.id == "V3") | .remedy' <<<"$output")" '^delete the probe yourself .*the gateway said: made it$'
}

@test "nothing asked is UNKNOWN twice" {
	echo '{"end":0}' >answers
	run -1 amap-probe-interceptor --source "$outbox" answers
	assert_equal "$(outcomes <<<"$output")" $'V2 - UNKNOWN\nV3 - UNKNOWN'
	echo '{"end":1}' >answers
	run -2 amap-probe-interceptor --source "$outbox" answers
	run -2 sh -c 'echo "{\"end\":0}" | amap-probe-interceptor --source /x >/dev/full'
}
