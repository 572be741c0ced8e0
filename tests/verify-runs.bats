load common
load evidence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	recorded "$PWD/home"
}

teardown() {
	recorded_end
}

@test "a probe that dies is an UNKNOWN of its section, and the others still speak" {
	build_of_links build
	for probe in mounts health; do
		rm build/bin/amap-probe-$probe
		printf '#!/bin/sh\nkill -9 $$\n' >build/bin/amap-probe-$probe
		chmod +x build/bin/amap-probe-$probe
	done
	export AMAP_BUILD_DIR=$PWD/build
	assert_equal "$(findings)" '- - UNKNOWN; - - UNKNOWN'
	run -1 verify
	assert_line --partial 'UNKNOWN whether every check of this part was made: checks-'
	assert_equal "$(grep -c '^  PASS' <<<"$output")" $((39 - 4 - 7))
	rm build/bin/amap-ask
	printf '#!/bin/sh\nexit 2\n' >build/bin/amap-ask
	chmod +x build/bin/amap-ask
	run -1 verify
	for section in install router-config gateway members router-container router-health; do
		assert_line --partial "$section: "
	done
}

@test "an original router whose checkout is missing is one UNKNOWN a section" {
	router() { sh "$TOP/sh/amap-openshell" --home "$H" --openshell "$PWD/bin/openshell" --docker "$PWD/bin/docker" \
	    --gateway-toml "$PWD/gateway.toml" --router "$PWD/nowhere" verify --format jsonl; }
	run -1 router
	assert_equal "$(jq -r 'select(.outcome and .outcome != "PASS") | "\(.id) \(.outcome)"' <<<"$output")" $'K1 UNKNOWN\nH0 UNKNOWN'
	assert_equal "$(jq -r 'select(.outcome == "PASS") | .id' <<<"$output" | wc -l)" $((39 - 6 - 7))
}

@test "an original router and connector are asked in their own way" {
	mkdir -p original/router original/docker connector/bin/bin
	touch original/router/reset.py
	cat >original/docker/run.sh <<-'END'
		#!/bin/sh
		[ "$1 $3 $4 $5" = "--config --name amap-openshell-verify-router-health --" ] || exit 2
		[ "$IMAGE" = some-image ] || exit 2
		echo 'image is old'
		config=$2
		shift 5
		exec amap-router --config "$config" "$@"
	END
	chmod +x original/docker/run.sh
	cat >original/docker/derive-mounts.py <<-'END'
		import os, sys
		home = os.path.dirname(sys.argv[1])
		assert os.path.exists("docker/derive-mounts.py")
		print("%s\tro\n%s/instances\trw\n%s/roster\trw\n%s/router-state\trw" % (home, home, home, home))
	END
	command -v python3 >/dev/null || skip 'the original needs python3'
	originals() { sh "$TOP/sh/amap-openshell" --home "$H" --openshell "$PWD/bin/openshell" --docker "$PWD/bin/docker" \
	    --gateway-toml "$PWD/gateway.toml" --router "$PWD/original" --connector "$PWD/connector" verify --router-image some-image --format jsonl; }
	run -1 originals
	# the payload is ours and what runs inside is not asked by our probes' names: those alone are not PASS
	assert_equal "$(jq -r 'select(.outcome and .outcome != "PASS") | "\(.id) \(.outcome)"' <<<"$output" | sort | uniq -c | sed 's/^ *//')" \
	    $'1 I1 UNKNOWN\n2 M6 UNKNOWN\n2 M7 UNKNOWN'
	assert_output --partial "1 line stood before the router's status document"
}

@test "what runs inside with the original's payload tells the same as our probes" {
	eval "$(sed -n 's/^\tby_shell_/by_shell_/p' "$TOP/sh/verify.sh")"
	run -0 sh -c "$by_shell_write" sh "$PWD/fresh"
	assert_output OPENED
	assert_file_not_exist fresh
	run -0 sh -c "$by_shell_write" sh /proc/fresh
	refute_output OPENED
	bwrap --ro-bind / / true || skip 'bwrap cannot make a namespace here'
	run -0 bwrap --ro-bind / / --bind "$PWD" "$PWD" --ro-bind "$R" "$R" sh -c "$by_shell_write" sh "$R/fresh"
	assert_output EROFS
	cp "$(type -P sleep)" inbox-delivery
	cat >count <<-'END'
	./inbox-delivery 60 3>&- &
	until [ "$(cat /proc/$!/comm)" = inbox-delivery ]; do sleep 0.02; done
	sh -c 'exec sleep 60' /somewhere/inbox-delivery 3>&- &
	sh -c "$1"
	END
	# among no other processes than these
	run -0 bwrap --die-with-parent --dev-bind / / --unshare-pid --proc /proc sh count "$by_shell_delivery"
	assert_output 1
}

