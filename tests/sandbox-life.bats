load common
load sandbox

# runs NAME KEY: the number of the sandbox's supervisor, bubblewrap, init or main process.
runs() {
	file=$AMAP_SANDBOX_DIR/sandboxes/default--$1/run.json
	init=$(jq .init.pid "$file")
	outer=$(awk '{ print $4 }' /proc/"$init"/stat)
	case $2 in
	main | init) jq ".$2.pid" "$file" ;;
	outer) echo "$outer" ;;
	supervisor) awk '{ print $4 }' /proc/"$outer"/stat ;;
	esac
}

gone() { timeout 60 sh -c 'for p; do while [ -e /proc/$p ] && ! grep -q "^State:.*[ZX]" /proc/$p/status 2>/dev/null; do sleep 0.05; done; done' sh "$@"; }

phase() { amap-sandbox sandbox get "$1" -o json | jq -r '.phase, .conditions[0].reason'; }
until_phase() { eventually sh -c 'amap-sandbox sandbox get "$1" -o json | grep -q "\"phase\": \"$2\""' sh "$1" "$2"; }

@test "kill -9 of any of its processes takes all with it, and delete leaves nothing" {
	for victim in supervisor outer init main; do
		box one
		amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- sleep 600 </dev/null >/dev/null 2>&1 3>&- &
		entered=$!
		eventually sh -c '[ "$(amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- ps ax </dev/null | grep -c "sleep 600")" -ge 3 ]'
		all="$(runs one supervisor) $(runs one outer) $(runs one init) $(runs one main)"
		kill -9 "$(runs one $victim)"
		gone $all $entered
		wait $entered || :
		run -0 phase one
		if [ $victim = supervisor ]; then
			assert_output "Error
ContainerStopped"
		else
			assert_output "Error
MainProcessExited"
		fi
		run -0 amap-sandbox ps -q
		assert_output ""
		run -0 amap-sandbox sandbox delete one
		run -0 find state -mindepth 2 -not -path 'state/etc/*'
		assert_output ""
	done
	[ -z "$(grep -ls "$BATS_TEST_TMPDIR" /proc/[0-9]*/mountinfo)" ]
}

@test "whatever ended can be started again, with its home, its lanes and its ID" {
	fleet alpha
	member alpha
	id=$(amap-sandbox sandbox list --ids)
	inside alpha sh -c 'echo kept >/sandbox/file; echo sent >/opt/amap/lanes/outbox/file'
	for victim in supervisor main init; do
		kill -9 "$(runs alpha $victim)"
		until_phase alpha Error
		run -0 amap-sandbox sandbox start alpha
		run -0 phase alpha
		assert_output "Ready
MainProcessRunning"
		run -0 inside alpha cat /sandbox/file /opt/amap/lanes/outbox/file /opt/amap/lanes/inbox/file
		assert_output "kept
sent
secret"
	done
	[ "$(amap-sandbox sandbox list --ids)" = "$id" ]
	refused "sandbox must be Stopped to start (current phase: Ready)" amap-sandbox sandbox start alpha
	amap-sandbox sandbox create --name good --detach --no-tty -- true
	until_phase good Completed
	run -0 amap-sandbox sandbox start good
	until_phase good Completed
	: >state/sandboxes/default--good/record.json
	run -1 amap-sandbox sandbox start good
	assert_output "amap-sandbox: sandbox good: record.json: not a record: delete it and create it anew"
}

