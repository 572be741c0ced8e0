# The verbs on the example fleet, with the stand-in for the gateway; what they
# print and leave, from our own data.
load common
load golden

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	example_setup
}

@test "the story of the example fleet, from install to teardown, as data has it" {
	n=0
	while IFS= read -r line <&5; do
		case $line in
		'$ '*)
			n=$((n + 1))
			ran=$line
			rc=0
			eval "${line#\$ }" >out 2>err || rc=$?
			{ [ "$rc" -eq 0 ] || printf '(exit %d)\n' "$rc"; cat out; sed 's/^/! /' err; } |
				sed -e "s|$H|HOME|g; s|$CFG|CFG|g; s|$DOMAIN|DOMAIN|g" -e 's|^\(would create sandbox [a-z]*\): .*|\1|' \
				    -e '/^[a-z ]* payload\/./d; s/^\(payload\/ holds\) [0-9]*/\1 N/' >have
			: >want ;;
		*) printf '%s\n' "$line" >>want ;;
		esac
		IFS= read -r next <&6 || next='$ '
		case $next in
		'$ '*) diff want have || { echo "after $ran"; return 1; } ;;
		esac
	done 5<"$DATA/verbs/story" 6< <(tail -n +2 "$DATA/verbs/story")
	[ "$n" -gt 20 ]
}

@test "who is on both lanes is named for every pair, by the verb that would complete the record" {
	jq '.peers = {"alpha": ["beta"]}' "$TOP/examples/fleet.json" >both.json
	amap --fleet both.json install --apply >/dev/null
	key amap provision alpha --apply >/dev/null
	before=$(state_of)
	for apply in '' --apply; do
		# shellcheck disable=SC2086
		run -1 --separate-stderr key amap provision beta $apply
		[ -z "$output" ]
		assert_regex "$stderr" 'alpha -> beta'
	done
	assert_equal "$(state_of)" "$before"
	run -1 grep "create.*beta" "$FAKE_OPENSHELL/calls"
	amap l1-kit prepare --home "$H" --fleet "$H/fleet.json" --run-as 1000:1000 --image x --apply >/dev/null
	run -1 --separate-stderr amap l1-kit record --home "$H" beta id-beta-2
	assert_regex "$stderr" 'alpha -> beta'
}

@test "what the router itself would refuse of its configuration is refused before anything is written" {
	amap install --apply >/dev/null
	key amap provision alpha --apply >/dev/null
	label=$(printf 'x%.0s' {1..64})		# one more than the router takes, though the policy allows it
	sed -i "s/\"fleet_domain\": \"[^\"]*\"/\"fleet_domain\": \"$label.internal\"/" "$H/fleet.json"
	before=$(state_of)
	run -1 --separate-stderr key amap provision beta --apply
	assert_regex "$stderr" "fleet_domain"
	assert_equal "$(state_of)" "$before"
	run -1 grep "create.*beta" "$FAKE_OPENSHELL/calls"
}

@test "a recorded member that the policy dropped blocks record and provision, but not router-config and install" {
	fleet_up
	jq '.task_graph = {"gamma": ["alpha"]}' "$TOP/examples/fleet.json" >"$H/fleet.json"
	run -1 --separate-stderr key amap provision gamma --apply
	assert_equal "$stderr" 'amap-openshell provision: beta: recorded, but not in the fleet any more; run amap-openshell deprovision first'
	run -1 grep "create.*gamma" "$FAKE_OPENSHELL/calls"
	jq '.task_graph = {"alpha": []}' "$TOP/examples/fleet.json" >"$H/fleet.json"
	run -1 --separate-stderr amap provision alpha
	assert_regex "$stderr" 'beta: recorded, but not in the fleet any more'
	run -0 amap router-config --apply
	assert_line 'warning: beta is recorded, but the policy does not name it any more; deprovision it'
	run -0 amap install
}

@test "deprovision needs no policy: the record says where the sandbox is" {
	fleet_up
	echo '{' >"$H/fleet.json"
	run -0 amap deprovision beta --apply
	assert_line 'deleting sandbox beta (id-beta-2)'
	rm "$H/fleet.json"
	run -0 amap deprovision alpha --apply
	assert_equal "$(find "$FAKE_OPENSHELL/boxes" -name id)" ''
}

