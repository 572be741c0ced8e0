load common
load sandbox

# Every test attempts the forbidden thing and looks at the answer.

setup_file() {
	# a directory that an ordinary user can walk to: bats makes its own for the caller alone
	PUBLIC=$(mktemp -d /tmp/sandbox-boundary.XXXXXX)
	chmod 755 "$PUBLIC"
	export PUBLIC
	cc -D_GNU_SOURCE -static -o "$PUBLIC/attempt" "$BATS_TEST_DIRNAME/tools/attempt.c"
}

teardown_file() { rm -rf "$PUBLIC"; }

# armed NAME [OPTION...]: a member whose home holds the tool.
armed() {
	member "$@"
	give "$1"
}

give() {
	cp "$PUBLIC/attempt" "$AMAP_SANDBOX_DIR/sandboxes/default--$1/home/"
	[ "$(id -u)" -ne 0 ] || chown "$run_as" "$AMAP_SANDBOX_DIR/sandboxes/default--$1/home/attempt"
}

# attempts NAME FILE ARGUMENT: the answer to each act of a table, in its form.
attempts() {
	acts=$(grep -v '^#' "$DATA/sandbox/$2" | cut -f1)
	inside "$1" sh -c 'for a in $1; do printf "%s\t%s\n" "$a" "$(/sandbox/attempt "$a" "$2")"; done' sh "$acts" "$3"
}

column() { grep -v '^#' "$DATA/sandbox/$1" | cut -f"1,$2"; }

lane() {
	echo old >"$1/exist"
	mkdir -p "$1/dir"
	[ "$(id -u)" -ne 0 ] || chown -R "$run_as" "$1"
}

@test "mount and Landlock together: every act on a read-only lane has its errno" {
	fleet alpha
	armed alpha
	for lane in inbox peer; do lane "$home/instances/alpha/$lane"; done
	lane "$home/roster"
	lane "$home/payload"
	for target in /opt/amap/lanes/inbox /opt/amap/lanes/peer /opt/amap/roster /opt/amap/payload; do
		run -0 attempts alpha lane-acts $target
		assert_output "$(column lane-acts 4)"
	done
	[ "$(cat "$home/instances/alpha/inbox/exist")" = old ]
}

@test "the read-only mount alone holds, when the policy puts a lane on the wrong side" {
	fleet alpha
	amap-render-policy --member alpha --run-as "$run_as" <members |
		sed -e '/lanes\/inbox/d' -e 's|^  read_write:|&\n    - "/opt/amap/lanes/inbox"|' >wrong.yaml
	box alpha --policy wrong.yaml --driver-config-json "$(driver alpha)"
	give alpha
	lane "$home/instances/alpha/inbox"
	run -0 attempts alpha lane-acts /opt/amap/lanes/inbox
	assert_output "$(column lane-acts 3)"
	# and it is shown
	run -0 amap-sandbox sandbox get alpha -o json
	run -0 jq -c '.policy.filesystem_policy | [.read_only, .read_write] | map(index("/opt/amap/lanes/inbox") != null)' <<<"$output"
	assert_output "[false,true]"
}

@test "Landlock alone holds, without any mount" {
	mkdir "$PUBLIC/alone"
	cd "$PUBLIC/alone"
	mkdir ro rw
	lane ro
	cp "$PUBLIC/attempt" rw/
	[ "$(id -u)" -ne 0 ] || chown -R "$run_as" .
	cat >policy.yaml <<-END
	version: 1
	filesystem_policy:
	  read_only: ["/usr", "/lib", "/lib64", "/bin", "$PWD/ro"]
	  read_write: ["$PWD/rw", "/dev/null"]
	process: { run_as_user: "${run_as%:*}", run_as_group: "${run_as#*:}" }
	END
	acts=$(grep -v '^#' "$DATA/sandbox/lane-acts" | cut -f1)
	run -0 amap-confine --policy policy.yaml -- sh -c 'for a in $1; do printf "%s\t%s\n" "$a" "$("$2" "$a" "$3")"; done' sh "$acts" "$PWD/rw/attempt" "$PWD/ro"
	assert_output "$(column lane-acts 2)"
	# what is not listed cannot be read either, nor run
	mkdir other
	lane other
	run -0 amap-confine --policy policy.yaml -- "$PWD/rw/attempt" read "$PWD/other"
	assert_output EACCES
	run -0 amap-confine --policy policy.yaml -- "$PWD/rw/attempt" list "$PWD/other"
	assert_output EACCES
}

