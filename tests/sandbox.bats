load common
load sandbox

@test "amap-sandbox answers the usual options" {
	usage_is_sound amap-sandbox
}

@test "create, get, list, exec, stop, start, delete: the life of a sandbox" {
	run -0 --separate-stderr box one
	assert_output "Created sandbox: one"
	[ -z "$stderr" ]
	run -0 amap-sandbox sandbox list --names
	assert_output "one"
	run -0 amap-sandbox sandbox list --all-workspaces --names
	assert_output "default/one"
	run -0 amap-sandbox sandbox list --all-workspaces -o json
	id=$(jq -r '.[0].id' <<<"$output")
	run -0 amap-sandbox sandbox get one --output json
	run -0 jq -r '.id, .name, .workspace, .phase, .restart_policy, .exit_code' <<<"$output"
	assert_output "$id
one
default
Ready
never
null"
	run -0 inside one sh -c 'echo kept >/sandbox/file; echo gone >/tmp/file; pwd'
	assert_output "/sandbox"
	run -0 amap-sandbox sandbox stop one
	assert_output "✓ Stopped sandbox one"
	refused "sandbox 'one' is not ready (phase: Stopped); wait for it to reach Ready state" inside one true
	refused "sandbox must be Ready to stop (current phase: Stopped)" amap-sandbox sandbox stop one
	run -0 amap-sandbox sandbox start one
	assert_output "✓ Started sandbox one"
	refused "sandbox must be Stopped to start (current phase: Ready)" amap-sandbox sandbox start one
	run -1 inside one cat /sandbox/file /tmp/file
	assert_output "kept
cat: /tmp/file: No such file or directory"
	run -0 amap-sandbox sandbox list --ids
	assert_output "$id"
	run -0 amap-sandbox sandbox delete one
	assert_output "✓ Deleted sandbox one"
	run -0 amap-sandbox sandbox delete one
	assert_output "! Sandbox one not found"
	run -0 amap-sandbox sandbox list --names
	assert_output ""
	run -0 amap-sandbox sandbox list
	assert_output "No sandboxes found."
	run -0 find state -mindepth 2 -not -path 'state/etc/*'
	assert_output ""
}

@test "every create has a new ID" {
	box one
	first=$(amap-sandbox sandbox list --ids)
	amap-sandbox sandbox delete one
	box one
	[ "$(amap-sandbox sandbox list --ids)" != "$first" ]
}

@test "exec passes the status on; its own failures are 1, a timeout is 124" {
	box one
	run -7 inside one sh -c 'exit 7'
	run -137 inside one sh -c 'kill -9 $$'
	run -124 amap-sandbox sandbox exec --name one --no-tty --no-login-shell --timeout 1 -- sleep 60
	run -127 inside one no-such-command
	run -126 inside one /etc/passwd
	run -0 amap-sandbox sandbox exec --name one --no-tty -- sh -c 'echo "$1"' sh "a  'b"
	assert_output "a  'b"
	refused "sandbox not found" inside nobody true
	run -2 amap-sandbox sandbox exec --name one --no-tty --
	run -2 amap-sandbox sandbox exec --name one --no-such-option -- true
}

@test "exec hands on standard input, an environment and a directory" {
	box one --env FROM_CREATE=1
	run -0 sh -c 'seq 100000 | amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- cksum'
	assert_output "$(seq 100000 | cksum)"
	run -0 amap-sandbox sandbox exec --name one --no-tty --no-login-shell --env A=b=c --workdir /usr -- sh -c 'echo "$A $FROM_CREATE"; pwd'
	assert_output "b=c 1
/usr"
	refused "/nowhere: No such file or directory" amap-sandbox sandbox exec --name one --no-tty --no-login-shell --workdir /nowhere -- true
}

@test "the environment inside is the sandbox's own, not the caller's" {
	SECRET=x ANTHROPIC_API_KEY=sk box one
	run -0 env SECRET=x ANTHROPIC_API_KEY=sk amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- env
	run -0 sort <<<"$output"
	assert_output "HOME=/sandbox
LANG=C.UTF-8
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER=sandbox"
}

@test "a member has its lanes, read-only but for the outbox, and only its own" {
	fleet alpha beta
	member alpha
	for lane in payload roster lanes/inbox lanes/peer; do
		run -2 inside alpha sh -c "echo x >/opt/amap/$lane/new"
		assert_output "sh: 1: cannot create /opt/amap/$lane/new: Read-only file system"
	done
	inside alpha sh -c 'echo request >/opt/amap/lanes/outbox/new'
	[ "$(cat home/instances/alpha/outbox/new)" = request ]
	run -0 inside alpha cat /opt/amap/lanes/inbox/file
	assert_output "secret"
	run -2 inside alpha ls "$home/instances/beta"
	refused "amap-openshell interceptor: name: alpha2 is not a member of the fleet; mounts[0].source: $home/instances/beta/outbox is not one of" \
		box alpha2 --driver-config-json "$(driver beta | jq -c '.docker.mounts |= map(select(.target | endswith("outbox")))')"
	refused "amap-openshell interceptor:" amap-sandbox sandbox create --name beta --detach --no-tty \
		--driver-config-json "$(driver beta | jq -c '.docker.mounts[2].read_only = false')" -- true
	run -0 amap-sandbox sandbox list --names
	assert_output "alpha"
}

