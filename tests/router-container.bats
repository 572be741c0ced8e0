# The router in a container of a real Docker engine, as sh/router-start.sh starts it.
load common
load router
load docker

setup_file() {
	start_engine || return 0
}

teardown_file() {
	stop_engine
}

setup() {
	needs_engine
	cd "$BATS_TEST_TMPDIR" || return
	U=64123
}

teardown() {
	[ -n "${NO_ENGINE-}" ] || docker rm -f amap-router-local >/dev/null 2>&1
}

# The agents' and the router's one user owns what it is to write in.
own() {
	chown -R $U:$U home/instances home/roster home/router-state
}

start() {
	sh "$TOP/sh/router-start.sh" --config home/router.json --user $U:$U "$@"
}

started() {
	start --detach --interval "${1:-60}"
	eventually test -s home/router-state/status.json
}

@test "a delegation is delivered by a router without network, capabilities, shell, or anything to write but its own" {
	fleet '"peer_senders":{"beta":["alpha"]}' alpha beta
	own
	started
	request alpha 1 beta
	eventually test -s home/instances/alpha/outbox/results/1.json
	assert_equal "$(verdict alpha 1)" "accepted peer_routed"
	assert_equal "$(stat -c '%u:%g %a' home/instances/beta/peer/notices/notice-*.json)" "$U:$U 600"
	docker kill --signal HUP amap-router-local
	eventually status_is .totals.found_by_event 1
	documents_are_sound

	# What docker was told, and what the kernel says of the process.
	assert_equal "$(docker inspect amap-router-local | jq -c '.[0] | [.HostConfig.NetworkMode, .HostConfig.RestartPolicy.Name,
	    .HostConfig.ReadonlyRootfs, .HostConfig.CapDrop, .HostConfig.SecurityOpt, .Config.User, .Config.Tty, .Config.Cmd]')" \
	    "[\"none\",\"unless-stopped\",true,[\"ALL\"],[\"no-new-privileges\"],\"$U:$U\",false,[\"run\"]]"
	assert_equal "$(docker inspect amap-router-local | jq -r '.[0].Config.Env[] | select(startswith("ROUTER"))' | sort)" \
	    "ROUTER_CONFIG=$PWD/home/router.json
ROUTER_INTERVAL=60"
	assert_equal "$(docker inspect amap-router-local | jq -r '.[0].Mounts[] | "\(.Source) \(.Destination) \(.RW)"' | sort)" \
	    "$(amap-router --config home/router.json mounts | sed 's/^\([^\t]*\)\t/\1 \1\t/; s/\tro$/ false/; s/\trw$/ true/' | sort)"
	pid=$(docker inspect --format '{{.State.Pid}}' amap-router-local)
	assert_equal "$(awk '/^(Uid|Gid|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):/ { print $1, $2 }' /proc/"$pid"/status)" \
	    "Uid: $U
Gid: $U
CapInh: 0000000000000000
CapPrm: 0000000000000000
CapEff: 0000000000000000
CapBnd: 0000000000000000
CapAmb: 0000000000000000
NoNewPrivs: 1
Seccomp: 2"
	assert_equal "$(awk -F: 'NR > 2 { gsub(" ", "", $1); print $1 }' /proc/"$pid"/net/dev)" lo
	assert_equal "$(awk '$5 == "/" { split($6, o, ","); print o[1] }' /proc/"$pid"/mountinfo)" ro

	# What the image holds: the program and its libraries, and what docker itself puts there.
	run ! docker exec amap-router-local sh -c true
	assert_equal "$(docker export amap-router-local | tar -t | grep '[^/]$' |
	    grep -vE '^(amap-router|(usr/)?lib.*\.so\.[0-9]+|etc/(hosts|hostname|resolv.conf|mtab)|\.dockerenv|dev/.*)$')" ""
	run -0 docker exec amap-router-local /amap-router status --check
	run -0 docker inspect --format '{{json .Config.Healthcheck.Test}}' amap-router-local
	assert_output '["CMD","/amap-router","status","--check"]'
}

@test "22.4 SIGTERM ends it with exit 0; what it knows outlives the container; a policy that is renamed into place is read" {
	timed
	fleet '"peer_senders":{"beta":["alpha"]}' alpha beta
	own
	started 60
	cp home/router-state/alpha/first-seen.json marker
	request alpha 1 alpha
	eventually test -s home/instances/alpha/outbox/results/1.json
	SECONDS=0
	docker stop --time 20 amap-router-local
	[ "$SECONDS" -lt 10 ]
	assert_equal "$(docker inspect --format '{{.State.Status}} {{.State.ExitCode}}' amap-router-local)" "exited 0"
	docker logs amap-router-local 2>&1 | tail -n 1 | grep -q 'router stopped'
	cmp home/router-state/alpha/first-seen.json marker

	# Started again under its name. The configuration is seen by its directory, never as one pinned file.
	docker start amap-router-local
	eventually status_is .polls 1
	jq '.peer_senders = {alpha: ["beta"]}' home/router.json >home/new
	mv home/new home/router.json
	docker kill --signal HUP amap-router-local
	eventually status_is .polls 2
	request alpha 2 beta
	request beta 1 alpha
	eventually test -s home/instances/alpha/outbox/results/2.json -a -s home/instances/beta/outbox/results/1.json
	assert_equal "$(verdict alpha 2), $(verdict beta 1)" "queued_for_human recipient_not_allowlisted, accepted peer_routed"
	assert_equal "$(docker ps --all --format '{{.Names}}')" amap-router-local
	run -125 start --detach
	assert_output --partial 'amap-router-local" is already in use'
}