@test "B38 a rename between two directories of a writable path works: REFER is in the one ruleset" {
	fleet alpha
	armed alpha
	run -0 inside alpha sh -c 'mkdir /sandbox/a /sandbox/b; echo x >/sandbox/a/f; mv /sandbox/a/f /sandbox/b/f; ln /sandbox/b/f /sandbox/a/g; cat /sandbox/a/g'
	assert_output x
}

@test "system calls that nobody needs are refused, those of ordinary programs are not" {
	fleet alpha
	armed alpha
	run -0 attempts alpha refused-acts /tmp
	assert_output "$(column refused-acts 2)"
}

@test "every system call that --print says is refused is refused, by its number" {
	fleet alpha
	armed alpha
	amap-confine --print | jq -r '.seccomp_refused[]' >names
	echo '#include <sys/syscall.h>' | cc -E -dM - | sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$/\1 \2/p' >numbers
	echo 'open_tree_attr 467' >>numbers		# younger than the header
	awk 'NR == FNR { number[$1] = $2; next } $1 in number { print number[$1] }' numbers names >calls
	echo 467 >>calls
	[ "$(wc -l <calls)" -ge 50 ]
	run -0 inside alpha sh -c 'for n in $1; do /sandbox/attempt call $n; done' sh "$(paste -s -d ' ' calls)"
	assert_equal "$(sort -u <<<"$output")" EPERM
	assert_equal "$(wc -l <<<"$output")" "$(wc -l <calls)"
}

@test "no way through /proc: memory, program and root of oneself and of the first process" {
	fleet alpha
	armed alpha
	run -0 inside alpha sh -c 'for a in own_memory own_program init_memory init_root main_root outer_cwd; do printf "%s %s\n" $a "$(/sandbox/attempt $a)"; done'
	assert_output "own_memory EACCES
own_program ETXTBSY
init_memory EACCES
init_root EACCES
main_root EACCES
outer_cwd EACCES"
}

@test "the main process is under the same rules as a command that enters" {
	fleet alpha
	cp "$PUBLIC/attempt" "$home/payload/"
	[ "$(id -u)" -ne 0 ] || chown -R "$run_as" "$home/payload"
	acts=$(grep -v '^#' "$DATA/sandbox/refused-acts" | cut -f1 | tr '\n' ' ')
	amap-render-policy --member alpha --run-as "$run_as" <members >alpha.yaml
	amap-sandbox sandbox create --name alpha --policy alpha.yaml --driver-config-json "$(driver alpha)" --detach --no-tty -- \
		sh -c 'for a in $1; do printf "%s\t%s\n" "$a" "$(/opt/amap/payload/attempt "$a" /tmp)"; done >/sandbox/answers; sleep 600' sh "$acts"
	eventually sh -c 'amap-sandbox sandbox exec --name alpha --no-tty --no-login-shell -- grep -q inet /sandbox/answers </dev/null'
	sleep 0.2
	run -0 inside alpha cat /sandbox/answers
	assert_output "$(column refused-acts 2)"
}

@test "other members' lanes, the router's state, the home, and the host's files are out of sight" {
	fleet alpha beta
	mkdir -p "$home/router-state"
	echo secret >"$home/router-state/file"
	armed alpha
	for path in "$home/instances/beta/inbox" "$home/router-state" "$home" "$AMAP_SANDBOX_DIR" /root /home /etc/ssh /var/lib /boot; do
		run -0 inside alpha /sandbox/attempt list "$path"
		assert_output --regexp '^(ENOENT|EACCES)$'
	done
	for file in /etc/shadow /etc/machine-id /proc/1/environ /proc/2/mem /proc/kcore /proc/sysrq-trigger /dev/mem /dev/vda /dev/sda; do
		run -0 inside alpha /sandbox/attempt readfile $file
		assert_output --regexp '^(ENOENT|EACCES|EPERM)$'
		run -0 inside alpha /sandbox/attempt writefile $file
		assert_output --regexp '^(ENOENT|EACCES|EPERM|EROFS)$'
	done
	for file in /proc/sys/kernel/hostname /proc/sys/kernel/core_pattern /proc/self/uid_map /proc/self/oom_score_adj /.amap/confine /usr/bin/env /etc/passwd; do
		run -0 inside alpha /sandbox/attempt writefile $file
		assert_output --regexp '^(EACCES|EPERM|EROFS)$'
	done
	run -0 inside alpha sh -c 'ls /proc | grep -c "^[0-9]"'
	[ "$output" -le 6 ]
}

