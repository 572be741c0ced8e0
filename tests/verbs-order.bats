# What a verb wants before it does anything, in which order it looks, and the
# lines that only some states have. The stand-in for the gateway, our own data.
load common
load golden

setup() {
	not_sanitized "long, and the same programs do the same in verbs.bats"
	cd "$BATS_TEST_TMPDIR" || return
	example_setup
}

@test "a record that would be refused is refused before lanes or a sandbox are made: an ID of another member's" {
	amap install --apply >/dev/null
	key amap provision alpha --apply >/dev/null
	mkdir -p "$FAKE_OPENSHELL/boxes/default/beta"
	printf id-alpha-1 >"$FAKE_OPENSHELL/boxes/default/beta/id"
	printf Ready >"$FAKE_OPENSHELL/boxes/default/beta/phase"
	before=$(state_of)
	run -1 --separate-stderr amap provision beta --apply
	assert_equal "$output$stderr" "amap-openshell provision: $H/membership.json: the ID id-alpha-1 belongs to alpha already"
	assert_equal "$(state_of)" "$before"
}

@test "provision: what must stand before it, in its order" {
	amap install --apply >/dev/null
	for dir in payload roster; do
		mv "$H/$dir" "$H/moved"
		for what in nothing link file; do
			case $what in
			link) ln -s moved "$H/$dir" ;;
			file) rm "$H/$dir"; touch "$H/$dir" ;;
			esac
			run -1 --separate-stderr key amap provision alpha --apply
			assert_equal "$output$stderr" "amap-openshell provision: $H/$dir: not a real directory; run amap-openshell install --apply first"
		done
		rm "$H/$dir"
		mv "$H/moved" "$H/$dir"
	done
	run -1 --separate-stderr amap provision $'alpha\nx'
	assert_regex "$stderr" 'not a member of the fleet'
	# the member comes before what is missing, the policy before the member
	mv "$H/roster" "$H/moved"
	run -1 --separate-stderr amap provision gamma
	assert_equal "$stderr" "amap-openshell provision: gamma: not a member of the fleet in $H/fleet.json"
	mv "$H/fleet.json" "$H/policy"
	run -1 --separate-stderr amap provision gamma
	assert_equal "$stderr" "amap-openshell provision: $H/fleet.json: there is no policy in this home; run amap-openshell install --apply first"
}

