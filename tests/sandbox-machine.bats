load common
load sandbox

# A machine that cannot: every failure is one line with its remedy, and
# nothing is left of what was asked for.

setup_file() {
	# a directory that an ordinary user can walk to: bats makes its own for the caller alone
	PUBLIC=$(mktemp -d /tmp/sandbox-machine.XXXXXX)
	chmod 755 "$PUBLIC"
	export PUBLIC
	cc -o "$PUBLIC/pretend" "$BATS_TEST_DIRNAME/tools/pretend.c" -lseccomp
}

teardown_file() { rm -rf "$PUBLIC"; }

setup() {
	mkdir -p "$PUBLIC/$BATS_TEST_NUMBER"
	cd "$PUBLIC/$BATS_TEST_NUMBER" || exit
	PATH=$PUBLIC:$PATH
	AMAP_SANDBOX_DIR=$PWD/state
	export AMAP_SANDBOX_DIR
	as=
	if [ "$(id -u)" -eq 0 ]; then
		as="setpriv --reuid 1000 --regid 1000 --clear-groups"
		mkdir -m 700 state
		chown 1000:1000 state .
	fi
}

create="sandbox create --name one --detach --no-tty -- sleep 600"

# nothing_left TEXT: that was the one line said, and there is no sandbox.
nothing_left() {
	assert_output "$1"
	run -0 $as amap-sandbox sandbox list --all-workspaces --names
	assert_output ""
	run -0 sh -c 'ls state/sandboxes state/trash'
	assert_output "state/sandboxes:

state/trash:"
}

@test "B41 Landlock that is not built, not enabled at boot, or too old: three texts" {
	run -125 $as pretend -38 landlock_create_ruleset -- amap-sandbox $create
	nothing_left "amap-sandbox: sandbox one: Landlock: not built into this kernel: use one with CONFIG_SECURITY_LANDLOCK, Linux 6.2 or later"
	run -125 $as pretend -95 landlock_create_ruleset -- amap-sandbox $create
	nothing_left "amap-sandbox: sandbox one: Landlock: built but not enabled at boot: add landlock to the kernel parameter lsm= and reboot"
	for abi in 0 1 2; do
		run -125 $as pretend $abi landlock_create_ruleset -- amap-sandbox $create
		nothing_left "amap-sandbox: sandbox one: Landlock: too old: this kernel has ABI $abi, ABI 3 is needed: use Linux 6.2 or later"
	done
	run -125 pretend -38 landlock_create_ruleset -- amap-confine true
	assert_output --partial "amap-confine: Landlock: not built into this kernel"
	run -125 pretend -95 landlock_create_ruleset -- amap-confine true
	assert_output --partial "amap-confine: Landlock: built but not enabled at boot"
	run -125 pretend 2 landlock_create_ruleset -- amap-confine true
	assert_output --partial "amap-confine: Landlock: too old"
}

@test "B40 --print says what the kernel lacks, and only an ABI that is enough is a yes" {
	run -0 amap-confine --print
	run -0 jq -r '.landlock_abi >= 3, (.seccomp_refused | index("ptrace") != null), .capabilities, .no_new_privs' <<<"$output"
	assert_output "true
true
[]
true"
	run -0 pretend 3 landlock_create_ruleset -- amap-confine --print
	run -0 jq -c '.landlock_abi, .landlock_scopes, (.landlock_rights | index("truncate") != null, index("ioctl_dev") != null), (.lacking | length)' <<<"$output"
	assert_output "3
[]
true
false
3"
	run -1 pretend 2 landlock_create_ruleset -- amap-confine --print
	run -0 jq -r '.lacking[0]' <<<"$output"
	assert_output "Landlock: too old: this kernel has ABI 2, ABI 3 is needed: use Linux 6.2 or later"
	run -1 pretend -38 landlock_create_ruleset -- amap-confine --print
	run -0 jq -c '.landlock_abi, .landlock_rights' <<<"$output"
	assert_output "0
[]"
}

@test "no bubblewrap on the path: the package is named" {
	mkdir bin
	for tool in sh sleep; do ln -s "$(command -v $tool)" bin; done
	run -125 $as env PATH="$PWD/bin" "$BIN/amap-sandbox" $create
	nothing_left "amap-sandbox: sandbox one: bwrap: not found on PATH: install the package bubblewrap"
}