@test "amap-confine cannot be overwritten, not even where the policy would let it" {
	fleet alpha
	amap-render-policy --member alpha --run-as "$run_as" <members | sed 's|^  read_write:|&\n    - "/.amap"|' >wide.yaml
	box alpha --policy wide.yaml --driver-config-json "$(driver alpha)"
	give alpha
	run -0 inside alpha /sandbox/attempt writefile /.amap/confine
	assert_output --regexp '^(EROFS|EACCES)$'	# EACCES: it belongs to somebody else, too
	run -0 inside alpha true
}

@test "no signal and no abstract socket reaches a process of the host" {
	fleet alpha
	armed alpha
	name=amap-test-$$-$BATS_TEST_NUMBER
	"$PUBLIC/attempt" abstract_listen $name >listening 3>&- &
	eventually grep -q listening listening
	run -0 "$PUBLIC/attempt" abstract $name
	assert_output OK
	run -0 inside alpha /sandbox/attempt abstract $name
	assert_output ECONNREFUSED
	run -0 inside alpha /sandbox/attempt kill_outside $!
	assert_output ESRCH
	kill %1
	# an operator's command may signal the main process
	run -0 inside alpha /sandbox/attempt signal_main
	assert_output OK
}

@test "nothing outside of it can be reached by network" {
	box one
	run -0 inside one cat /proc/net/dev
	assert_equal "$(tail -n +3 <<<"$output" | cut -d: -f1 | tr -d ' ')" lo
	run -0 inside one sh -c 'cat /proc/net/route; cat /etc/resolv.conf'
	assert_equal "$(wc -l <<<"$output")" 1
	run -1 inside one bash -c 'exec 3<>/dev/tcp/10.0.0.1/80'
	assert_output --partial "Network is unreachable"
}

@test "an attempt to reach the network is refused and stands in the log" {
	amap-sandbox sandbox create --name one --detach --no-tty -- bash -c '
		for i in 1 2 3; do exec 3<>/dev/tcp/192.0.2.1/443; done
		exec 3<>/dev/tcp/2001:db8::1/80
		echo x >/dev/udp/198.51.100.7/53
		exec 3<>/dev/tcp/127.0.0.1/9
		exec sleep 600'
	eventually sh -c 'amap-sandbox logs one | grep -q "127.0.0.1/9"'
	run -0 amap-sandbox logs one
	assert_equal "$(grep -c ': /dev/.*Network is unreachable' <<<"$output")" 5
	assert_line --partial '127.0.0.1/9: Connection refused'
	run -0 sed -n 's/^\[[0-9.]*\] //; / DENIED /p' <<<"$output"
	assert_output "[sandbox] [OCSF ] [ocsf] NET:OPEN [MED] DENIED 192.0.2.1:443 from /usr/bin/bash [reason:the sandbox has no network]
[sandbox] [OCSF ] [ocsf] NET:OPEN [MED] DENIED [2001:db8::1]:80 from /usr/bin/bash [reason:the sandbox has no network]
[sandbox] [OCSF ] [ocsf] NET:OPEN [MED] DENIED 198.51.100.7:53 from /usr/bin/bash [reason:the sandbox has no network]"
	run -0 amap-sandbox logs one --level warn
	refute_output --partial DENIED
}

@test "whoever floods the network fills no log, and what is a Unix socket or the loopback works" {
	amap-sandbox sandbox create --name one --detach --no-tty -- python3 -c '
import os, socket, threading, time
u = socket.socket(socket.AF_UNIX); u.bind("/tmp/123456789"); u.listen(5)	# 16 bytes of address
def unix():
    c = socket.socket(socket.AF_UNIX); c.connect("/tmp/123456789"); c.close()
l = socket.socket(); l.bind(("127.0.0.1", 8000)); l.listen(5)
unix()
c = socket.create_connection(("127.0.0.1", 8000)); c.close()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"x", ("127.0.0.1", 8000))
for port in range(1, 3000):
    try: s.sendto(b"x", ("192.0.2.9", port))
    except OSError as e: last = e.errno
