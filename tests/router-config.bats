load common
load router

router() {
	amap-router --config c.json "$@"
}

@test "every rule of the configuration, and the first broken one is named" {
	count=0
	while IFS=$'\t' read -r config want; do
		case $config in '#'*) continue ;; esac
		printf '%s' "${config//@/$PWD}" >c.json
		count=$((count + 1))
		case $want in
		"ok "*)
			run -0 router check-config
			assert_output "c.json: sound, ${want#ok } instances"
			;;
		*)
			run -2 --separate-stderr router check-config
			[ -z "$output" ]
			if [[ $stderr != "router: config error: c.json: "*"$want"* || $stderr == *$'\n'* ]]; then
				echo "config: $config" "want: $want" "got: $stderr" >&2
				false
			fi
			;;
		esac
	done <"$DATA/router/config.txt"
	[ "$count" -ge 90 ]
}

@test "25.1 a configuration that is not UTF-8, missing or cut is one error line and exit 2" {
	printf '{"state_dir":"\xff"}' >c.json
	run -2 --separate-stderr router check-config
	assert_equal "$stderr" "router: config error: c.json: line 1: not UTF-8"
	run -2 --separate-stderr amap-router --config absent.json once
	assert_equal "$stderr" "router: config error: absent.json: No such file or directory"
	fleet '"task_graph":"all"' alpha beta
	text=$(<home/router.json)
	for ((n = 0; n < ${#text}; n++)); do
		printf '%s' "${text:0:n}" >c.json
		status=0
		router check-config >/dev/null 2>&1 || status=$?
		assert_equal "$n: $status" "$n: 2"
	done
}

@test "discovery: what each directory and each verdict leads to, in the report's order" {
	fleet '"peer_senders":{"ghost":["alpha"],"alpha":["beta","declined"]}' alpha beta
	mkdir home/instances/{waiting,.hidden,ALPHA,amap.router} home/router-state/alpha
	printf 'bad\nname' | xargs -0 -I{} mkdir home/instances/{}
	ln -s alpha home/instances/linked
	touch home/instances/file
	jq -nc '{selected: [{slug: "alpha"}, {slug: "beta"}, {slug: "ALPHA"}, {slug: "gone"}, {slug: "linked"}, 7, {slug: 8}],
	    not_selected: [{slug: "declined"}]}' >home/selected.json
	run -0 amap-router --config home/router.json peers
	assert_output 'alpha
    tasked by: beta
    mail with: nobody
beta
    tasked by: nobody
    mail with: nobody
discovery:
    SKIPPED  .hidden: not a valid instance name
    SKIPPED  ALPHA: another directory has this name in other letter case, and state of its own
    SKIPPED  amap.router: the router'"'"'s own name
    SKIPPED  bad\x0aname: not a valid instance name
    NO VERDICT  waiting: the verdict file does not select it; left alone
    ** NO DIRECTORY  gone: selected, but it has no directory **
    ** NO DIRECTORY  linked: selected, but it has no directory **
    ** INERT EDGE  ghost: an edge names it, and no verdict does; a typo? **
       INERT EDGE  declined: an edge names it, and it is not admitted'
}

@test "two directories that differ in case: the one with state, else the first" {
	fleet '' Alpha alpha
	run -0 amap-router --config home/router.json peers --json
	assert_output '{"Alpha@fleet.example":[]}'
	mkdir home/router-state/alpha
	run -0 amap-router --config home/router.json peers --json
	assert_output '{"alpha@fleet.example":[]}'
}

@test "a verdict that cannot be read admits nobody and is not an empty fleet" {
	fleet '"task_graph":"all"' alpha beta
	run -0 once
	printf '{"selected":[{"slug":' >home/selected.json
	run -0 --separate-stderr once --json
	assert_output '{}'
	run -1 --separate-stderr amap-router --config home/router.json peers --json
	[ -z "$output" ]
	run -0 amap-router --config home/router.json check-config
	assert_output "home/router.json: sound, 0 instances"
	for verdict in '[]' '7' $'\xff' ''; do
		printf '%s' "$verdict" >home/selected.json
		run -0 amap-router --config home/router.json peers
		assert_line --partial '    ** VERDICT UNAVAILABLE: '
	done
	printf '{}' >home/selected.json
	run -0 amap-router --config home/router.json peers
	assert_line --partial '    NO VERDICT  alpha: '
}

@test "25.11 instances that cannot be listed are their own condition, not an empty fleet" {
	fleet '"task_graph":"all"' alpha
	mv home/instances home/away
	run -0 amap-router --config home/router.json peers
	assert_line --partial '    ** INSTANCES UNREADABLE: '
	refute_output --partial 'NO DIRECTORY'
}

@test "27.17 25.1 reload: a bad file, also one not UTF-8, keeps the last good one; another state_dir is refused; a member appears" {
	fleet '"task_graph":"all"' alpha beta
	start_router 60
	cp home/router.json good.json
	printf '{' >home/router.json
	kill -HUP "$router"
	eventually grep -q 'config error: line 1: .*; the last good configuration stays' log
	sed 's/}$/,"peers":{"\xff":[]}}/' good.json >home/router.json
	kill -HUP "$router"
	eventually grep -q 'config error: line 1: not UTF-8; the last good configuration stays' log
	sed 's/router-state/other-state/' good.json >home/router.json
	kill -HUP "$router"
	eventually grep -q 'state_dir: changed' log
	request alpha 1 beta
	eventually test -s home/instances/alpha/outbox/results/1.json
	assert_equal "$(verdict alpha 1)" "accepted peer_routed"
	cp good.json home/router.json
	mkdir -p home/instances/gamma/{inbox,peer}/{notices,messages} home/instances/gamma/outbox
	select_members alpha beta gamma
	kill -HUP "$router"
	eventually grep -q 'instance added: gamma' log
	eventually test -s home/router-state/gamma/first-seen.json
	request gamma 1 beta
	eventually test -s home/instances/gamma/outbox/results/1.json
	assert_equal "$(verdict gamma 1)" "accepted peer_routed"
	[ ! -e home/other-state ]
}

@test "25.6 an interval must be a positive number" {
	fleet '' alpha
	for interval in 0 -1 nan inf 1e9 x '' 5x; do
		run -2 --separate-stderr amap-router --config home/router.json run --interval "$interval"
		[ -z "$output" ]
	done
	[ ! -e home/router-state/status.json ]
}

@test "27.16 mounts: parents first, the verdict by its directory, the roster only when it is real" {
	fleet '"intake_dir":"'"$PWD"'/home/intake"' alpha
	mkdir home/intake
	run -0 amap-router --config home/router.json mounts
	assert_output "$PWD/home	ro
$PWD/home/router-state	rw
$PWD/home/intake	rw
$PWD/home/instances	rw
$PWD/home/roster	rw"
	mv home/roster home/r && ln -s r home/roster
	run -0 amap-router --config home/router.json mounts
	refute_output --partial roster
	rm -r home/roster home/intake home/router-state
	run -1 --separate-stderr amap-router --config home/router.json mounts
	[ -z "$output" ]
	assert_equal "$(wc -l <<<"$stderr")" 2
	printf '{' >c.json
	run -1 router mounts
}

@test "mounts of an authored fleet: each root, sorted by name" {
	mkdir state b a
	printf '{"state_dir":"%s/state","instances":{"beta":{"handoff_dir":"%s/a"},"alpha":{"handoff_dir":"%s/b"}}}' "$PWD" "$PWD" "$PWD" >c.json
	run -0 router mounts
	assert_output "$PWD/state	rw
$PWD/b	rw
$PWD/a	rw"
}

@test "reload: a member whose root is another from now on gets its mail there" {
	mkdir -p state a/outbox a/inbox b/inbox new/inbox
	policy() {
		jq -nc --arg d "$PWD" --arg b "$1" '{state_dir: ($d + "/state"), mail_graph: "all",
		    instances: {alpha: {handoff_dir: ($d + "/a")}, beta: {handoff_dir: ($d + "/" + $b)}}}' >c.new
		mv c.new c.json
	}
	policy b
	task() { printf '{"contract_version":"2","req_id":"%s","draft":{"to":["agent.beta@local"],"subject":"","body_text":""}}' "$1" >a/outbox/.t; mv a/outbox/.t a/outbox/req-"$1".json; }
	amap-router --config c.json run --interval 60 >log 2>&1 3>&- &
	router=$!
	eventually test -s state/status.json
	task 1
	eventually test -s a/outbox/results/1.json
	policy new
	kill -HUP "$router"
	reloaded() { [ "$(jq .polls state/status.json)" = 2 ]; }
	eventually reloaded
	task 2
	eventually test -s a/outbox/results/2.json
	assert_equal "$(find b/inbox/notices -type f | wc -l) $(find new/inbox/notices -type f | wc -l)" "1 1"
}