@test "provision: created, but not found after that; and a program that does not answer in time" {
	amap install --apply >/dev/null
	cat >forgets <<-'END'
	#!/bin/sh
	case " $* " in *" create "*) exit 0 ;; *) exec openshell "$@" ;; esac
	END
	chmod +x forgets
	run -1 --separate-stderr env ANTHROPIC_API_KEY=sk-x sh "$TOP/sh/amap-openshell" --openshell "$PWD/forgets" --home "$H" --run-as 1000:1000 provision alpha --apply
	assert_line 'created sandbox alpha'
	assert_equal "$stderr" "amap-openshell provision: alpha: created, but then not found; when it is there, run amap-openshell l1-kit record --home $H alpha ID --apply"
	[ ! -e "$H/membership.json" ]
	# 120 seconds, in which nothing is said, made short
	mkdir fast
	printf '#!/bin/sh\necho "$*" >>"%s"\nshift 4\nexec %s 0.2 "$@"\n' "$PWD/limits" "$(command -v timeout)" >fast/timeout
	printf '#!/bin/sh\nexec sleep 60\n' >fast/mute
	chmod +x fast/*
	PATH=$PWD/fast:$PATH run -1 --separate-stderr sh "$TOP/sh/amap-openshell" --openshell mute --home "$H" --run-as 1000:1000 provision alpha
	assert_equal "$output" 'UNKNOWN: `sandbox get alpha` failed (no answer within the time allowed) and the list could not confirm it: `sandbox list` failed: no answer within the time allowed'
	assert_equal "$(cut -d " " -f 1-4 limits | sort -u)" '--foreground -k 10 120'
}

@test "provision of a sandbox that is there and has no lanes yet says with which ID it would be recorded" {
	fleet_up
	rm "$H/membership.json" "$H/selected.json" "$H/router.json"
	rm -r "$H/instances/alpha/peer"
	run -0 amap provision alpha
	assert_line 'would create instances/alpha/peer'
	assert_equal "$(tail -n 3 <<<"$output")" 'present sandbox alpha (id-alpha-1)
would record alpha in membership.json with ID id-alpha-1
dry run: nothing was written; add --apply to write'
}

@test "list: each kind of line, in the order of the names, and other workspaces are no rows" {
	jq '.groups = {"g": ["delta", "echo", "never"]}' "$TOP/examples/fleet.json" >fleet.json
	amap --fleet fleet.json install --apply >/dev/null
	for name in alpha beta delta echo; do key amap provision $name --apply >/dev/null; done
	boxes=$FAKE_OPENSHELL/boxes
	mkdir -p "$boxes/other/alien"
	cp -R "$boxes/default/alpha" "$boxes/default/bravo"
	rm -r "$boxes/default/beta"
	printf id-new >"$boxes/default/delta/id"
	printf 'a b' >"$boxes/default/echo/id"
	run -1 --separate-stderr amap provision delta --apply
	assert_equal "$output$stderr" 'amap-openshell provision: delta: recorded with the ID id-delta-3, but the sandbox has id-new; run amap-openshell deprovision delta first'
	run -1 --separate-stderr amap list
	assert_output 'alpha: member (id-alpha-1)
beta: recorded but absent (recorded ID id-beta-2)
bravo: not a member (no record in membership.json)
delta: ID MISMATCH (recorded id-delta-3, sandbox has id-new)
echo: UNKNOWN (`sandbox get echo` answered without a fit ID)'
	[ -z "$stderr" ]
	echo 'get no' >"$FAKE_OPENSHELL/fail"
	run -1 amap list
	assert_line 'alpha: UNKNOWN (alpha is listed but `sandbox get` failed: no)'
	rm "$FAKE_OPENSHELL/fail"
	for name in bravo delta echo; do rm -r "$boxes/default/$name"; done
	for name in beta delta echo; do amap deprovision $name --apply >/dev/null; done
	run -0 amap list
	assert_output 'alpha: member (id-alpha-1)'
	rm "$H/membership.json"
	run -1 amap list
	assert_output 'membership.json is absent (nothing was ever recorded in this home)
alpha: not a member (no record in membership.json)'
}

@test "one that lists another for mail and is not listed is told by every verb that writes the router's files" {
	jq '.peers = {"alpha": ["beta"]} | .task_graph = {}' "$TOP/examples/fleet.json" >one.json
	want='warning: alpha lists beta for mail, but beta does not list alpha: no mail passes between them'
	run -0 amap --fleet one.json install --apply
	refute_line "$want"
	key amap provision alpha --apply >/dev/null
	run -0 key amap provision beta --apply
	assert_equal "${lines[-1]}" "$want"
	run -0 amap router-config --apply
	assert_equal "${lines[-1]}" "$want"
	run -0 amap install
	assert_line "$want"
	run -0 amap router-config
	assert_output 'in sync'
}

@test "deprovision in a fleet that was never whole makes no file of the router's" {
	amap install --apply >/dev/null
	key amap provision alpha --apply >/dev/null
	run -0 amap deprovision alpha --apply
	assert_equal "${lines[-1]}" 'updated membership.json'
	[ ! -e "$H/selected.json" ] && [ ! -e "$H/router.json" ]
}

@test "deprovision leaves a sandbox of another ID alone; install says when nobody is recorded any more" {
	fleet_up
	printf id-new >"$FAKE_OPENSHELL/boxes/default/alpha/id"
	run -0 amap deprovision alpha --apply
	assert_line --index 0 --regexp '^left sandbox alpha alone: .*id-new.*id-alpha-1'
	run -1 grep delete "$FAKE_OPENSHELL/calls"
	rm -r "$FAKE_OPENSHELL/boxes/default/beta"
	run -0 amap deprovision beta --apply
	assert_line --index 0 'absent sandbox beta'
	run -0 amap install
	assert_line 'membership.json lists no member; the router starts when all are recorded'
	run -1 --separate-stderr amap deprovision $'beta\nalpha'
	assert_regex "$stderr" 'not recorded'
}

@test "l1-kit prepare and record: what they make, in the order of the report, with which modes; the policy byte for byte" {
	printf '{"groups":{"g":["a"]}, "workspace":"w" ,"fleet_domain":"d"}' >policy.json
	prepare=(l1-kit prepare --home "$H" --fleet policy.json --run-as 1000:1000 --image x)
	lanes='instances
instances/a
instances/a/inbox
instances/a/inbox/notices
instances/a/inbox/messages
instances/a/peer
instances/a/peer/notices
instances/a/peer/messages
instances/a/outbox
instances/a/outbox/results
instances/a/outbox/processed'
	want=$(printf 'created %s\n' . payload roster policies commands $lanes fleet.json policies/a.yaml commands/create-a.sh gateway-fragment.toml)
	run -0 amap "${prepare[@]}" --apply
	assert_equal "$(grep -v ' payload/' <<<"$output")" "$want"
	assert_equal "$(grep -c ' payload/' <<<"$output")" $(($(wc -l <"$TOP/payload/payload.list") + 2))
	cmp policy.json "$H/fleet.json"
	amap-render-gateway --files | jq -j 'select(.path) | .content' | cmp - "$H/gateway-fragment.toml"
	[ ! -e "$CFG" ]
	echo >>policy.json
	run -0 amap "${prepare[@]}"
	assert_equal "$(grep -v '^present' <<<"$output")" 'would update fleet.json
dry run: nothing was written; add --apply to write'
	run -0 amap l1-kit record --home "$H" a id-1 --apply
	assert_output 'created router-state
created membership.json
created router.json
created selected.json
recorded a'
	assert_equal "$(tree_of "$H" | grep -v payload/)" "0755 dir  .
0755 dir  commands
0644 file commands/create-a.sh
0644 file fleet.json
0644 file gateway-fragment.toml
$(sort <<<"$lanes" | sed 's/^/0755 dir  /')
0644 file membership.json
0755 dir  payload
0755 dir  policies
0644 file policies/a.yaml
0755 dir  roster
0700 dir  router-state
0644 file router.json
0644 file selected.json"
	[ ! -e "$CFG" ]
}

@test "l1-kit record: the member, the ID, its lanes, a dropped member, the record, in this order" {
	amap l1-kit prepare --home "$H" --fleet "$TOP/examples/fleet.json" --run-as 1000:1000 --image x --apply >/dev/null
	amap l1-kit record --home "$H" alpha id-1 --apply >/dev/null
	jq '.groups = {"g": ["gamma"]} | .task_graph = {"beta": []}' "$H/fleet.json" >fleet.json
	cp fleet.json "$H/fleet.json"
	record() { run -1 --separate-stderr amap l1-kit record --home "$H" "$@"; }
	record delta ''
	assert_equal "$output$stderr" "amap-openshell l1-kit record: delta: not a member of the fleet in $H/fleet.json"
	record gamma ''
	assert_equal "$output$stderr" 'amap-openshell l1-kit record: --id "": it is empty'
	record gamma 'a b'
	assert_equal "$output$stderr" 'amap-openshell l1-kit record: --id "a b": it holds white space or an unprintable character'
	record gamma id-1
	assert_equal "$output$stderr" "amap-openshell l1-kit record: $H/instances/gamma/inbox/notices: not a real directory; run amap-openshell l1-kit prepare first"
	record beta id-1
	assert_equal "$output$stderr" 'amap-openshell l1-kit record: alpha: recorded, but not in the fleet any more; run amap-openshell deprovision first'
	jq '.groups.g += ["alpha"]' fleet.json >"$H/fleet.json"
	record beta id-1
	assert_equal "$output$stderr" "amap-openshell l1-kit record: $H/membership.json: the ID id-1 belongs to alpha already"
	record alpha id-2
	assert_equal "$output$stderr" "amap-openshell l1-kit record: $H/membership.json: alpha is recorded with the ID id-1, not id-2; deprovision it first"
	# one lane after the other
	for lane in inbox/notices inbox/messages peer/notices peer/messages outbox/results outbox/processed; do
		rmdir "$H/instances/beta/$lane"
		record beta id-2
		assert_regex "$stderr" "instances/beta/$lane: not a real directory"
		mkdir "$H/instances/beta/$lane"
	done
	touch "$H/selected.json"
	run -0 amap l1-kit record --home "$H" beta id-2
	assert_output 'would update membership.json
recorded alpha, beta
still to record: gamma; the router'"'"'s files are written with the last one
warning: selected.json is there, but not every member is recorded; the router goes on with the old one
dry run: nothing was written; add --apply to write'
}

@test "install wants the real path of the home, l1-kit prepare does not" {
	mkdir real
	ln -s real link
	run -1 --separate-stderr amap --home "$PWD/link/home" install --apply
	assert_equal "$output$stderr" "amap-openshell install: $PWD/link/home: it is reached over a symbolic link; give the real path"
	[ ! -e real/home ]
	run -0 amap l1-kit prepare --home "$PWD/link/home" --fleet "$TOP/examples/fleet.json" --run-as 1:1 --image x
}

@test "the home keeps away from this tree, and from the checkouts that are used" {
	mkdir -p here/tree router/sub connector/bin
	cp -R "$TOP/sh" "$TOP/examples" "$TOP/payload" here/tree/
	amap_at() { AMAP_BUILD_DIR=${BIN%/bin} sh here/tree/sh/amap-openshell --openshell openshell "$@"; }
	refused() {
		run -1 --separate-stderr amap_at "$@" install --apply
		[ -z "$output" ]
		assert_regex "$stderr" '^amap-openshell install: .*: the home overlaps with .*; choose a place apart from it$'
	}
	refused --home "$PWD/here"
	refused --home "$PWD/here/tree"
	refused --home "$PWD/here/tree/home"
	refused --router "$PWD/router" --home "$PWD/router/home"
	refused --router router --home "$PWD/router/home"
	refused --connector "$PWD/connector" --home "$PWD/connector"
	AMAP_ROUTER_REPO=$PWD/router refused --home "$PWD/router/sub/home"
	AMAP_CONNECTOR_REPO=connector refused --home "$PWD/connector/home"
	ln -s here/tree link
	refused --home "$PWD/link/home"
	run -0 amap_at --home "$PWD/router/home" install
}

@test "install is refused before its first write when the home record cannot be written" {
	mkdir -p "$CFG/amap-openshell/home"
	for apply in '' --apply; do
		# shellcheck disable=SC2086
		run -1 --separate-stderr amap install $apply
		assert_equal "$output$stderr" "amap-openshell install: $CFG/amap-openshell/home: it is not a regular file; remove it first"
		[ ! -e "$H" ]
	done
	rmdir "$CFG/amap-openshell/home"
	ln -s "$PWD/elsewhere" "$CFG/amap-openshell/home"
	run -1 amap install --apply
	[ ! -e "$H" ] && [ ! -e elsewhere ]
}

@test "the home record: none where there is nowhere to keep one; teardown takes away the one that names this home" {
	run -0 env -u XDG_CONFIG_HOME -u HOME sh "$TOP/sh/amap-openshell" --openshell openshell --home "$H" install --apply
	refute_output --partial 'recorded home'
	run -0 env -u XDG_CONFIG_HOME -u HOME sh "$TOP/sh/amap-openshell" --openshell openshell --home "$H" teardown
	refute_output --partial 'home record'
	record=$CFG/amap-openshell/home
	mkdir -p "$CFG/amap-openshell"
	mkdir other
	for content in "$PWD/other" relative '' "$H"$'\n'"$H"; do
		printf '%s' "$content" >"$record"
		run -0 amap teardown --apply
		refute_output --partial 'home record'
		assert_equal "$(cat "$record"; echo .)" "$content."
	done
	# it stands in for --home and for the variable
	amap install --apply >/dev/null
	run -0 sh "$TOP/sh/amap-openshell" --openshell openshell teardown --apply
	assert_line "removed the home record $record"
	[ ! -e "$record" ]
	run -2 sh "$TOP/sh/amap-openshell" --openshell openshell list
}

@test "teardown that is refused has not stopped the router" {
	amap install --apply >/dev/null
	mkdir bin
	cat >bin/amap-sandbox <<-END
	#!/bin/sh
	echo "\$*" >>"$PWD/asked"
	case \$1 in inspect) echo "bind $H/router-state rw" ;; esac
	END
	chmod +x bin/amap-sandbox
	rmdir "$H/roster"
	ln -s / "$H/roster"
	run -1 --separate-stderr env AMAP_SANDBOX_DIR="$PWD/sandboxes" sh "$TOP/sh/amap-openshell" --openshell "$PWD/bin/amap-sandbox" --home "$H" teardown --apply
	assert_regex "$stderr" 'roster'
	run ! grep -qs service asked
	rm "$H/roster"
	run -0 env AMAP_SANDBOX_DIR="$PWD/sandboxes" sh "$TOP/sh/amap-openshell" --openshell "$PWD/bin/amap-sandbox" --home "$H" teardown --apply
	assert_line --index 0 'stopped the router'
	run -0 grep service asked
}

@test "gateway-config: the fragments, where the file is, a verdict for each setting; it needs no home" {
	run -1 --separate-stderr amap gateway-config
	assert_equal "$(sed -n '/^gateway\.toml: /,$p' <<<"$output")" "gateway.toml: $CFG/openshell/gateway.toml
ABSENT   allow_driver_config = true (a create may bring its own mounts)
ABSENT   enable_bind_mounts = true (these mounts may be directories of the host)
ABSENT   enabled = false (the driver does not turn sandboxes away for their resources)"
	assert_equal "$(sed '/^gateway\.toml: /,$d' <<<"$output")" "$(amap-render-gateway --home "$H"; echo)"
	mkdir "$CFG" "$CFG/openshell"
	amap gateway-config | sed '/^gateway\.toml: /,$d' >"$CFG/openshell/gateway.toml"
	run -0 amap gateway-config
	assert_equal "$(grep -c '^PRESENT  ' <<<"$output")" 3
	run -1 env HOME="$PWD/none" XDG_CONFIG_HOME= sh "$TOP/sh/amap-openshell" --openshell openshell gateway-config
	assert_line --regexp '^# .*--home or \$AMAP_OPENSHELL_HOME'
	refute_line --partial interceptors
	assert_line "gateway.toml: $PWD/none/.config/openshell/gateway.toml"
	run -1 env -u HOME -u XDG_CONFIG_HOME sh "$TOP/sh/amap-openshell" --openshell openshell gateway-config
	assert_line "gateway.toml: not located"
	assert_equal "$(grep -c '^UNKNOWN  ' <<<"$output")" 3
	run -0 env -u HOME -u XDG_CONFIG_HOME sh "$TOP/sh/amap-openshell" --openshell openshell --gateway-toml "$CFG/openshell/gateway.toml" gateway-config
	[ ! -e "$H" ]
}