@test "ps and inspect tell of what runs, from the running process" {
	fleet alpha
	member alpha
	id=$(amap-sandbox sandbox list --ids)
	run -0 amap-sandbox ps -q --filter "label=openshell.ai/sandbox-id=$id"
	assert_output "$id"
	amap-sandbox inspect "$id" >inspect
	pid=$(jq '.[0].State.Pid' inspect)
	[ "$(jq -r '.[0].Mountinfo' inspect)" = "$(cat /proc/"$pid"/mountinfo)
" ] || diff <(jq -j '.[0].Mountinfo' inspect) /proc/"$pid"/mountinfo
	run -0 jq -c '.[0] | .State.Running, .State.Status, .Config.Labels, .HostConfig' inspect
	assert_output "true
\"running\"
{\"openshell.ai/managed-by\":\"openshell\",\"openshell.ai/sandbox-id\":\"$id\",\"openshell.ai/sandbox-name\":\"alpha\",\"openshell.ai/sandbox-workspace\":\"default\"}
{\"NetworkMode\":\"none\",\"RestartPolicy\":{\"Name\":\"no\"}}"
	amap-sandbox sandbox stop alpha
	run -0 amap-sandbox ps -q --filter "label=openshell.ai/sandbox-id=$id"
	assert_output ""
	run -0 amap-sandbox inspect "$id"
	run -0 jq -c '.[0] | .State.Running, .Mountinfo' <<<"$output"
	assert_output "false
null"
	run -1 --separate-stderr amap-sandbox inspect nobody
	assert_output "[]"
	assert_equal "$stderr" "Error: No such object: nobody"
}

@test "a service sees exactly its mounts, runs once, and is restarted" {
	mkdir -p data/in data/out "data/another place"
	touch "data/another place/seen"
	[ "$(id -u)" -ne 0 ] || chown -R "$run_as" data
	printf '%s\tro\n%s\trw\n%s\tro\t/opt/other\n' "$PWD/data/in" "$PWD/data/out" "$PWD/data/another place" >mounts
	run -0 amap-sandbox service start router --mounts mounts --restart unless-stopped -- \
		sh -c "touch $PWD/data/in/x; ls $PWD/data/out /opt/other; id -u; echo up >>$PWD/data/out/log; [ \$(wc -l <$PWD/data/out/log) -ge 2 ] && exec sleep 600"
	assert_output "✓ Started service router"
	run -1 amap-sandbox service start router --mounts mounts -- true
	assert_output "amap-sandbox: service router: runs already: stop it first with amap-sandbox service stop router"
	eventually sh -c '[ "$(grep -c up data/out/log)" -eq 2 ]'
	run -0 amap-sandbox ps --all --filter 'name=^router$' --format '{{.Names}}'
	assert_output "router"
	eventually sh -c 'amap-sandbox inspect router | grep -q "\"Running\": true"'
	run -0 jq -r '.[0] | .Name, .HostConfig.RestartPolicy.Name' <<<"$(amap-sandbox inspect router)"
	assert_output "/router
unless-stopped"
	run -0 amap-sandbox logs router
	assert_output --partial "] [sandbox] [INFO ] [main] touch: cannot touch '$PWD/data/in/x': Read-only file system"
	assert_output --partial "[main] log"
	assert_output --partial "[main] seen"
	refute_output --partial "denied"
	assert_output --partial "[main] ${run_as%%:*}"
	run -0 amap-sandbox service stop router
	run -0 amap-sandbox service list
	assert_output "router	Stopped	0"
	run -0 amap-sandbox service delete router
	run -0 amap-sandbox service list
	assert_output ""
}

@test "exec: 1024 words, 32 KiB each, 256 KiB in all, and no directory with a newline" {
	box one
	exec_one() { amap-sandbox sandbox exec --name one --no-tty --no-login-shell "$@" </dev/null; }
	word() { printf "%${1}s" x | tr ' ' x; }
	run -0 exec_one -- sh -c 'echo $# ${#1}' sh "$(word 32768)"
	assert_output "1 32768"
	# shellcheck disable=SC2046
	run -0 exec_one -- sh -c 'echo $#' sh $(seq 1020)
	assert_output 1020
	too_much='command exceeds 1024 arguments, 32768 bytes each or 262144 bytes in all'
	refused "$too_much" exec_one -- echo "$(word 32769)"
	# shellcheck disable=SC2046
	refused "$too_much" exec_one -- echo $(seq 1024)
	big=$(word 32768)
	refused "$too_much" exec_one -- echo "$big" "$big" "$big" "$big" "$big" "$big" "$big" "$big" x
	refused "workdir must not contain newlines" exec_one --workdir "a
b" -- true
}

@test "exec: a timeout takes what the command has started with it; none is no limit" {
	box one
	run -124 amap-sandbox sandbox exec --name one --no-tty --no-login-shell --timeout 1 -- sh -c 'sleep 601 & sleep 602' </dev/null
	run -1 inside one pgrep -f 'sleep 60[12]'
	run -3 amap-sandbox sandbox exec --name one --no-tty --no-login-shell --timeout 0 -- sh -c 'sleep 0.2; exit 3' </dev/null
	run -2 amap-sandbox sandbox exec --name one --timeout -1 -- true
	run -2 amap-sandbox sandbox exec --name one --timeout 1s -- true
}

@test "the policy in force is shown, as YAML alone and in the document" {
	fleet alpha
	member alpha
	run -0 amap-sandbox sandbox get alpha --policy-only
	assert_line --index 0 'version: 1'
	assert_line '  - /opt/amap/lanes/inbox'
	assert_line "  run_as_user: '${run_as%:*}'"
	amap-sandbox sandbox get alpha --policy-only >shown.yaml
	amap-sandbox sandbox get alpha -o json | jq .policy >shown.json
	# what is shown is a policy, and the same one
	box again --policy shown.yaml
	run -0 jq -S . <<<"$(amap-sandbox sandbox get again -o json | jq .policy)"
	assert_output "$(jq -S . shown.json)"
}

@test "logs: as many lines, as young, of that source and at least of that level" {
	amap-sandbox sandbox create --name one --detach --no-tty -- sh -c 'seq -f "line %g" 300; sleep 600'
	eventually sh -c 'amap-sandbox logs one | grep -q "line 300"'
	run -0 amap-sandbox logs one
	assert_equal "${#lines[@]}" 200
	run -0 amap-sandbox logs one -n 2 --source sandbox
	assert_output --regexp '^\[[0-9]+\.[0-9]{3}\] \[sandbox\] \[INFO \] \[main\] line 299
\[[0-9]+\.[0-9]{3}\] \[sandbox\] \[INFO \] \[main\] line 300$'
	run -0 amap-sandbox logs one --source gateway
	refute_output --partial '[sandbox]'
	assert_line --partial 'main process started'
	run -0 amap-sandbox logs one --level warn
	assert_output ''
	kill -9 "$(amap-sandbox inspect "$(amap-sandbox ps -q)" | jq '.[0].State.Pid')"
	eventually sh -c 'amap-sandbox logs one --level warn | grep -q "main process ended status=137"'
	run -0 amap-sandbox logs one --since 1h -n 1000
	assert_line --partial 'line 1'
	run -0 amap-sandbox logs one --since 0s
	assert_output ''
	for bad in "--since 5" "--since m" "--source x" "--level loud" "-n x" ""; do
		# shellcheck disable=SC2086
		run -2 amap-sandbox logs $bad
	done
}

@test "delete takes several names, and --all those of the workspace alone" {
	for name in one two three; do box $name; done
	amap-sandbox --workspace other sandbox create --name four --detach --no-tty -- sleep 600
	run -0 amap-sandbox sandbox delete one nobody two
	assert_output "$(printf '%s\n' '✓ Deleted sandbox one' '! Sandbox nobody not found' '✓ Deleted sandbox two')"
	run -0 amap-sandbox sandbox delete --all
	assert_output "✓ Deleted sandbox three"
	run -0 amap-sandbox sandbox list --all-workspaces --names
	assert_output "other/four"
	run -0 amap-sandbox --workspace other sandbox list -o json
	run -0 jq -c '.[] | keys_unsorted' <<<"$output"
	assert_output '["id","name","workspace","labels","created_at","annotations","resource_version","phase","current_policy_version","policy_source","revision"]'
	run -0 amap-sandbox --workspace nowhere sandbox list
	assert_output "No sandboxes found."
}

@test "a workspace that only begins like another one's name is another workspace" {
	amap-sandbox --workspace aaaaaaaaaaaaaaaaaaa sandbox create --name one --detach --no-tty -- sleep 600
	for long in aaaaaaaaaaaaaaaaaaaa "aaaaaaaaaaaaaaaaaaa$(printf 'b%.0s' $(seq 300))"; do
		run -0 amap-sandbox --workspace "$long" sandbox delete one
		assert_output "! Sandbox one not found"
		for verb in "sandbox get one" "sandbox stop one" "sandbox start one" "logs one" "sandbox connect one" "sandbox exec --name one -- true"; do
			# shellcheck disable=SC2086
			refused "sandbox not found" amap-sandbox --workspace "$long" $verb
		done
	done
	run -0 amap-sandbox sandbox list --all-workspaces --names
	assert_output "aaaaaaaaaaaaaaaaaaa/one"
}

@test "logs: nothing that a main process writes moves the reader's cursor or looks like another line" {
	amap-sandbox sandbox create --name one --detach --no-tty -- sh -c 'printf "%b\n" "plain \0303\0244\0342\0202\0254" \
		"a\tb\rc\0bd\033[31me\033]0;f\007g" "\0302\02332J" "\0233H \0377 \0303" "\0342\0200\0256back" \
		"\r[1.000] [gateway] [ERROR] [supervisor] forged" end; sleep 600'
	eventually sh -c 'amap-sandbox logs one | grep -q "end$"'
	run -0 amap-sandbox logs one --source sandbox
	run -0 sed 's/^\[[0-9.]*\] \[sandbox\] \[INFO \] \[main\] //' <<<"$output"
	assert_output "plain ä€
a b?c?bdeg
?2J
?H ? ?
?back
?[1.000] [gateway] [ERROR] [supervisor] forged
end"
}

@test "exec: no reader, no writer and nothing that a command leaves behind holds it up, and nothing is lost" {
	timed
	box one
	enter() { timeout -k 1 60 amap-sandbox sandbox exec --name one --no-login-shell "$@"; }
	# a process that lives on has the output: it is let go after two seconds
	(out=$(enter --no-tty -- sh -c 'setsid sleep 60 & echo hi' </dev/null); echo "$out $?" >left) 3>&- &
	# a reader that comes late gets all of it
	(enter --no-tty -- seq 100000 </dev/null | (sleep 2.3; cksum) >late) 3>&- &
	# a command that reads nothing, a reader that reads nothing: the time limit is one all the same
	(yes | (rc=0; enter --tty --timeout 1 -- sh -c 'stty raw -echo; sleep 60' >/dev/null || rc=$?; echo $rc >deaf)) 3>&- &
	# whoever writes for nobody ends
	(enter --no-tty -- yes </dev/null | head -n 1 >pipe) 3>&- &
	(enter --tty -- yes </dev/null | head -c 1 >terminal) 3>&- &
	begin=$SECONDS
	wait
	[ $((SECONDS - begin)) -le 5 ]
	run -0 cat left deaf pipe terminal
	assert_output "hi 0
124
y
y"
	assert_equal "$(cat late)" "$(seq 100000 | cksum)"
	run -0 sh -c 'amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- sh -c "for i in 1 2 3; do echo o\$i; echo e\$i >&2; done" 2>&1 </dev/null | cat'
	assert_output "$(printf '%s\n' o1 e1 o2 e2 o3 e3)"
}

@test "a name may follow two dashes, --all stands alone, and an empty id is nobody's" {
	box one
	run -0 amap-sandbox sandbox stop -- one
	run -0 amap-sandbox sandbox start -- one
	run -2 amap-sandbox sandbox stop -- one two
	for bad in "--all one" "one --all" "--" "--no-such one"; do
		# shellcheck disable=SC2086
		run -2 amap-sandbox sandbox delete $bad
	done
	run -1 --separate-stderr amap-sandbox inspect "" "$(amap-sandbox sandbox list --ids)"
	assert_equal "$(jq length <<<"$output")" 1
	assert_equal "${stderr% }" "Error: No such object:"
	run -0 amap-sandbox sandbox delete -- one "$(printf 'a\033[2Jb')"
	assert_output "$(printf '%s\n' '✓ Deleted sandbox one' '! Sandbox a\x1b[2Jb not found')"
}

@test "delete --all takes away also what a crash left without a record" {
	box one
	: >state/sandboxes/default--one/record.json
	run -0 amap-sandbox sandbox delete --all
	assert_output "✓ Deleted sandbox one"
	run -0 find state -mindepth 2 -not -path 'state/etc/*'
	assert_output ""
}

@test "logs --tail goes on where a new file begins, and leaves out no line there" {
	amap-sandbox sandbox create --name one --detach --no-tty -- sh -c 'until [ -e go ]; do sleep 0.05; done; seq -f "line %g" 20000; sleep 600'
	amap-sandbox logs one -n 0 --tail >followed 3>&- &
	sleep 0.3
	: >state/sandboxes/default--one/home/go
	eventually grep -q 'line 20000$' followed
	kill $!
	run -0 sed -n 's/.*\[main\] line //p' followed
	assert_equal "$(cksum <<<"$output")" "$(seq 20000 | cksum)"
	assert_file_exists state/sandboxes/default--one/log.old
}