@test "an answer of the gateway for another sandbox, or with an unfit ID, is refused" {
	fleet_up
	box=$FAKE_OPENSHELL/boxes/default/alpha
	for id in '' 'a b' 'a\tb'; do		# the last one is an escape in the JSON
		printf '%s' "$id" >"$box/id"
		run -1 --separate-stderr amap provision alpha
		assert_regex "$stderr" '^amap-openshell provision: alpha: the answer|^amap-openshell provision: alpha: `sandbox get alpha` answered without a fit ID'
		run -1 --separate-stderr amap deprovision alpha --apply
		run -1 amap list
		assert_line --partial 'alpha: UNKNOWN ('
	done
	cat >liar <<-'END'
	#!/bin/sh
	case " $* " in *" get "*) echo '{"id":"x","name":"beta","workspace":"default"}' ;; *) exec openshell "$@" ;; esac
	END
	chmod +x liar
	run -1 --separate-stderr sh "$TOP/sh/amap-openshell" --openshell "$PWD/liar" --home "$H" --run-as 1000:1000 provision alpha
	assert_equal "$stderr" 'amap-openshell provision: alpha: `sandbox get alpha` answered for another sandbox (default/beta)'
	sed -i 's/echo .*;; \*)/echo "not JSON" ;; *)/' liar
	run -1 --separate-stderr sh "$TOP/sh/amap-openshell" --openshell "$PWD/liar" --home "$H" --run-as 1000:1000 provision alpha
	assert_output 'UNKNOWN: `sandbox get alpha` did not print a JSON object'
}

@test "what the gateway says is fit for a terminal and one line" {
	amap install --apply >/dev/null
	printf 'create \033[2Jevil\ttab %s\n' "$(printf 'x%.0s' {1..500})" >"$FAKE_OPENSHELL/fail"
	run -1 --separate-stderr key amap provision alpha --apply
	[ "$(wc -l <<<"$stderr")" -eq 1 ]
	run -1 grep -P '[\x00-\x08\x0b-\x1f\x7f]' <<<"$stderr"
	[ "${#stderr}" -lt 400 ]
}

@test "the key is in the environment of the create alone, and standard input of every call is empty" {
	amap install --apply >/dev/null
	cat >eater <<-'END'
	#!/bin/sh
	wc -c >>"$FAKE_OPENSHELL/eaten"
	exec openshell "$@"
	END
	chmod +x eater
	eat() { key sh "$TOP/sh/amap-openshell" --openshell "$PWD/eater" --home "$H" --run-as 1000:1000 "$@" <<<"operator's own words"; }
	run -0 eat provision alpha --apply
	run -0 eat provision beta --apply
	assert_equal "$(cut -f 1,4,5 "$FAKE_OPENSHELL/calls" | grep '^1' | sort -u)" "1	sandbox	create"
	run -0 eat list
	assert_output 'alpha: member (id-alpha-1)
beta: member (id-beta-2)'
	run -0 eat deprovision beta --apply
	assert_equal "$(sort -u "$FAKE_OPENSHELL/eaten")" 0
	run -1 grep -r sk-secret "$H" "$FAKE_OPENSHELL"
}

@test "a create that failed after the record was made is taken up by the next run" {
	amap install --apply >/dev/null
	echo Error >"$FAKE_OPENSHELL/create-phase"
	run -1 key amap provision alpha --apply
	[ ! -e "$H/membership.json" ]
	[ -e "$H/policies/alpha.yaml" ]
	run -0 amap provision alpha --apply
	assert_line 'present sandbox alpha (id-alpha-1)'
	assert_line 'created membership.json'
}

@test "--restart-policy reaches the vector only when it is asked for" {
	amap install --apply >/dev/null
	run -0 amap provision alpha
	refute_output --partial '--restart-policy'
	run -0 amap --restart-policy provision alpha
	assert_output --partial ' --restart-policy on-failure --detach '
	run -1 key amap --restart-policy provision alpha --apply
	touch "$FAKE_OPENSHELL/knows"
	echo restart-policy >"$FAKE_OPENSHELL/knows"
	run -0 key amap --restart-policy provision alpha --apply
}

