load common
load evidence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	fleet "$PWD/home"
	echo '{"endpoints":[{"host":"api.anthropic.com","port":443}]}' >profile
	amap-render-policy --member alpha --run-as 1000:1000 <members >policy
	cat >>policy <<-'END'
		network_policies:
		  _provider_x:
		    name: x
		    endpoints:
		    - host: api.anthropic.com
		      port: 443
		    binaries:
		    - path: /usr/bin/node
	END
	ask
}

# ask: the policy is what both members answer.
ask() {
	for name in alpha beta; do
		sandbox "$name" "id-$name"
		answer policy "$name" 0 "$(cat policy)"
	done >answers
	ended answers
}

probe() { amap-probe-policy --members members --profile profile answers; }

@test "usage is sound" {
	usage_is_sound amap-probe-policy
	run -2 amap-probe-policy answers
}

@test "the policy as OpenShell shows it is a PASS: paths added, quotes gone, any indent" {
	run -0 probe
	assert_equal "$(outcomes <<<"$output")" $'M2 alpha PASS\nM3 alpha PASS\nM2 beta PASS\nM3 beta PASS'
	printf '%s\n' "$output" >checks
	sound checks
	sed -e 's/^    - "\(.*\)"/  - \1/' -e '/^  read_only:/a\  - /var/added' policy >plain
	mv plain policy
	ask
	run -0 probe
}

# Each line: a sed script on the policy, then the outcomes of M2 and M3.
@test "each fault of a policy is its own" {
	cp policy good
	while IFS=@ read -r script m2 m3; do
		sed "$script" good >policy
		ask
		run -1 probe
		assert_equal "$(outcomes <<<"$output" | head -n 2 | sed 's/.* //' | paste -sd ' ')" "$m2 $m3"
	done <<-'END'
		/lanes\/inbox/d@FAIL@PASS
		/lanes\/outbox/d@FAIL@PASS
		s,    - "/opt/amap/roster",,; /read_write:/a\    - "/opt/amap/roster"@FAIL@PASS
		/read_write:/a\    - "/opt/amap/lanes/peer"@FAIL@PASS
		/read_write:/a\    - "/opt/amap"@FAIL@PASS
		/read_write:/a\    - "/"@FAIL@PASS
		s,/lanes/inbox",/lanes/inbox/",@FAIL@PASS
		/read_write:/,/outbox/d@UNKNOWN@PASS
		s/^filesystem_policy:/other:/@UNKNOWN@FAIL
		$a\network: {}@PASS@FAIL
		$a\run: x@PASS@FAIL
		s/api.anthropic.com/mail.example.org/@PASS@FAIL
		s/- host: \(.*\)/- host: '*'/@PASS@FAIL
		s/^    - host:.*/&\n    - host: evil.example.org/@PASS@FAIL
		s/- host:.*/- protocol: rest/@PASS@FAIL
		s/- host:.*/- {host: evil.example.org}\n    - host: api.anthropic.com/@PASS@FAIL
		$a\version: 1@UNKNOWN@UNKNOWN
		s/^version: 1/version: \&a 1/@UNKNOWN@UNKNOWN
		s/^version: 1/x/@UNKNOWN@UNKNOWN
		d@UNKNOWN@UNKNOWN
		1,$c\[a]@UNKNOWN@UNKNOWN
		1,$c\text@UNKNOWN@UNKNOWN
	END
}

@test "B37 a writable path above a read-only mount is named" {
	sed -i '/read_write:/a\    - "/opt/amap/lanes"' policy
	ask
	run -1 probe
	assert_equal "$(jq -r 'select(.id == "M2" and .subject == "alpha") | .actual["/opt/amap/lanes/inbox"]' <<<"$output")" \
	    'read_only, below the writable /opt/amap/lanes'
}

@test "what is found names keys and hosts" {
	sed -i -e '$a\network: x' -e 's/api.anthropic.com/a.example.org/' policy
	ask
	run -1 probe
	assert_equal "$(jq -c 'select(.id == "M3" and .subject == "alpha") | .actual' <<<"$output")" '["key network","host a.example.org"]'
}

@test "without a profile no host is allowed, and one that cannot be read is UNKNOWN" {
	run -1 amap-probe-policy --members members answers
	assert_equal "$(outcomes <<<"$output" | head -n 2)" $'M2 alpha PASS\nM3 alpha FAIL'
	for content in '{' '[]' '{}'; do
		echo "$content" >profile
		run -1 probe
		assert_equal "$(outcomes <<<"$output" | head -n 2)" $'M2 alpha PASS\nM3 alpha UNKNOWN'
	done
}

@test "an embedded sandbox has no interface but the loopback; that is read from its process" {
	unshare --user --map-root-user --net true || skip 'no network namespace can be made here'
	unshare --user --map-root-user --net sleep 60 3>&- &
	pid=$!
	eventually eval '[ "$(cat /proc/$pid/comm)" = sleep ]'
	grep -v '^{"end"' answers >open
	array() { jq -nc --argjson p "$1" '[{State: {Pid: $p}, Mountinfo: ""}]'; }
	{ cat open; answer inspect alpha 0 "$(array $pid)"; answer inspect beta 0 "$(array $pid)"; } >answers
	ended answers
	run -0 probe
	kill $pid
	others=$(sed -n 's/^ *\([^: ]*\):.*/\1/p' /proc/net/dev | grep -v -x lo | paste -sd ' ')
	{ cat open; answer inspect alpha 0 "$(array $$)"; answer inspect beta 0 "$(array 4194304)"; } >answers
	ended answers
	run -1 probe
	assert_equal "$(outcomes <<<"$output" | grep 'M3 beta')" 'M3 beta UNKNOWN'
	[ -z "$others" ] || assert_equal "$(jq -c 'select(.id == "M3" and .subject == "alpha") | .actual' <<<"$output")" "[\"interface $others\"]"
}

@test "no policy, and a sandbox that get does not show, are UNKNOWN" {
	jq -c 'if .ask == "policy" and .subject == "alpha" then .status = 1 | .stderr = "no active policy\n" else . end' answers >none
	run -1 amap-probe-policy --members members --profile profile none
	assert_equal "$(outcomes <<<"$output")" $'M2 alpha UNKNOWN\nM3 alpha UNKNOWN\nM2 beta PASS\nM3 beta PASS'
	jq -c 'if .ask == "get" and .subject == "alpha" then .stdout = "[]" else . end' answers >none
	run -1 amap-probe-policy --members members --profile profile none
	assert_equal "$(outcomes <<<"$output")" $'M2 alpha UNKNOWN\nM3 alpha UNKNOWN\nM2 beta PASS\nM3 beta PASS'
}

@test "answers that are cut, and output that cannot be written, are exit 2" {
	head -c -5 answers >cut
	run -2 amap-probe-policy --members members cut
	run -2 sh -c 'amap-probe-policy --members members answers >/dev/full'
}