@test "an update that replaces amap-confine stops no restart" {
	mkdir here
	for program in amap-sandbox amap-confine; do cp "$BIN/$program" here; done
	PATH=$PWD/here:$PATH
	amap-sandbox sandbox create --name one --restart-policy always --detach --no-tty -- \
		sh -c 'echo x >>/sandbox/runs; [ "$(wc -l </sandbox/runs)" -lt 2 ] || exec sleep 600'
	cp --remove-destination "$BIN/amap-confine" here
	eventually sh -c '[ "$(wc -l <state/sandboxes/default--one/home/runs)" -eq 2 ]'
	until_phase one Ready
	run -0 inside one true
	# absent for a while: tried again until it is there
	amap-sandbox sandbox create --name two --restart-policy always --detach --no-tty -- sh -c 'echo x >>/sandbox/runs; exec sleep 600'
	rm here/amap-confine
	kill -9 "$(runs two main)"
	eventually sh -c 'amap-sandbox logs two | grep -q "bwrap: .*No such file"'
	cp "$BIN/amap-confine" here
	eventually sh -c '[ "$(wc -l <state/sandboxes/default--two/home/runs)" -eq 2 ]'
}

@test "state of another boot, and of numbers used again, is not believed" {
	box one
	dir=$AMAP_SANDBOX_DIR/sandboxes/default--one
	cp $dir/run.json was
	kill -9 "$(runs one supervisor)"
	until_phase one Error
	jq -c '.boot_id = "00000000-0000-0000-0000-000000000000"' was >$dir/run.json
	run -0 phase one
	assert_output "Error
ContainerRuntimeRestart"
	# the very process of this shell, with another start time: never signalled, never entered
	jq -c --argjson pid $$ '.init.pid = $pid | .main.pid = $pid' was >$dir/run.json
	run -0 phase one
	assert_output "Error
ContainerStopped"
	run -0 amap-sandbox ps -q
	assert_output ""
	run -0 amap-sandbox sandbox start one
	kill -0 $$
	run -0 amap-sandbox sandbox delete one
	kill -0 $$
}

@test "an agent that shuts its own home does not keep its sandbox from starting" {
	box one
	inside one sh -c 'echo kept >file; chmod 0 /sandbox'
	amap-sandbox sandbox stop one
	run -0 amap-sandbox sandbox start one
	run -0 inside one cat file
	assert_output kept
}

@test "a torn or foreign run.json is an Error, not a crash" {
	box one
	dir=$AMAP_SANDBOX_DIR/sandboxes/default--one
	cp $dir/run.json was
	size=$(stat -c %s was)
	for n in 0 1 50 $((size / 2)) $((size - 1)); do
		head -c "$n" was >$dir/run.json
		run -0 amap-sandbox sandbox get one -o json
		run -0 amap-sandbox sandbox list --names
		assert_output "one"
		run -1 inside one true
	done
	rm $dir/run.json
	ln -s was $dir/run.json
	run -0 amap-sandbox sandbox get one -o json
	run -0 amap-sandbox sandbox delete one
	run -0 amap-sandbox sandbox list --names
	assert_output ""
}

@test "a main process that ends shows as such, with its status" {
	amap-sandbox sandbox create --name good --detach --no-tty -- true
	amap-sandbox sandbox create --name bad --detach --no-tty -- sh -c 'exit 3'
	until_phase good Completed
	until_phase bad Error
	run -0 jq -r '.exit_code, .conditions[0].reason' <<<"$(amap-sandbox sandbox get good -o json)"
	assert_output "0
MainProcessCompleted"
	run -0 jq -r '.exit_code, .conditions[0].reason' <<<"$(amap-sandbox sandbox get bad -o json)"
	assert_output "3
MainProcessExited"
	run -0 amap-sandbox ps -q
	assert_output ""
}

@test "a command that cannot run leaves its sandbox in Error, as on OpenShell" {
	refused "sandbox entered error phase while provisioning: ContainerStartFailed: no-such-command: No such file or directory" \
		amap-sandbox sandbox create --name one --detach --no-tty -- no-such-command
	run -0 phase one
	assert_output "Error
ContainerStartFailed"
	refused "sandbox 'one' already exists
hint: delete it first with: amap-sandbox sandbox delete one" box one
	amap-sandbox sandbox delete one
	box one
}