@test "as somebody else than root, embedded sandboxes run as the caller and nobody else" {
	[ "$(id -u)" -ne 0 ] || skip "this is root"
	amap install --apply >/dev/null
	run -1 --separate-stderr sh "$TOP/sh/amap-openshell" --home "$H" --run-as 64999:64999 provision alpha
	assert_regex "$stderr" 'only root can run embedded sandboxes as somebody else'
}

@test "install --agent puts a program into the payload, and a later install keeps it" {
	printf '#!/bin/sh\n' >agent.sh
	run -0 amap install --agent agent.sh --apply
	assert_line 'created payload/agent'
	assert_equal "$(stat -c %a "$H/payload/agent")" 755
	run -0 amap install --apply
	assert_line 'present payload/agent'
	# and one that the caller's environment happens to name is none
	rm "$H/agent-source" "$H/payload/agent"
	agent=$PWD/agent.sh run -0 amap l1-kit prepare --home "$H" --fleet "$H/fleet.json" --run-as 1000:1000 --image x
	refute_output --partial payload/agent
	run -1 amap install --agent none --apply
}

@test "the original's connector is taken from its checkout, and every missing file of it is named" {
	mkdir -p original/bin
	echo 1 >original/bin/inbox-delivery
	run -1 --separate-stderr amap --connector "$PWD/original" install --apply
	assert_equal "$(grep -c 'No such file' <<<"$stderr")" 3
	[ ! -e "$H" ]
	for file in _inboxlib.py inbox-mcp-vol inbox-submit; do echo 1 >original/bin/$file; done
	run -0 amap --connector original install --apply	# from here it is the same one
	assert_equal "$(cd "$H/payload" && find . -type f | sort)" "./INBOX-POLICY.md
./_inboxlib.py
./amap-main
./bin/inbox-mcp-vol
./bin/inbox-submit
./claude-seed
./claude-session-start
./claude-settings.json
./inbox-delivery
./mcp-servers.json
./openshell-sessions"
}