@test "27.16 one command in a container of its own: its document on standard output, its exit status, no terminal" {
	fleet '"peer_senders":{"beta":["alpha"]}' alpha beta
	own
	run -1 --separate-stderr start -- status --json
	[ -z "$output" ]
	run -0 --separate-stderr start -- once --json
	assert_equal "$(jq -c '[.alpha.first_sight, .beta.first_sight]' <<<"$output")" '[1,1]'
	cp home/router-state/alpha/first-seen.json marker
	request alpha 1 beta
	run -0 --separate-stderr start -- once --json
	assert_equal "$(jq -c '[.alpha.accepted, .beta.first_sight]' <<<"$output")" '[1,0]'
	cmp home/router-state/alpha/first-seen.json marker
	run -0 --separate-stderr start -- peers --json
	assert_equal "$(jq -c . <<<"$output")" '{"alpha@fleet.example":[],"beta@fleet.example":["alpha@fleet.example"]}'
	run -0 --separate-stderr start -- provision beta --format json
	assert_equal "$output" "$(amap-router --config home/router.json provision beta --format json)"
	run -0 --separate-stderr start -- mounts
	assert_equal "$output" "$(amap-router --config home/router.json mounts)"
	run -0 --separate-stderr start -- check "$PWD/home/router-state"
	run -1 --separate-stderr start -- status --check
	assert_regex "$stderr" '^unhealthy: '
	assert_equal "$(docker ps --all --quiet)" ""

	# While a router runs, under another name; a terminal only for who has one on both sides.
	script -qefc "sh '$TOP/sh/router-start.sh' --config home/router.json --user $U:$U --name amap-router-local" typed </dev/null >/dev/null 3>&- &
	eventually test -s home/router-state/status.json
	assert_equal "$(docker inspect --format '{{.Config.Tty}} {{.HostConfig.AutoRemove}} {{.HostConfig.RestartPolicy.Name}}' amap-router-local)" "true true no"
	run -0 --separate-stderr start -- status --check
	assert_regex "$output" '^healthy: '
	run -0 --separate-stderr start -- status
	assert_line --index 1 "alpha  drained=0 accepted=0 rejected=0 for_human=0 quarantined=0 errors=0"
	docker stop amap-router-local
	wait
	assert_equal "$(docker ps --all --quiet)" ""
}

@test "what cannot be is refused with exit 2 before docker is asked for a container" {
	fleet '' alpha
	own
	refused() {
		run -2 --separate-stderr env "${@:2}"
		assert_regex "$stderr" "$1"
		assert_equal "$(docker ps --all --quiet)" ""
	}
	script="sh $TOP/sh/router-start.sh"
	refused '^router-start.sh: --config: needed' $script
	refused '^router-start.sh: --config: not a file' $script --config home/none --user $U:$U
	refused '^router-start.sh: --config: not a file' $script --config home --user $U:$U
	refused 'the router does not run as root$' $script --config home/router.json
	refused 'the router does not run as root$' $script --config home/router.json --user 0:$U
	for user in x $U $U: :$U a:b -1:5 5:-1 1:2:3; do
		refused "--user $user: not UID:GID" $script --config home/router.json --user $user
	done
	for command in reset shell sh ''; do
		refused 'not a command for a container' $script --config home/router.json --user $U:$U -- "$command" --all
	done
	refused 'value must follow' $script --config home/router.json --user
	refused 'unexpected' $script --config home/router.json status
	mkdir a:b
	cp home/router.json a:b/
	refused 'docker takes no path with a colon' $script --config a:b/router.json --user $U:$U
	rm -r home/roster home/instances
	refused '^amap-router: .*/home/instances: not a directory' $script --config home/router.json --user $U:$U
}

@test "a configuration outside of the mounted directories is mounted by itself, read-only; paths with spaces" {
	mkdir 'a home' && cd 'a home'
	fleet '"task_graph":"all"' alpha beta
	own
	mv home/router.json 'the policy.json'
	run -0 --separate-stderr sh "$TOP/sh/router-start.sh" --config 'the policy.json' --user $U:$U --detach --interval 0.5 --image other
	eventually test -s home/router-state/status.json
	assert_equal "$(docker inspect amap-router-local | jq -r '.[0].Mounts[] | select(.Destination | endswith(".json")) | "\(.Source) \(.RW)"')" \
	    "$PWD/the policy.json false"
	assert_equal "$(docker inspect amap-router-local | jq -r '.[0].Config.Image')" other
	request beta 1 alpha
	eventually test -s home/instances/beta/outbox/results/1.json
	assert_equal "$(verdict beta 1)" "accepted peer_routed"
}
