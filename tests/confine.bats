load common

# policy LINE...: reads the system and what is given, writes what is given.
setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	if [ "$(id -u)" -eq 0 ]; then run_as=1000:1000; else run_as=$(id -u):$(id -g); fi
	mkdir ro rw
	echo old | tee ro/file >rw/file
	[ "$(id -u)" -ne 0 ] || chown -R "$run_as" .
	cat >policy.yaml <<-END
	version: 1
	filesystem_policy:
	  read_only: ["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "$PWD/ro"]
	  read_write: ["$PWD/rw", "/dev/null"]
	process:
	  run_as_user: "${run_as%:*}"
	  run_as_group: "${run_as#*:}"
	END
}

@test "amap-confine answers the usual options" {
	usage_is_sound amap-confine
}

@test "the command's status is passed on; 125, 126, 127 are the launcher's" {
	run -0 amap-confine --policy policy.yaml -- true
	run -0 amap-confine --policy policy.yaml --env-fd 9 -- /usr/bin/env 9</dev/null
	assert_output ""
	run -3 amap-confine --policy policy.yaml -- sh -c 'exit 3'
	run -127 amap-confine --policy policy.yaml -- no-such-command
	assert_output "amap-confine: no-such-command: No such file or directory"
	run -126 amap-confine --policy policy.yaml -- /etc/passwd
	run -125 amap-confine --policy absent.yaml -- true
	assert_output "amap-confine: absent.yaml: No such file or directory"
	run -2 amap-confine --policy policy.yaml
}

@test "identity, groups, capabilities and no-new-privs are as the policy and the kernel can have them" {
	run -0 amap-confine --policy policy.yaml -- grep -E '^(Uid|Gid|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status
	u=${run_as%:*} g=${run_as#*:}
	assert_output "Uid:	$u	$u	$u	$u
Gid:	$g	$g	$g	$g
CapInh:	0000000000000000
CapPrm:	0000000000000000
CapEff:	0000000000000000
CapAmb:	0000000000000000
NoNewPrivs:	1
Seccomp:	2"
	[ "$(id -u)" -eq 0 ] || return 0
	run -0 amap-confine --policy policy.yaml -- grep -E '^(Groups|CapBnd):' /proc/self/status
	assert_output "Groups:	 
CapBnd:	0000000000000000"
}

@test "another identity than an ordinary caller's is refused, naming both" {
	sed -i 's/run_as_user: .*/run_as_user: "4242"/' policy.yaml
	as=
	[ "$(id -u)" -ne 0 ] || as="setpriv --reuid 1000 --regid 1000 --clear-groups"
	run -125 $as amap-confine --policy policy.yaml -- true
	assert_output --partial "the policy asks for 4242:${run_as#*:}, but the caller is $run_as: render it with --run-as $run_as"
}

@test "descriptors and environment of the caller are gone" {
	exec 7<policy.yaml
	run -0 env SECRET=x amap-confine --policy policy.yaml -- ls /proc/self/fd
	assert_output "0
1
2
3"
	exec 7<&-
	run -0 env SECRET=x amap-confine --policy policy.yaml --env A=b -- env
	assert_output "PATH=/usr/local/bin:/usr/bin:/bin
HOME=/
A=b"
}