@test "--restart-policy on-failure restarts a failure and not an end; the wait doubles" {
	amap-sandbox sandbox create --name one --detach --no-tty --restart-policy on-failure -- \
		sh -c 'echo x >>/sandbox/runs; [ "$(wc -l </sandbox/runs)" -ge 3 ]'
	until_phase one Completed
	run -0 jq -r '.restart_count, .restart_policy, .exit_code' <<<"$(amap-sandbox sandbox get one -o json)"
	assert_output "2
on-failure
0"
	run -0 amap-sandbox logs one --source gateway
	times=$(sed -n 's/^\[\([0-9.]*\)\].*main process started.*/\1/p' <<<"$output")
	run -0 awk 'NR == 1 { a = $1 } NR == 2 { b = $1 } NR == 3 { c = $1 } END { print (b - a >= 1 && c - b >= 2) ? "doubled" : b - a " " c - b }' <<<"$times"
	assert_output "doubled"
}

@test "a main process that is killed comes back by its restart policy, in the same home" {
	fleet alpha
	member alpha --restart-policy on-failure
	inside alpha sh -c 'echo kept >/sandbox/file; echo sent >/opt/amap/lanes/outbox/file'
	was=$(runs alpha main)
	kill -9 "$was"
	eventually sh -c '[ "$(amap-sandbox sandbox get alpha -o json | jq -c "[.phase, .restart_count]")" = "[\"Ready\",1]" ]'
	[ "$(runs alpha main)" != "$was" ]
	run -0 inside alpha cat /sandbox/file /opt/amap/lanes/outbox/file
	assert_output "kept
sent"
}

@test "stop ends a sandbox that waits to be restarted" {
	amap-sandbox sandbox create --name one --detach --no-tty --restart-policy always -- true
	until_phase one Starting
	run -0 amap-sandbox sandbox stop one
	run -0 phase one
	assert_output "Stopped
ContainerStopped"
}

@test "a main process that ignores the request to stop is killed, also on delete" {
	amap-sandbox sandbox create --name one --detach --no-tty -- sh -c 'trap "" TERM; while :; do sleep 1; done'
	all="$(runs one supervisor) $(runs one outer) $(runs one init) $(runs one main)"
	run -0 amap-sandbox sandbox delete one
	gone $all
	run -0 amap-sandbox sandbox list --names
	assert_output ""
}

@test "of many creates of one name one wins, and the others say so" {
	for i in 1 2 3 4 5 6; do
		(rc=0; box one >out.$i 2>&1 || rc=$?; echo $rc >rc.$i) 3>&- &
	done
	wait
	run -0 sh -c 'cat rc.* | sort | uniq -c | tr -s " "'
	assert_output " 1 0
 5 1"
	run -0 sh -c 'cat out.* | grep -c "already exists"'
	assert_output 5
	run -0 ls state/trash
	assert_output ""
}

@test "start, stop and delete at once leave one whole state or none" {
	for round in 1 2 3 4 5; do
		box one
		amap-sandbox sandbox stop one
		for what in "start one" "delete one" "start one" "stop one"; do
			amap-sandbox sandbox $what >/dev/null 2>&1 3>&- &
		done
		wait
		run -0 amap-sandbox sandbox delete one
		run -0 find state -mindepth 2 -not -path 'state/etc/*'
		assert_output ""
	done
	[ -z "$(grep -ls "$BATS_TEST_TMPDIR" /proc/[0-9]*/mountinfo)" ]
}

@test "a create killed at any moment leaves nothing that delete does not take away" {
	for wait in 0.001 0.004 0.006 0.008 0.010 0.012 0.014 0.016 0.020; do
		amap-sandbox sandbox create --name one --detach --no-tty -- sleep 600 >/dev/null 2>&1 3>&- &
		sleep $wait
		kill -9 $! 2>/dev/null || :
		wait $! 2>/dev/null || :
		run -0 amap-sandbox sandbox delete one
		run -0 find state -mindepth 2 -not -path 'state/etc/*'
		assert_output ""
	done
	eventually sh -c '! grep -qs "$1" /proc/[0-9]*/mountinfo' sh "$BATS_TEST_TMPDIR"
}

