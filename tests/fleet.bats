load common

# policy TEXT: a whole object or text, or the members after workspace and domain.
policy() {
	case $1 in
	'{'* | '[]' | '"x"') printf '%s\n' "$1" ;;
	*) printf '{"workspace":"w","fleet_domain":"d",%s}\n' "$1" ;;
	esac
}

@test "amap-fleet answers the usual options" {
	usage_is_sound amap-fleet
}

@test "the plan has every key in its order, one line" {
	policy '"groups":{"crew":["carol","bob"]},"default_peers":["alice"],"peers":{"alice":["@crew"],"bob":["ALLOW_ANY"]},"task_graph":{"dave":["erin"]}' >fleet.json
	run -0 amap-fleet fleet.json
	assert_output '{"workspace":"w","domain":"d","router":"amap.router@d","members":[{"name":"alice","address":"alice@d","peers":["bob","carol"],"senders":[]},{"name":"bob","address":"bob@d","peers":["ALLOW_ANY"],"senders":[]},{"name":"carol","address":"carol@d","peers":["alice"],"senders":[]},{"name":"dave","address":"dave@d","peers":["alice"],"senders":["erin"]},{"name":"erin","address":"erin@d","peers":["alice"],"senders":[]}],"warnings":[{"kind":"one-sided","from":"dave","to":"alice"},{"kind":"one-sided","from":"erin","to":"alice"}],"overlaps":[]}'
	amap-fleet - <fleet.json | cmp - <(printf '%s\n' "$output")
}

@test "every rule of the policy is enforced, the first fault in the order of the checks is named" {
	grep -v '^#' "$DATA/fleet/refused.txt" >cases
	n=0
	while IFS='	' read -r want text; do
		n=$((n + 1))
		policy "$text" >fleet.json
		run -1 --separate-stderr amap-fleet fleet.json
		assert_equal "$text: $output$stderr" "$text: amap-fleet: fleet.json: $want"
	done <cases
	[ "$n" -eq "$(wc -l <cases)" ]
}