@test "B43 user namespaces switched off: the sysctl is named" {
	run -125 $as unshare -r sh -c "echo 0 >/proc/sys/user/max_user_namespaces; exec amap-sandbox $create"
	nothing_left "amap-sandbox: sandbox one: user namespaces: switched off: sysctl user.max_user_namespaces is 0: set it to 10000"
}

# with_settings NAME=VALUE... -- COMMAND: the kernel's settings below kernel/ are these.
with_settings() {
	mkdir -p kernel/random
	for f in overflowuid overflowgid random/boot_id; do cat /proc/sys/kernel/$f >kernel/$f; done
	while [ "$1" != -- ]; do
		echo "${1#*=}" >"kernel/${1%%=*}"
		shift
	done
	shift
	$as bwrap --dev-bind / / --bind kernel /proc/sys/kernel "$@"
}

@test "B43 user namespaces that the distribution restricts: sysctl and AppArmor profile are named" {
	run -125 with_settings unprivileged_userns_clone=0 -- amap-sandbox $create
	nothing_left "amap-sandbox: sandbox one: user namespaces: switched off for users: sysctl kernel.unprivileged_userns_clone is 0: set it to 1"
	rm kernel/unprivileged_userns_clone
	run -125 with_settings apparmor_restrict_unprivileged_userns=1 -- pretend -1 clone 0x10000000 -- amap-sandbox $create
	nothing_left "amap-sandbox: sandbox one: user namespaces: restricted by AppArmor: sysctl kernel.apparmor_restrict_unprivileged_userns is 1: load an AppArmor profile that allows userns to /usr/bin/bwrap, or set it to 0"
}

@test "B44 a container that may not nest is called that" {
	run -125 $as pretend -1 clone 0x10000000 -- amap-sandbox $create
	nothing_left "amap-sandbox: sandbox one: user namespaces: refused, as in a container that may not nest: run outside of it, or let it make user namespaces (docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined)"
}

@test "a bubblewrap without --bind-fd is called too old" {
	mkdir bin
	printf '#!/bin/sh\necho "bwrap: Unknown option --bind-fd" >&2\nexit 1\n' >bin/bwrap
	chmod 755 bin bin/bwrap
	run -125 $as env PATH="$PWD/bin:$PATH" amap-sandbox $create
	nothing_left "amap-sandbox: sandbox one: bwrap: too old: it lacks an option that this needs: use bubblewrap 0.8.0-2+deb12u1 of Debian 12, or 0.10"
}

@test "a state directory that another could change is refused" {
	rm -rf state
	mkdir -m 755 state
	[ -z "$as" ] || chown 1000:1000 state
	run -1 $as amap-sandbox status
	assert_output "amap-sandbox: $PWD/state: must belong to you with mode 0700: another could change what runs"
	AMAP_SANDBOX_DIR=relative run -1 $as amap-sandbox status
	assert_output "amap-sandbox: AMAP_SANDBOX_DIR: relative: not an absolute path"
	AMAP_SANDBOX_DIR=/$(printf 'd%.0s' $(seq 3800)) run -1 $as amap-sandbox status
	assert_output "amap-sandbox: state directory: a path longer than 3800 bytes: set AMAP_SANDBOX_DIR to a shorter one"
	run -1 $as env -u HOME -u AMAP_SANDBOX_DIR amap-sandbox status
	assert_output "amap-sandbox: state directory: neither AMAP_SANDBOX_DIR nor XDG_STATE_HOME nor HOME is set: set one"
}

@test "B58 a state directory with a path too long for a socket is no hindrance" {
	timed
	deep=$PWD/$(printf 'd%.0s' $(seq 120))
	mkdir -m 700 "$deep"
	[ -z "$as" ] || chown 1000:1000 "$deep"
	export AMAP_SANDBOX_DIR="$deep"
	run -0 $as amap-sandbox $create
	run -0 $as sh -c 'timeout 1 amap-sandbox sandbox connect one </dev/null || [ $? -eq 124 ]'
	run -0 $as amap-sandbox sandbox delete one
}