unix()
print("errno", last, flush=True)
time.sleep(600)'
	eventually sh -c 'amap-sandbox logs one | grep -q "errno 101"'
	run -0 amap-sandbox logs one -n 5000
	[ "$(grep -c DENIED <<<"$output")" -le 200 ]
	[ "$(grep -c DENIED <<<"$output")" -ge 20 ]
	run -0 amap-sandbox sandbox delete one
}

@test "descriptors of the caller are not inherited, neither by the main process nor by a command" {
	echo secret >secret
	exec 8<secret 9>>secret
	box one
	run -0 inside one ls -l /proc/self/fd
	refute_output --partial secret
	run -0 inside one sh -c 'ls /proc/self/fd | wc -l'
	assert_output 4
	pid=$(jq .main.pid "$AMAP_SANDBOX_DIR/sandboxes/default--one/run.json")
	run -0 ls "/proc/$pid/fd"
	assert_output "0
1
2"
	# nor by the supervisor, which would keep them open
	pid=$(awk '{ print $4 }' "/proc/$(awk '{ print $4 }' "/proc/$(jq .init.pid "$AMAP_SANDBOX_DIR/sandboxes/default--one/run.json")/stat")/stat")
	assert_equal "$(cat "/proc/$pid/comm")" amap-supervise
	run -1 sh -c 'ls -l "/proc/$1/fd" | grep -F "$2"' sh "$pid" "$PWD/secret"
	exec 8<&- 9>&-
}

@test "the provider key never enters, and no file of ours holds it" {
	fleet alpha
	member alpha >/dev/null 2>&1
	amap-sandbox sandbox delete alpha
	cat >profile.json <<-END
	{"id":"amap-claude-code","display_name":"x","credentials":[{"name":"key","env_vars":["ANTHROPIC_API_KEY"],"required":true}]}
	END
	amap-sandbox provider profile import -f profile.json
	ANTHROPIC_API_KEY=sk-very-secret member alpha --provider amap-claude-code --auto-providers
	run -0 inside alpha sh -c 'echo $ANTHROPIC_API_KEY'
	assert_output "openshell:resolve:env:ANTHROPIC_API_KEY"
	run -1 grep -r sk-very-secret state
	run -1 inside alpha sh -c 'cat /proc/[0-9]*/environ | grep -a sk-very-secret'
}

@test "a symbolic link swapped for a lane during create never leads into another's lane" {
	fleet alpha beta
	echo beta-secret >"$home/instances/beta/inbox/file"
	ln -s "$home/instances/beta/inbox" "$home/instances/alpha/evil"
	"$PUBLIC/attempt" swap "$home/instances/alpha" 3>&- &
	swapper=$!
	amap-render-policy --member alpha --run-as "$run_as" <members >alpha.yaml
	made=0
	for round in $(seq "${AMAP_RACES:-20}"); do
		if amap-sandbox sandbox create --name alpha --policy alpha.yaml --driver-config-json "$(driver alpha)" --detach --no-tty -- \
			sh -c 'cat /opt/amap/lanes/inbox/file; sleep 600' >/dev/null 2>&1 </dev/null; then
			made=$((made + 1))
			amap-sandbox sandbox exec --name alpha --no-tty --no-login-shell -- cat /opt/amap/lanes/inbox/file </dev/null >>seen
			amap-sandbox sandbox delete alpha >/dev/null
		fi
	done
	kill $swapper
	echo "made $made of $round"
	[ "$made" -gt 0 ]
	run -1 grep -v '^secret$' seen
}

@test "B22 what is mounted below a lane is read-only with it" {
	[ "$(id -u)" -eq 0 ] || skip "needs root to mount"
	fleet alpha
	mkdir "$home/instances/alpha/inbox/sub"
	unshare -m sh -c '
		mount -t tmpfs -o mode=777 none "$1/instances/alpha/inbox/sub"
		shift
		"$@"' sh "$home" bash -c '. "$TOP/tests/sandbox.bash"; home=$PWD/home run_as='"$run_as"'; member alpha' >/dev/null
	run -0 inside alpha sh -c 'touch /opt/amap/lanes/inbox/sub/new; grep /sub /proc/self/mountinfo | cut -d" " -f5,6'
	assert_output "touch: cannot touch '/opt/amap/lanes/inbox/sub/new': Read-only file system
/opt/amap/lanes/inbox/sub ro,nosuid,nodev,relatime"
}

