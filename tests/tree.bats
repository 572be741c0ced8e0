load common

member() {
	printf '{"name":"%s","workspace":"default","address":"%s@example.org","rows":[]}\n' "$1" "$1"
}

members() {
	for name; do member "$name"; done
	printf '{"end":%d}\n' $#
}

@test "usage, version, and a full standard output" {
	usage_is_sound amap-tree
	for words in "" "no-such" "lanes --home /x" "clear" "clear --home /x" "clear alpha" "clear --home / ../x" \
	    "clear --home / .x" "clear --home / a b" "teardown" "teardown --home / x"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr amap-tree $words
		[ -z "$output" ]
	done
}

@test "lanes: instances, then ten directories a member, in their order" {
	members beta alpha >members
	run -0 --separate-stderr amap-tree lanes members
	assert_equal "$(jq -r 'select(.path) | .path' <<<"$output")" "instances
$(for m in beta alpha; do
	printf 'instances/%s\n' $m $m/inbox $m/inbox/notices $m/inbox/messages $m/peer $m/peer/notices $m/peer/messages \
	    $m/outbox $m/outbox/results $m/outbox/processed
done)"
	assert_line '{"path":"instances","mode":null,"directory":true}'
	assert_line '{"path":"instances/beta/outbox/results","mode":null,"directory":true,"member":"beta"}'
	assert_equal "${lines[-1]}" '{"end":21}'
	[ -z "$stderr" ]
	run -0 amap-tree lanes - <members
	assert_equal "${lines[-1]}" '{"end":21}'
}

@test "lanes: of one member, given to an owner" {
	members beta alpha >members
	run -0 amap-tree lanes --member alpha --owner 5:6 members
	assert_equal "${#lines[@]}" 12
	assert_line '{"path":"instances","mode":null,"directory":true,"owner":"5:6"}'
	assert_line '{"path":"instances/alpha","mode":null,"directory":true,"member":"alpha","owner":"5:6"}'
	refute_line --partial beta
	run -2 --separate-stderr amap-tree lanes --member gamma members
	assert_equal "$stderr" 'amap-tree: gamma: no such member in the stream'
}

@test "lanes: a name that no directory could have" {
	for name in '' . .. a/b; do
		members "$name" >members
		run -2 amap-tree lanes members
	done
}

@test "clear: what deprovision takes away, in its order; the audit log and the lanes themselves stay" {
	mkdir -p home/router-state/alpha/{audit,held/sub,results,.hidden} home/router-state/beta/held home/instances
	touch home/router-state/alpha/{first-seen.json,seq,a,audit/log.jsonl,held/req-2.json,held/sub/req-1.json,results/r} \
	    home/router-state/beta/held/req-3.json
	run -0 --separate-stderr amap-tree clear --home home alpha
	assert_output '{"before":"held request router-state/alpha/held/req-2.json will be lost"}
{"before":"held request router-state/alpha/held/sub/req-1.json will be lost"}
{"path":"router-state/alpha/first-seen.json","remove":"any"}
{"path":"router-state/alpha/.hidden","remove":"any"}
{"path":"router-state/alpha/a","remove":"any"}
{"path":"router-state/alpha/held","remove":"any"}
{"path":"router-state/alpha/results","remove":"any"}
{"path":"router-state/alpha/seq","remove":"any"}
{"path":"instances/alpha/inbox/notices","remove":"contents"}
{"path":"instances/alpha/inbox/messages","remove":"contents"}
{"path":"instances/alpha/peer/notices","remove":"contents"}
{"path":"instances/alpha/peer/messages","remove":"contents"}
{"path":"instances/alpha/outbox/results","remove":"contents"}
{"path":"instances/alpha/outbox/processed","remove":"contents"}
{"end":14}'
	[ -z "$stderr" ]
	run -0 amap-tree clear --home home gamma
	assert_equal "${#lines[@]}" 7
}

@test "clear: hostile names and shapes" {
	mkdir -p home/router-state/alpha/held
	touch home/router-state/alpha/held/$'a\nb"c'
	ln -s / home/router-state/alpha/link
	mkfifo home/router-state/alpha/pipe
	run -0 amap-tree clear --home home alpha
	assert_line '{"before":"held request router-state/alpha/held/a\\x0ab\"c will be lost"}'
	assert_line '{"path":"router-state/alpha/link","remove":"any"}'
	touch home/router-state/alpha/$'\xff'
	run -2 --separate-stderr amap-tree clear --home home alpha
	assert_equal "$stderr" 'amap-tree: router-state/alpha/\xff: the name is not UTF-8; remove it by hand'
	rm home/router-state/alpha/$'\xff'
	(cd home/router-state/alpha && for _ in $(seq 40); do mkdir d && cd d || exit 1; done)
	run -2 --separate-stderr amap-tree clear --home home alpha
	assert_regex "$stderr" 'nested too deep'
	mv home/router-state/alpha moved
	ln -s "$PWD/moved" home/router-state/alpha
	run -1 --separate-stderr amap-tree clear --home home alpha
	assert_equal "$stderr" 'amap-tree: router-state/alpha: not a real directory; remove it by hand'
}

@test "teardown: what it takes away, and what it says before" {
	mkdir -p home/payload/bin home/router-state/{a,b}/{audit,held}
	touch home/payload/x home/payload/bin/y home/router-state/{a,b}/audit/log home/router-state/b/held/req-1.json
	run -0 amap-tree teardown --home home
	assert_output '{"before":"held request router-state/b/held/req-1.json will be lost"}
{"before":"router-state holds audit files (2 in all); copy them first if they are to be kept"}
{"before":"payload/ holds 2 file(s)"}
{"before":"router-state/ holds 3 file(s)"}
{"path":"payload","remove":"directory"}
{"path":"roster","remove":"directory"}
{"path":"router.json","remove":"file"}
{"path":"selected.json","remove":"file"}
{"path":"router-state","remove":"directory"}
{"end":9}'
	run -2 amap-tree teardown --home none
	ln -s home link
	run -2 amap-tree teardown --home link
}