@test "not ready in time: the record stays, and delete takes it away" {
	mkdir bin
	printf '#!/bin/sh\nsleep 5\nexec %s "$@"\n' "$(command -v bwrap)" >bin/bwrap
	chmod 755 bin bin/bwrap
	run -1 $as env PATH="$PWD/bin:$PATH" OPENSHELL_PROVISION_TIMEOUT=1 amap-sandbox $create
	assert_output "Created sandbox: one
Error:   × sandbox provisioning timed out after 1s. Last reported status: Starting"
	run -0 $as amap-sandbox sandbox get one -o json
	run -0 jq -r .phase <<<"$output"
	assert_output "Provisioning"
	run -0 $as amap-sandbox sandbox delete one
	run -0 sh -c 'ls state/sandboxes'
	assert_output ""
	run -1 pgrep -f "$PWD/bin/bwrap"
}

@test "a stop during create or start waits for it: what is said to be stopped does not run" {
	mkdir bin
	printf '#!/bin/sh\nsleep 0.4\nexec %s "$@"\n' "$(command -v bwrap)" >bin/bwrap
	chmod 755 bin bin/bwrap
	for verb in "$create" "sandbox start one"; do
		# shellcheck disable=SC2086
		(rc=0; $as env PATH="$PWD/bin:$PATH" amap-sandbox $verb >made 2>&1 || rc=$?; echo "$rc" >>made) 3>&- &
		eventually sh -c 'pgrep -f "sh $1/bin/bwrap" >/dev/null' sh "$PWD"
		run -0 $as amap-sandbox sandbox stop one
		assert_output "✓ Stopped sandbox one"
		run -0 $as amap-sandbox sandbox get one -o json
		assert_equal "$(jq -r .phase <<<"$output")" Stopped
		wait
		run -0 tail -n 1 made
		assert_output 0
	done
	run -0 $as amap-sandbox sandbox delete one
}

@test "a start that fails without a word is not explained by the last words of the one before" {
	mkdir bin
	printf '#!/bin/sh\n[ ! -e %s/dead ] || exit 1\nexec %s "$@"\n' "$PWD" "$(command -v bwrap)" >bin/bwrap
	chmod 755 bin bin/bwrap
	run -0 $as env PATH="$PWD/bin:$PATH" amap-sandbox sandbox create --name one --restart-policy always --detach --no-tty -- \
	    sh -c 'echo last words; exec sleep 600'
	eventually $as sh -c 'amap-sandbox logs one | grep -q "last words"'
	touch dead
	run -0 $as amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- sh -c 'kill -TERM -1'
	eventually $as sh -c 'amap-sandbox logs one | grep "main process ended" | grep -q "status=1$"'
	run -0 $as amap-sandbox sandbox get one -o json
	refute_output --partial "last words"
	run -0 $as amap-sandbox sandbox delete one
}

@test "kill -9 of amap-confine at any step before the command: nothing has run, and nothing is left" {
	# while it takes the paths of the policy, and when all but the filter of system calls is given up
	for step in landlock_add_rule landlock_restrict_self; do
		run $as pretend kill $step -- amap-sandbox sandbox create --name one --detach --no-tty -- sh -c 'touch /sandbox/ran; sleep 600'
		eventually $as sh -c 'amap-sandbox sandbox get one -o json | grep -q "\"phase\": \"Error\""'
		run -0 $as amap-sandbox sandbox get one -o json
		assert_equal "$(jq -c '[.exit_code, .conditions[0].reason]' <<<"$output")" '[137,"MainProcessExited"]'
		[ ! -e state/sandboxes/default--one/home/ran ]
		eventually sh -c '! grep -qs "$1" /proc/[0-9]*/mountinfo' sh "$PWD/state"
		run -0 $as amap-sandbox sandbox start one
		eventually test -e state/sandboxes/default--one/home/ran
		run -137 $as pretend kill $step -- amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- touch /sandbox/entered
		[ ! -e state/sandboxes/default--one/home/entered ]
		run -0 $as amap-sandbox sandbox exec --name one --no-tty --no-login-shell -- sh -c 'ls /proc | grep -c "^[0-9]"'
		assert_output 6		# the first, the main program and its sleep, and these three
		run -0 $as amap-sandbox sandbox delete one
		nothing_left "✓ Deleted sandbox one"
	done
}
