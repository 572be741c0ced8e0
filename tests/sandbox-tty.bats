load common
load sandbox

# terminal COMMAND: as from a terminal of 33 rows and 77 columns.
terminal() { timeout 60 script -qec "stty rows 33 cols 77; $1" /dev/null; }
plain() { sed 's/\x1b\[[?0-9;]*[a-zA-Z]//g' | tr -d '\r'; }

@test "exec --tty has a terminal of the sandbox's own, as large as the caller's" {
	box one
	run -5 terminal "amap-sandbox sandbox exec --name one --tty --no-login-shell -- sh -c 'tty; stty size; exit 5'" </dev/null
	assert_output --partial "/dev/pts/0"
	assert_output --partial "33 77"
}

@test "B47 the caller's own terminal never enters: it is carried by pipes" {
	box one
	run -0 terminal "amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- sh -c 'for fd in 0 1 2; do test -t \$fd && echo terminal \$fd; done; readlink /proc/self/fd/0 | cut -d: -f1; (exec 3</dev/tty) && echo terminal; true'" </dev/null
	refute_output --partial "terminal"
	assert_output --partial "pipe"
}

@test "standard input from a terminal reaches the command, also to its end" {
	box one
	run -0 sh -c "printf 'one\ntwo\n\004' | timeout 60 script -qec \"amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- sed 's/^/got /'\" /dev/null"
	assert_output --partial "got one"
	assert_output --partial "got two"
}

@test "connect shows what was, carries what is, and leaves with Ctrl-P Ctrl-Q" {
	timed
	amap-sandbox sandbox create --name one --tty --detach -- sh -c 'echo before; while read -r line; do echo "answer: $line"; stty size; done'
	run -0 sh -c '(sleep 0.5; printf "hel\020lo\r"; sleep 0.5; printf "\020\021"; sleep 0.5) | timeout 60 script -qec "stty rows 33 cols 77; amap-sandbox sandbox connect one; echo status \$?" /dev/null'
	run -0 plain <<<"$output"
	assert_output --partial "before"
	assert_output --partial "answer: hel"
	assert_output --partial "33 77"
	assert_output --partial "status 0"
	run -0 amap-sandbox sandbox list --names
	assert_output "one"
	run -0 jq -r .phase <<<"$(amap-sandbox sandbox get one -o json)"
	assert_output "Ready"
}

@test "connect ends with the main process, and with its status" {
	timed
	amap-sandbox sandbox create --name one --tty --detach -- sh -c 'echo up; read -r line; exit 3'
	run -3 sh -c '(sleep 0.5; printf "go\n"; sleep 1) | amap-sandbox sandbox connect one'
	assert_output --partial "up"
	run -3 amap-sandbox sandbox connect one
	assert_output --partial "up"
}

@test "the replay is the last MiB, however much was written" {
	timed
	amap-sandbox sandbox create --name one --detach --no-tty -- sh -c 'seq -w 400000; echo last; sleep 600'
	eventually sh -c 'amap-sandbox logs one -n 1 --source sandbox | grep -q last'
	run -0 sh -c 'timeout 1 amap-sandbox sandbox connect one </dev/null >replay || [ $? -eq 124 ]'
	[ "$(stat -c %s replay)" -eq 1048576 ]
	run -0 tail -n 2 replay
	assert_output "400000
last"
	size=$(du -sk state | cut -f1)
	[ "$size" -lt 6000 ] || { echo "$size KiB"; return 1; }
}

@test "create without --detach attaches; with --no-keep it leaves nothing" {
	timed
	run -4 amap-sandbox sandbox create --name one --no-tty --no-keep -- sh -c 'echo hello; sleep 0.3; exit 4' </dev/null
	assert_output "Created sandbox: one
hello"
	run -0 amap-sandbox sandbox list --names
	assert_output ""
	run -0 sh -c '(sleep 1; printf "x\r") | timeout 60 script -qec "amap-sandbox sandbox create --name two -- sh -c \"read -r x; echo got \\\$x\"" /dev/null'
	assert_output --partial "got x"
	run -0 amap-sandbox sandbox list --names
	assert_output "two"
}

