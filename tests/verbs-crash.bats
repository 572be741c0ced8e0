load common
load golden

# A build whose amap-put, when it is started with --apply for the $KILL_RUN-th
# time, is killed at call number $KILL_AT of the system call $KILL_WHAT; when
# there are fewer, it lives.
setup() {
	not_sanitized "long, and what is killed finds no fault of its own"
	cd "$BATS_TEST_TMPDIR" || return
	strace -o /dev/null true 2>/dev/null || skip "no strace here"
	build_of_links killer
	rm killer/bin/amap-put
	cat >killer/bin/amap-put <<-END
	#!/bin/sh
	case " \$* " in
	*" --apply "*) ;;
	*) exec $BIN/amap-put "\$@" ;;
	esac
	echo >>$PWD/runs
	[ "\$(wc -l <$PWD/runs)" -eq "\$KILL_RUN" ] || exec $BIN/amap-put "\$@"
	exec strace -qq -o /dev/null -e trace=\$KILL_WHAT -e inject=\$KILL_WHAT:signal=KILL:when=\$KILL_AT $BIN/amap-put "\$@"
	END
	chmod +x killer/bin/amap-put
	# In memory where there is such a file system: this is about order, not about disks.
	FAST=$(mktemp -d /dev/shm/amap-XXXXXX 2>/dev/null) || FAST=$BATS_TEST_TMPDIR
	H=$FAST/home
	fake_gateway
	touch "$FAKE_OPENSHELL/ids"
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/cfg ANTHROPIC_API_KEY=sk-x
}

teardown() {
	case ${FAST-} in /dev/shm/*) rm -rf "$FAST" ;; esac
}

amap() { sh "$TOP/sh/amap-openshell" --openshell openshell --home "$H" --run-as 1000:1000 "$@"; }

save() { rm -rf saved && mkdir saved && cp -a "$H" saved/home && cp -a "$FAKE_OPENSHELL" saved/fake; }

restore() {
	rm -rf "$H" "$FAKE_OPENSHELL"
	cp -a saved/home "$H"
	cp -a saved/fake "$FAKE_OPENSHELL"
}

# killed_at_each COUNT VERB...: from the saved state; killed at each call that
# makes or removes something, COUNT in all, then run again, the home becomes
# what one run without a fault makes of it.
killed_at_each() {
	local count=$1 n kills=0 rc call
	shift
	restore
	state_of >before
	amap "$@" >/dev/null
	state_of >after
	sort before after >known
	for call in 1/mkdirat 1/renameat 1/unlinkat 2/mkdirat 2/renameat; do
		for ((n = 1; n < 100; n++)); do
			restore
			rm -f runs
			rc=0
			AMAP_BUILD_DIR=$PWD/killer KILL_RUN=${call%/*} KILL_WHAT=${call#*/} KILL_AT=$n amap "$@" >out 2>&1 || rc=$?
			[ "$rc" -ne 0 ] || break
			[ "$rc" -gt 128 ] || fail_step "killed at $call $n: exit $rc"
			kills=$((kills + 1))
			# Every path is as it was, or as it is to be.
			state_of | grep -v '\.tmp$' | sort | comm -23 - known >strange
			[ ! -s strange ] || { cat strange; fail_step "killed at $call $n: a path that is neither old nor new"; }
			rc=0
			amap "$@" >out 2>&1 || rc=$?
			[ "$rc" -eq 0 ] || fail_step "after being killed at $call $n: exit $rc"
			state_of | diff after - || fail_step "after being killed at $call $n: the home is another"
		done
	done
	[ "$kills" -ge "$count" ] || { echo "killed only $kills times"; return 1; }
}

@test "install, killed between any two writes, is finished by the next run" {
	mkdir "$H"
	save
	killed_at_each 13 install --apply
}

@test "provision of the last member, killed between any two writes, is finished by the next run" {
	amap install --apply >/dev/null
	amap provision alpha --apply >/dev/null
	save
	killed_at_each 16 provision beta --apply
	assert_equal "$(amap list)" "alpha: member (id-alpha-1)
beta: member (id-beta-2)"
}

@test "router-config, killed between any two writes, is finished by the next run" {
	amap install --apply >/dev/null
	amap provision alpha --apply >/dev/null
	amap provision beta --apply >/dev/null
	echo '{}' >"$H/router.json"
	rm "$H/selected.json"
	rmdir "$H/router-state"
	save
	killed_at_each 3 router-config --apply
}

@test "deprovision, killed between any two writes, is finished by the next run" {
	amap install --apply >/dev/null
	amap provision alpha --apply >/dev/null
	amap provision beta --apply >/dev/null
	mkdir -p "$H"/router-state/alpha/{audit,held,results}
	touch "$H"/router-state/alpha/{first-seen.json,seq,audit/log.jsonl,held/req-1.json,results/0.json} \
	    "$H"/instances/alpha/inbox/notices/notice-1.json "$H"/instances/alpha/outbox/{req-9.json,results/r.json}
	mkdir -p "$H"/instances/alpha/peer/messages/sub
	touch "$H"/instances/alpha/peer/messages/sub/deep
	save
	killed_at_each 12 deprovision alpha --apply
	[ -e "$H/router-state/alpha/audit/log.jsonl" ]
	[ -e "$H/instances/alpha/outbox/req-9.json" ]
}

@test "provision, killed between the create and the record, is finished by the next run without another create" {
	amap install --apply >/dev/null
	cat >killing <<-'END'
	#!/bin/sh
	openshell "$@" || exit
	case " $* " in *" create "*) kill -9 "$(ps -o ppid= -p $PPID)" ;; esac
	END
	chmod +x killing
	run -137 sh "$TOP/sh/amap-openshell" --openshell "$PWD/killing" --home "$H" --run-as 1000:1000 provision alpha --apply
	[ ! -e "$H/membership.json" ]
	run -0 amap provision alpha --apply
	assert_line 'present sandbox alpha (id-alpha-1)'
	assert_line 'created membership.json'
	assert_equal "$(grep -c create "$FAKE_OPENSHELL/calls")" 1
}