@test "B80 a program that is missing is named, and UNKNOWN" {
	rm bin/docker
	assert_equal "$(findings)" 'M4 alpha UNKNOWN; M5 alpha UNKNOWN; M4 beta UNKNOWN; M5 beta UNKNOWN; K1 - UNKNOWN; K2 - UNKNOWN; K3 - UNKNOWN; K4 - UNKNOWN; K5 - UNKNOWN; K6 - UNKNOWN'
	assert_equal "$(jq -r 'select(.id == "K1") | .reason' checks)" "$PWD/bin/docker: cannot be started: No such file or directory"
	rm bin/openshell
	run -1 verify
	assert_line --partial "$PWD/bin/openshell: cannot be started: No such file or directory"
}

@test "B80 it works from cron: no HOME, no PATH, no terminal, and by hand" {
	run -0 setsid env -i REPLAY="$R" AMAP_BUILD_DIR="${BIN%/bin}" /bin/sh "$TOP/sh/verify.sh" --home "$H" \
	    --openshell "$PWD/bin/openshell" --docker "$PWD/bin/docker" --gateway-toml "$PWD/gateway.toml" </dev/null
	assert_equal "$(grep -c '^  PASS' <<<"$output")" 39
	run -0 setsid env -i REPLAY="$R" AMAP_BUILD_DIR="${BIN%/bin}" /bin/sh "$TOP/sh/verify.sh" --home "$H" \
	    --openshell "$PWD/bin/openshell" --docker "$PWD/bin/docker" --gateway-toml "$PWD/gateway.toml" <&-
}

@test "B91 a check that fails, and a refusal, are 1; a run that is none is 2" {
	run -2 verify --apply
	run -2 verify --format html
	run -2 verify extra
	run -1 sh "$TOP/sh/amap-openshell" --home "$PWD/absent" verify
	run -2 env -u XDG_CONFIG_HOME -u HOME sh "$TOP/sh/amap-openshell" verify
	verify_full() { verify >/dev/full; }
	run -2 verify_full
}

@test "the machine forms say the same" {
	echo 0 >"$R/delivery-alpha"
	run -1 verify --format tap
	assert_equal "$(grep -c '^ok ' <<<"$output") $(grep -c '^not ok ' <<<"$output")" '38 1'
	assert_line '1..39'
	run -1 verify --format nagios
	assert_line --index 0 'AMAP CRITICAL - 38 of 39 checks pass|pass=38 fail=1 unknown=0'
	run -1 verify --format prometheus
	assert_line 'amap_check_pass{section="members",id="M7",member="alpha",outcome="FAIL"} 0'
	run -1 verify --format junit
	assert_line '<testsuites tests="39" failures="1" errors="0">'
}

@test "a monitoring plug-in gives its own exit status" {
	printf '#!/bin/sh\nexec sh "%s/sh/amap-openshell" "$@"\n' "$TOP" >bin/amap-openshell
	chmod +x bin/amap-openshell
	PATH=$PWD/bin:$PATH
	plugin() { sh "$TOP/examples/check_amap" --home "$H" --openshell "$PWD/bin/openshell" --docker "$PWD/bin/docker" \
	    --gateway-toml "$PWD/gateway.toml"; }
	run -0 plugin
	assert_output 'AMAP OK - 39 of 39 checks pass|pass=39 fail=0 unknown=0'
	echo 1 >"$R/info.rc"
	run -3 plugin
	assert_line --index 0 'AMAP UNKNOWN - 38 of 39 checks pass|pass=38 fail=0 unknown=1'
	echo 0 >"$R/delivery-alpha"
	run -2 plugin
	run -3 sh "$TOP/examples/check_amap" --home "$PWD/absent"
}

@test "a run that is ended leaves no process and no file" {
	printf '#!/bin/sh\nexec sleep 87.5\n' >bin/slow
	chmod +x bin/slow
	mkdir scratch
	TMPDIR=$PWD/scratch setsid sh "$TOP/sh/amap-openshell" --home "$H" --openshell "$PWD/bin/slow" verify >out 2>&1 3>&- &
	pid=$!
	eventually pgrep -f 'sleep 87[.]5'
	kill -TERM -- "-$(ps -o pgid= -p "$(pgrep -f "$PWD/bin/slow verify" | head -n 1)" | tr -d ' ')"
	wait $pid || :
	run -1 pgrep -f 'sleep 87[.]5'
	assert_equal "$(ls -A scratch)" ""
}