# The plan in the notation of resolved.txt.
notation() {
	jq -r '[(.members[] | "\(.name)<\(.senders | join(","))>\(if .peers == [] then "-" else .peers | join(",") end)"),
	    (.task_graph // empty), (.warnings[] | "~\(.from):\(.to)"), (.overlaps[] | "!\(.[0]):\(.[1])")] | join(" ")'
}

@test "mail and delegation resolve by the rules, and nothing is made symmetric" {
	grep -v '^#' "$DATA/fleet/resolved.txt" >cases
	n=0
	while IFS='	' read -r text want; do
		n=$((n + 1))
		policy "$text" >fleet.json
		assert_equal "$text: $(amap-fleet fleet.json | notation)" "$text: $want"
	done <cases
	[ "$n" -eq "$(wc -l <cases)" ]
}

record() {
	amap-membership record --workspace "${2:-w}" --name "$1" --id "id-$1" m >m.new && mv m.new m
}

@test "with --membership the recorded names are resolved, a dropped one with the default peers and no senders" {
	policy '"default_peers":["@all"],"peers":{"a":["@all"]},"task_graph":{"b":[]}' >fleet.json
	for name in a b z; do record "$name"; done
	run -0 sh -c 'amap-fleet --membership m fleet.json | jq -c .members,.warnings'
	assert_line --index 0 '[{"name":"a","address":"a@d","peers":["b","z"],"senders":[]},{"name":"b","address":"b@d","peers":["a","z"],"senders":[]},{"name":"z","address":"z@d","peers":["a","b"],"senders":[]}]'
	assert_line --index 1 '[{"kind":"not-in-policy","name":"z"}]'
	policy '"groups":{"g":["a","b"]},"task_graph":"ALL"' >fleet.json
	run -0 sh -c 'amap-fleet --membership m fleet.json | jq -c .task_graph'
	assert_output '"all"'
}

@test "with --membership a member that is not recorded, another workspace and an absent record are refused" {
	policy '"groups":{"g":["a","b","c"]}' >fleet.json
	run -1 --separate-stderr amap-fleet --membership m fleet.json
	assert_equal "$stderr" "amap-fleet: m: No such file or directory"
	record b
	run -1 --separate-stderr amap-fleet --membership m fleet.json
	[ -z "$output" ]
	assert_equal "$stderr" "amap-fleet: m: a is in the policy and not recorded; provision it first
amap-fleet: m: c is in the policy and not recorded; provision it first"
	rm m
	for name in a b c; do record "$name" other; done
	run -1 --separate-stderr amap-fleet --membership m fleet.json
	assert_equal "$stderr" "amap-fleet: m: its members are in workspace \"other\", the policy's is \"w\""
	printf '{"version":1,"members":[]}' >m
	run -1 --separate-stderr amap-fleet --membership m fleet.json
	assert_equal "${#stderr_lines[@]}" 3
}

@test "--explain names the lanes and the keys that decide" {
	policy '"groups":{"g":["e"]},"default_peers":["a"],"peers":{"a":["b"],"b":["a"],"c":["a"]},"task_graph":{"d":["a","b"]},"task_deny":[["b","d"]]' >fleet.json
	run -0 amap-fleet --explain a b fleet.json
	assert_output "a -> b: mail yes (peers.a lists b, peers.b lists a); delegation no (task_graph)"
	run -1 amap-fleet --explain c a fleet.json
	assert_output "c -> a: mail no (peers.c lists a, peers.a does not list c); delegation no (task_graph)"
	run -1 amap-fleet --explain e a fleet.json
	assert_output "e -> a: mail no (default_peers of e lists a, peers.a does not list e); delegation no (task_graph)"
	run -0 amap-fleet --explain a d fleet.json
	assert_output "a -> d: mail no (peers.a does not list d, default_peers of d lists a); delegation yes (task_graph.d)"
	run -1 amap-fleet --explain b d fleet.json
	assert_output "b -> d: mail no (peers.b does not list d, default_peers of d does not list b); delegation no (task_deny)"
	run -1 amap-fleet --explain a a fleet.json
	assert_output "a -> a: mail no, delegation no (a member does not reach itself)"
	run -2 --separate-stderr amap-fleet --explain a x fleet.json
	assert_equal "$output$stderr" "amap-fleet: x: the policy names no such member"
	run -2 amap-fleet --explain a
	run -0 amap-fleet --explain a b - <fleet.json
}

# Each line: the policy, FROM and TO, the answer; the status follows from it.
@test "--explain: on every lane, by ALLOW_ANY, a group, the wildcard, a denial that takes nothing away, a dropped member" {
	n=0
	while IFS='	' read -r text from to want; do
		n=$((n + 1))
		policy "$text" >fleet.json
		case $want in *' yes '*) status=0 ;; *) status=1 ;; esac
		run "-$status" --separate-stderr amap-fleet --explain "$from" "$to" fleet.json
		assert_equal "$text: $output$stderr" "$text: $from -> $to: $want"
	done <<'END'