@test "siblings: what would be checked out; a checkout with changes, and a directory that is none, are refused" {
	command -v git >/dev/null || skip "no git"
	mkdir -p here/tree origin
	cp -R "$TOP/sh" "$TOP/examples" here/tree/
	git -c init.defaultBranch=main init -q origin
	git -C origin -c user.name=n -c user.email=e commit -q --allow-empty -m one
	one=$(git -C origin rev-parse HEAD)
	git -C origin -c user.name=n -c user.email=e commit -q --allow-empty -m two
	two=$(git -C origin rev-parse HEAD)
	pins() { printf '{"siblings":[{"name":"sib","url":"%s","commit":%s}]}' "$1" "$2" >here/tree/examples/siblings.json; }
	siblings() { AMAP_BUILD_DIR=${BIN%/bin} sh here/tree/sh/amap-openshell siblings "$@"; }
	pins https://example.invalid/sib "\"$two\""
	run -0 siblings
	assert_output "would run: git clone --quiet https://example.invalid/sib $PWD/here/sib
would run: git -C $PWD/here/sib checkout --quiet --detach $two
DRY RUN: nothing changed. Run again with --apply."
	[ ! -e here/sib ]
	git clone -q origin here/sib
	run -0 siblings
	assert_output "present sib at $two
DRY RUN: nothing changed. Run again with --apply."
	pins https://example.invalid/sib "\"$one\""
	run -0 siblings --apply
	assert_equal "$(git -C here/sib rev-parse HEAD)" "$one"
	git -C origin -c user.name=n -c user.email=e commit -q --allow-empty -m three
	three=$(git -C origin rev-parse HEAD)
	pins https://example.invalid/sib "\"$three\""
	run -0 siblings --apply
	assert_output "+ git -C $PWD/here/sib fetch --quiet origin
+ git -C $PWD/here/sib checkout --quiet --detach $three"
	assert_equal "$(git -C here/sib rev-parse HEAD)" "$three"
	# a checkout that ends somewhere else is told, not believed
	mkdir bin
	printf '#!/bin/sh\ncase " $* " in *" checkout "*) echo "${GIT_TERMINAL_PROMPT-unset}" >>"%s" ;; *) exec %s "$@" ;; esac\n' "$PWD/checkouts" "$(command -v git)" >bin/git
	chmod +x bin/git
	pins https://example.invalid/sib "\"$two\""
	PATH=$PWD/bin:$PATH run -1 --separate-stderr siblings --apply
	assert_equal "$stderr" "amap-openshell siblings: $PWD/here/sib: its HEAD is not $two after the checkout"
	assert_equal "$(cat checkouts)" 0
	pins https://example.invalid/sib null
	run -0 siblings
	assert_line "would run: git -C $PWD/here/sib pull --ff-only --quiet"
	touch here/sib/new
	run -1 --separate-stderr siblings --apply
	assert_equal "$stderr" "amap-openshell siblings: $PWD/here/sib: has local changes; commit or remove them"
	rm -rf here/sib
	mkdir here/sib
	run -1 --separate-stderr siblings --apply
	assert_equal "$stderr" "amap-openshell siblings: $PWD/here/sib: not a checkout of its own; move it away"
	rmdir here/sib
	pins http://example.invalid/sib null
	run -1 siblings
	for commit in '"abc"' "\"${one}0\"" "\"${one%?}\"" "\"${one%?}G\"" "\"${one%?}A\"" 7; do
		pins https://example.invalid/sib "$commit"
		run -1 siblings --apply
		[ ! -e here/sib ]
	done
	for list in '{"siblings":[],"more":1}' '{"siblings":[]}' '[]' '{"siblings":[{"name":"a","url":"https://x","commit":null,"more":1}]}' \
	    '{"siblings":[{"name":"a","url":"https://x","commit":null},{"name":"a","url":"https://y","commit":null}]}' \
	    '{"siblings":[{"name":"../a","url":"https://x","commit":null}]}' '{"siblings":[{"name":"-a","url":"https://x","commit":null}]}' \
	    '{"siblings":[{"name":"A","url":"https://x","commit":null}]}' '{"siblings":[{"name":"","url":"https://x","commit":null}]}' \
	    '{"siblings":[{"name":"a","url":"","commit":null}]}'; do
		echo "$list" >here/tree/examples/siblings.json
		run -1 --separate-stderr siblings
		assert_regex "$stderr" '^amap-openshell siblings: '
	done
}

@test "a verb starts as many programs for thirty members as for two" {
	command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null || skip "no strace here"
	count() {
		ASAN_OPTIONS=detect_leaks=0 strace -f -qq -e trace=execve -o trace sh "$TOP/sh/amap-openshell" l1-kit prepare --home "$H" --fleet "$1" \
		    --run-as 1000:1000 --image x --apply >/dev/null
		grep -c 'execve(.*= 0$' trace
	}
	jq '.groups = {"g": [range(30) | "m\(.)"]}' "$TOP/examples/fleet.json" >many.json
	two=$(count "$TOP/examples/fleet.json")
	rm -rf "$H"
	assert_equal "$(count many.json)" "$two"
	assert_equal "$(ls "$H/policies" | wc -l)" 32
}

@test "closed standard input and output, and a full device" {
	fleet_up
	for verb in list router-config "provision alpha" install "deprovision alpha" teardown gateway-config; do
		# shellcheck disable=SC2086
		amap $verb >want 2>&1 <&- || :
		# shellcheck disable=SC2086
		amap $verb 2>&1 </dev/null | diff want - || { echo "$verb"; return 1; }
	done
	before=$(state_of)
	for verb in router-config "provision alpha" install; do
		rc=0
		# shellcheck disable=SC2086
		amap $verb >/dev/full 2>err || rc=$?
		[ "$rc" -ne 0 ] && [ -s err ] || { echo "$verb: exit $rc"; return 1; }
	done
	assert_equal "$(state_of)" "$before"
}