# on_a_small_disk: runs the script on standard input, with the state on a disk that "fill" fills.
on_a_small_disk() {
	[ "$(id -u)" -eq 0 ] || skip "needs root to mount a small file system"
	mkdir small
	cat - /dev/fd/3 >script 3<&0 <<-'END'
	set -e
	mount -t tmpfs -o size=400k,mode=700 none small
	export AMAP_SANDBOX_DIR=$PWD/small
	trap 'rm -f small/fill; amap-sandbox sandbox delete --all >/dev/null' EXIT
	fill() { cat /dev/zero >small/fill 2>/dev/null || :; }
	END
	run -0 unshare -m bash script
}

@test "a full disk during create, stop and start: said, and nothing is half there" {
	on_a_small_disk <<-'END'
	exists() { amap-sandbox sandbox create --name "$1" --detach --no-tty -- sleep 600; }
	exists one
	fill
	rc=0; exists two || rc=$?; echo "create $rc"
	amap-sandbox sandbox list --names
	rc=0; amap-sandbox sandbox stop one || rc=$?; echo "stop $rc"
	amap-sandbox sandbox get one -o json | jq -r .phase
	rc=0; amap-sandbox sandbox start one || rc=$?; echo "start $rc"
	amap-sandbox sandbox get one -o json | jq -r .phase
	rm small/fill
	amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- echo inside </dev/null
	exists two
	find small/trash -mindepth 1
	END
	assert_output "Created sandbox: one
amap-sandbox: $PWD/small: a new sandbox: No space left on device
create 1
one
✓ Stopped sandbox one
stop 0
Stopped
✓ Started sandbox one
start 0
Ready
inside
Created sandbox: two"
}

@test "a full disk leaves no line of the log that the next one goes on with" {
	timed
	on_a_small_disk <<-'END'
	amap-sandbox sandbox create --name one --tty --detach -- sh -c 'stty -echo; while read -r n; do seq -f "line %g" "$n"; echo "end $n"; done'
	fill
	say() { (echo "$1"; sleep 0.3) | timeout 60 sh -c 'cat; printf "\020\021"' | timeout 5 amap-sandbox sandbox connect one >/dev/null; }
	say 400
	rm small/fill
	say 3
	amap-sandbox logs one -n 10000 >log
	grep -c "end 3$" log
	grep -v '^\[[0-9.]*\] \[[a-z ]*\] \[[A-Z ]*\] \[[a-z]*\] [^[]*$' log || :
	END
	assert_output "Created sandbox: one
1"
}

@test "a sandbox whose directory is removed behind its back ends" {
	amap-sandbox sandbox create --name one --detach --no-tty -- sh -c 'while :; do sleep 0.2; echo on; done'
	all="$(runs one supervisor) $(runs one outer) $(runs one init) $(runs one main)"
	rm -r state/sandboxes/default--one
	gone $all
	[ -z "$(grep -ls "$BATS_TEST_TMPDIR" /proc/[0-9]*/mountinfo)" ]
}

@test "a home that an agent filled with deep and unreadable directories is deleted" {
	box one
	amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- python3 - <<-'END' || skip "no python3"
	import os
	for i in range(300):
	    os.mkdir("d" * 200)
	    os.chdir("d" * 200)
	os.chdir("/sandbox")
	os.mkdir("closed")
	os.mkdir("closed/inside")
	open("closed/inside/file", "w")
	os.chmod("closed/inside", 0)
	os.chmod("closed", 0)
	os.symlink("/etc", "link")
	os.mkfifo("fifo")
	END
	run -0 amap-sandbox sandbox delete one
	run -0 find state -mindepth 2 -not -path 'state/etc/*'
	assert_output ""
}