@test "a sandbox survives the terminal and the shell that made it" {
	run -0 terminal "sh -c 'amap-sandbox sandbox create --name one --tty --detach -- sh -c \"while :; do sleep 1; done\"'" </dev/null
	assert_output --partial "Created sandbox: one"
	# the same from a group that is killed as a whole
	setsid sh -c 'amap-sandbox sandbox create --name two --detach --no-tty -- sleep 600 >made; sleep 60' 3>&- &
	eventually test -s made
	kill -9 -- -$!
	wait $! || :
	for name in one two; do
		run -0 jq -r .phase <<<"$(amap-sandbox sandbox get $name -o json)"
		assert_output Ready
		run -0 amap-sandbox sandbox exec --name $name --no-tty --no-login-shell -- echo there </dev/null
		assert_output there
	done
}

@test "a main process that lets go of its terminal runs on, and may come back to it" {
	printf 'version: 1\nfilesystem_policy: { read_only: [/usr, /bin, /lib, /lib64, /etc], read_write: [/sandbox, /dev] }\n' >p.yaml
	amap-sandbox sandbox create --name one --tty --detach --policy p.yaml -- \
		sh -c 'echo up; exec </dev/null >/dev/null 2>&1; sleep 0.3; echo back >/dev/tty; exec sleep 600'
	eventually sh -c 'amap-sandbox logs one | grep -q "\[main\] back"'
	run -0 jq -r .phase <<<"$(amap-sandbox sandbox get one -o json)"
	assert_output Ready
}

@test "what is typed while nobody reads waits, and arrives whole" {
	timed
	amap-sandbox sandbox create --name one --tty --detach -- sh -c 'stty raw -echo; echo up; sleep 0.7; head -c 100000 | cksum; sleep 600'
	eventually sh -c 'amap-sandbox logs one | grep -q "\[main\] up"'
	seq -w 99999 | head -c 100000 >typed
	run -0 sh -c '(cat typed; sleep 1.5; printf "\020\021") | timeout 60 amap-sandbox sandbox connect one'
	assert_output --partial "$(cksum <typed)"
}

@test "connect says why it ends: a reader that is too slow, one too many, a signal" {
	timed
	amap-sandbox sandbox create --name one --detach --no-tty -- sh -c 'echo up; exec sleep 600'
	for i in 1 2 3 4 5 6 7 8; do
		amap-sandbox sandbox connect one </dev/null >connected.$i 2>&1 3>&- &
	done
	eventually sh -c '[ "$(cat connected.* | grep -c up)" -eq 8 ]'
	run -1 --separate-stderr amap-sandbox sandbox connect one </dev/null
	run -0 squash <<<"$stderr"
	assert_output "$(squash <<<"Error: sandbox 'one': 8 connections are the most: leave one of them first")"
	# nor does the supervisor lose its way when it has no descriptor left for one more
	pid=$(awk '{ print $4 }' "/proc/$(awk '{ print $4 }' "/proc/$(jq .init.pid "$AMAP_SANDBOX_DIR/sandboxes/default--one/run.json")/stat")/stat")
	prlimit --nofile="$(find "/proc/$pid/fd" -type l | wc -l):" --pid "$pid"
	run -124 timeout 1 amap-sandbox sandbox connect one </dev/null
	prlimit --nofile=1024: --pid "$pid"
	run -0 jq -r .phase <<<"$(amap-sandbox sandbox get one -o json)"
	assert_output Ready
	kill -TERM %1
	rc=0
	wait %1 || rc=$?
	assert_equal "$rc" 143
	amap-sandbox sandbox delete one
	wait
	amap-sandbox sandbox create --name two --detach --no-tty -- sh -c 'sleep 0.5; while :; do seq 1000; done'
	(rc=0; timeout 60 amap-sandbox sandbox connect two </dev/null 2>said || rc=$?; echo $rc >rc) | (sleep 1.2; cat >/dev/null)
	assert_equal "$(cat rc)" 1
	run -0 squash <said
	assert_output --partial "$(squash <<<"sandbox 'two': the connection is lost: what it wrote was not taken in time: connect again")"
}