"peers":{"a":["ALLOW_ANY"],"b":["a"]}	a	b	mail yes (peers.a lists b, peers.b lists a); delegation no (task_graph)
"default_peers":["ALLOW_ANY"],"peers":{"a":[],"b":["a"]}	a	b	mail no (peers.a does not list b, peers.b lists a); delegation no (task_graph)
"default_peers":["@g"],"groups":{"g":["a","b"]}	a	b	mail yes (default_peers of a lists b, default_peers of b lists a); delegation no (task_graph)
"groups":{"g":["a","b"]}	a	b	mail no (default_peers of a does not list b, default_peers of b does not list a); delegation no (task_graph)
"groups":{"g":["a","b"]},"task_graph":"ALL"	a	b	mail no (default_peers of a does not list b, default_peers of b does not list a); delegation yes (task_graph)
"groups":{"g":["a","b"]},"task_graph":"ALL","task_deny":[["b","a"]]	a	b	mail no (default_peers of a does not list b, default_peers of b does not list a); delegation yes (task_graph)
"groups":{"g":["a","b"]},"task_graph":"ALL","task_deny":[["b","a"]]	b	a	mail no (default_peers of b does not list a, default_peers of a does not list b); delegation no (task_deny)
"task_graph":{"b":["c"]},"task_deny":[["a","b"]]	a	b	mail no (default_peers of a does not list b, default_peers of b does not list a); delegation no (task_graph.b)
"peers":{"a":["b"],"b":["a"]},"task_graph":{"b":["a"]}	a	b	mail yes (peers.a lists b, peers.b lists a); delegation yes (task_graph.b)
END
	[ "$n" -eq 9 ]
	for name in a b z; do record "$name"; done
	policy '"default_peers":["@all"],"groups":{"g":["a","b"]},"peers":{"b":[]}' >fleet.json
	run -0 amap-fleet --membership m --explain a z fleet.json
	assert_output "a -> z: mail yes (default_peers of a lists z, default_peers of z lists a); delegation no (task_graph)"
	run -2 amap-fleet --explain a z fleet.json
}

@test "what is no regular file is refused; a link only when it must not be followed" {
	policy '"groups":{"g":["a"]}' >fleet.json
	ln -s fleet.json link
	run -0 amap-fleet link
	run -1 amap-fleet --no-follow link
	assert_output "amap-fleet: link: a symbolic link where a file should stand"
	mkfifo fifo
	run -1 amap-fleet fifo
	assert_output "amap-fleet: fifo: not a regular file"
	run -1 amap-fleet .
	assert_output "amap-fleet: .: not a regular file"
	run -1 amap-fleet none
	assert_output "amap-fleet: none: No such file or directory"
	run -1 amap-fleet fleet.json/none
	ln -s loop loop
	run -1 amap-fleet loop
	run -2 sh -c 'amap-fleet <&-'
	assert_output "amap-fleet: <stdin>: Bad file descriptor"
	run -2 sh -c 'amap-fleet fleet.json >/dev/full'
	assert_output "amap-fleet: standard output: No space left on device"
	if [ "$(id -u)" -ne 0 ]; then
		chmod 0 fleet.json
		run -2 amap-fleet fleet.json
		assert_output "amap-fleet: fleet.json: Permission denied"
	fi
}

@test "names that differ by case are refused, not merged" {
	policy '"groups":{"g":["alpha","Alpha"]}' >fleet.json
	run -1 amap-fleet fleet.json
	assert_output 'amap-fleet: fleet.json: groups.g: "Alpha": it holds a character other than a-z, 0-9 and "-"'
}

@test "ten thousand members, and a full mesh of them, are planned in seconds" {
	awk 'BEGIN { printf "{\"workspace\":\"w\",\"fleet_domain\":\"d\",\"task_graph\":\"ALL\",\"peers\":{"
	    for (i = 0; i < 10000; i++) printf "%s\"m%d\":[]", i ? "," : "", i; print "}}" }' >fleet.json
	amap-fleet fleet.json >plan
	assert_equal "$(grep -o '"senders":\["ALL"\]' plan | wc -l)" 10000
	amap-lanes --home /srv/amap plan | tail -n 1 >end
	assert_equal "$(cat end)" '{"end":10000}'
	amap-render-router --home /srv/amap plan | grep -c . >lines
	assert_equal "$(cat lines)" 7
}

@test "a policy of ten megabytes is read, one of more than sixteen is refused" {
	printf '{"x":"%s","workspace":"w","fleet_domain":"d","groups":{"g":["a"]}}' "$(head -c 10000000 /dev/zero | tr '\0' x)" >fleet.json
	run -0 sh -c 'amap-fleet fleet.json | jq -r ".members[].name"'
	assert_output a
	head -c 16777217 /dev/zero | tr '\0' ' ' >fleet.json
	run -1 amap-fleet fleet.json
	assert_output "amap-fleet: fleet.json: larger than 16777216 bytes"
}