@test "B35 a lane that the policy leaves out cannot even be read" {
	fleet alpha
	amap-render-policy --member alpha --run-as "$run_as" <members | sed '/lanes\/peer/d' >less.yaml
	box alpha --policy less.yaml --driver-config-json "$(driver alpha)"
	give alpha
	run -0 inside alpha /sandbox/attempt list /opt/amap/lanes/peer
	assert_output EACCES
	run -0 inside alpha /sandbox/attempt list /opt/amap/lanes/inbox
	assert_output OK
}

@test "B37 a read-only path at or below a writable one is refused" {
	for pair in "/sandbox/a /sandbox" "/sandbox /sandbox" "/opt/amap/lanes/inbox /opt/amap"; do
		cat >bad.yaml <<-END
		version: 1
		filesystem_policy: { read_only: ["/usr", "${pair% *}"], read_write: ["${pair#* }"] }
		END
		refused "code: 'Client specified an invalid argument', message: \"policy contains unsafe content: read_only path '${pair% *}' has no effect at or below read_write path '${pair#* }'\"" \
			amap-sandbox sandbox create --name one --policy bad.yaml --detach --no-tty -- true
		run -125 amap-confine --policy bad.yaml true
	done
}

@test "a path of the policy that does not exist is skipped and said, never the whole ruleset" {
	cat >policy.yaml <<-END
	version: 1
	filesystem_policy:
	  read_only: ["/usr", "/bin", "/lib", "/lib64", "/etc", "/nowhere", "/etc/passwd/below"]
	  read_write: ["/sandbox"]
	process: { run_as_user: "${run_as%:*}", run_as_group: "${run_as#*:}" }
	END
	amap-sandbox sandbox create --name one --policy policy.yaml --detach --no-tty -- sleep 600
	run -0 amap-sandbox logs one
	assert_output --partial "amap-confine: /nowhere: does not exist: not granted"
	assert_output --partial "amap-confine: /etc/passwd/below: does not exist: not granted"
	run -1 inside one sh -c 'touch /sandbox/fine; touch /tmp/denied'
	assert_output "touch: cannot touch '/tmp/denied': Permission denied"
	printf 'version: 1\nfilesystem_policy:\n  read_only: ["/nowhere"]\n' >policy.yaml
	run -125 amap-confine --policy policy.yaml true
	assert_output --partial "amap-confine: the policy: not one of its paths exists"
}

@test "dot-dot is refused in every path argument" {
	fleet alpha
	for bad in .. ../x a/../b; do
		run -1 amap-sandbox sandbox get "$bad"
		run -1 amap-sandbox logs "$bad"
		run -1 amap-sandbox --workspace "$bad" sandbox get alpha
		run -1 amap-sandbox sandbox create --name "$bad" --detach --no-tty -- true
		run -1 amap-sandbox --workspace "$bad" sandbox create --name one --detach --no-tty -- true
		run ! amap-sandbox service stop "$bad"
		run ! amap-sandbox service start "$bad" --mounts /dev/null -- true
		run ! amap-sandbox provider profile export "$bad" -o json
		run ! amap-sandbox inspect "$bad"
		amap-sandbox sandbox delete "$bad"
	done
	for bad in /srv/../etc /../etc /srv/.. /srv/. //srv; do
		refused "amap-openshell interceptor" amap-sandbox sandbox create --name alpha --detach --no-tty \
			--driver-config-json "{\"docker\":{\"mounts\":[{\"type\":\"bind\",\"source\":\"$bad\",\"target\":\"/opt/x\"}]}}" -- true
		refused "mount target '$bad' must be an absolute, normalised path" amap-sandbox sandbox create --name alpha --detach --no-tty \
			--driver-config-json "$(driver alpha | jq -c --arg t "$bad" '.docker.mounts[0].target = $t')" -- true
		printf 'version: 1\nfilesystem_policy: { read_only: ["%s"] }\n' "$bad" >bad.yaml
		refused "policy contains unsafe content" amap-sandbox sandbox create --name one --policy bad.yaml --detach --no-tty -- true
		printf '%s\tro\n' "$bad" >mounts
		run -1 amap-sandbox service start s --mounts mounts -- true
	done
	run -0 find state -mindepth 2 -not -path 'state/etc/*'
	assert_output ""
}
