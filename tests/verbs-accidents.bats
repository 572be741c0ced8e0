load common
load golden

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	H=$BATS_TEST_TMPDIR/home
	fake_gateway
	touch "$FAKE_OPENSHELL/ids"
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/cfg ANTHROPIC_API_KEY=sk-x
}

amap() { sh "$TOP/sh/amap-openshell" --openshell openshell --home "$H" --run-as 1000:1000 "$@"; }

teardown() {
	umount "$BATS_TEST_TMPDIR/disk" 2>/dev/null || :
}

# links_refused VERB...: for a verb that has nothing to do, or with dry='' one
# that has: with a link at each path that the verb reports (and $only matches), it
# is refused, and neither the home nor what the link points to is changed.
links_refused() {
	local path before n=0
	mkdir -p elsewhere
	echo precious >elsewhere/file
	amap "$@" ${dry---apply} | sed -nE 's/^(present|would (create|update|remove)) ([^ ]*)$/\3/p' >paths
	rm -rf saved
	cp -a "$H" saved
	while IFS= read -r path; do
		[ "$path" != . ] || continue
		n=$((n + 1))
		rm -rf "$H"
		cp -a saved "$H"
		# A file's place gets a link to a file, a directory's one to a directory.
		if [ -d "$H/$path" ]; then
			mv "$H/$path" "$H/$path.moved"
			ln -s "$path.moved" "$H/$path" && ln -sfn "$BATS_TEST_TMPDIR/elsewhere" "$H/$path"
		else
			rm -f "$H/$path"
			mkdir -p "$(dirname "$H/$path")"
			ln -s "$BATS_TEST_TMPDIR/elsewhere/file" "$H/$path"
		fi
		before=$(state_of; find "$H" -type l)
		rc=0
		amap "$@" --apply >out 2>err || rc=$?
		[ "$rc" -eq 1 ] || fail_step "a link at $path: exit $rc" || return 1
		[ -s err ] || fail_step "a link at $path: nothing said" || return 1
		[ "$before" = "$(state_of; find "$H" -type l)" ] || fail_step "a link at $path: something was written" || return 1
		[ "$(ls elsewhere)$(cat elsewhere/file)" = fileprecious ] || fail_step "a link at $path was followed" || return 1
	done < <(grep -E "${only-}" paths)
	rm -rf "$H"
	cp -a saved "$H"
	[ "$n" -ge "$links" ]
}

@test "a symbolic link at every path that install would write is refused" {
	amap install --apply >/dev/null
	links=12 links_refused install
}

@test "a symbolic link at every path that provision would write is refused, and no sandbox is made" {
	amap install --apply >/dev/null
	mkdir "$H/instances/alpha" "$H/instances/alpha/inbox"
	links=14 dry='' links_refused provision alpha
	run -1 grep create "$FAKE_OPENSHELL/calls"
}

@test "a symbolic link at every path that router-config would write is refused" {
	amap install --apply >/dev/null
	amap provision alpha --apply >/dev/null
	amap provision beta --apply >/dev/null
	links=3 links_refused router-config
}

@test "a symbolic link at every path that deprovision or teardown would remove is refused, and no sandbox is deleted" {
	amap install --apply >/dev/null
	amap provision alpha --apply >/dev/null
	amap provision beta --apply >/dev/null
	links=8 dry='' links_refused deprovision alpha
	run -1 grep delete "$FAKE_OPENSHELL/calls"
	links=5 dry='' links_refused teardown
}

@test "a symbolic link at each path that install does not have and l1-kit prepare, record or profile would write is refused" {
	prepare=(l1-kit prepare --home "$H" --fleet "$TOP/examples/fleet.json" --run-as 1000:1000 --image x)
	amap "${prepare[@]}" --apply >/dev/null
	links=8 only='^(fleet.json|gateway-fragment.toml|policies/.*|commands/.*|instances|instances/beta|instances/beta/outbox/results)$' links_refused "${prepare[@]}"
	amap l1-kit record --home "$H" alpha id-1 --apply >/dev/null
	links=4 dry='' links_refused l1-kit record --home "$H" beta id-2
	links=2 dry='' links_refused l1-kit profile --home "$H" --binary /bin/a
	amap l1-kit profile --home "$H" --binary /bin/a --apply >/dev/null
	links=2 links_refused l1-kit profile --home "$H" --binary /bin/a
}

@test "a link in place of the home, of fleet.json or of membership.json is refused" {
	amap install --apply >/dev/null
	amap provision alpha --apply >/dev/null
	for file in fleet.json membership.json; do
		mv "$H/$file" kept
		ln -s "$PWD/kept" "$H/$file"
		for verb in "provision beta" list router-config "deprovision alpha"; do
			# that one goes by the record alone
			[ "$file $verb" != 'fleet.json deprovision alpha' ] || continue
			# shellcheck disable=SC2086
			run -1 --separate-stderr amap $verb
			assert_regex "$stderr" "^amap-openshell [a-z-]+: .*$file"
		done
		rm "$H/$file"
		mv kept "$H/$file"
	done
	mv "$H" real
	ln -s real "$H"
	run -1 --separate-stderr amap list
	assert_equal "$stderr" "amap-openshell list: $H: it is a symbolic link; give the real path"
}

# small_disk SIZE: a file system of that size for the home.
small_disk() {
	[ "$(id -u)" -eq 0 ] || skip "only root can mount a small disk"
	mkdir disk
	mount -t tmpfs -o "size=$1" none disk || skip "nothing can be mounted here"
	H=$BATS_TEST_TMPDIR/disk/home
}

@test "a full disk is named, leaves whole files only, and the next run finishes" {
	small_disk 64k
	run -2 --separate-stderr amap install --apply
	assert_regex "$stderr" '^amap-openshell install: payload/[a-z/-]*: No space left on device$'
	find "$H" -name '*.tmp' | run -1 grep .
	mount -o remount,size=64m "$BATS_TEST_TMPDIR/disk"
	run -0 amap install --apply
	run -0 amap install
	run -1 grep -E '^would (create|update)' <<<"$output"
}

@test "a home that cannot be written is named, and what was there stays" {
	small_disk 64m
	amap install --apply >/dev/null
	rm "$H/payload/amap-main"
	mount -o remount,ro "$BATS_TEST_TMPDIR/disk"
	run -2 --separate-stderr amap install --apply
	assert_equal "$stderr" 'amap-openshell install: payload/amap-main: Read-only file system'
	run -2 --separate-stderr amap provision alpha --apply
	assert_regex "$stderr" '^amap-openshell provision: instances/alpha: Read-only file system$'
	run -1 grep create "$FAKE_OPENSHELL/calls"
}

@test "B80 a verb works in an empty environment, and names a program that is missing" {
	amap install --apply >/dev/null
	run -0 env -i /bin/sh "$TOP/sh/amap-openshell" --openshell "$TOP/tests/tools/openshell" --home "$H" install
	run -1 --separate-stderr env -i /bin/sh "$TOP/sh/amap-openshell" --openshell no-such-program --home "$H" list
	assert_line --index 0 "UNKNOWN: \`sandbox list\` failed: timeout: failed to run command 'no-such-program': No such file or directory"
	run -2 --separate-stderr env -i /bin/sh "$TOP/sh/amap-openshell" --openshell openshell list
	assert_equal "$stderr" 'amap-openshell list: no home is known; give --home DIR or set AMAP_OPENSHELL_HOME'
}

@test "B82 a backslash in a path stays one" {
	H="$BATS_TEST_TMPDIR/a\\nb"
	run -0 amap install --apply
	[ -e "$H/payload/amap-main" ]
	assert_line "recorded home $H in $XDG_CONFIG_HOME/amap-openshell/home"
}

@test "B83 B85 no script uses what dash does not have, no test asserts with a bare negation" {
	run -1 grep -rnE '^[^#]*(pipefail|\[\[ |<<<)' "$TOP"/sh
	run -1 grep -nE '^[[:space:]]*! ' "$TOP"/tests/verbs*.bats
}

@test "B89 files are replaced whole, with their exact mode" {
	amap install --apply >/dev/null
	amap provision alpha --apply >/dev/null
	amap provision beta --apply >/dev/null
	inode=$(stat -c %i "$H/router.json")
	chmod 600 "$H/router.json"
	echo >>"$H/router.json"
	umask 077
	run -0 amap router-config --apply
	assert_equal "$(stat -c %a "$H/router.json")" 644
	[ "$(stat -c %i "$H/router.json")" != "$inode" ]
}

@test "B91 a refusal and a usage error have different exits" {
	amap install --apply >/dev/null
	run -1 amap provision nobody
	run -1 amap provision ''
	run -1 amap deprovision ''
	run -2 amap provision
	run -2 amap provision a b
	run -2 amap provision '' b
	run -2 amap l1-kit record --home "$H" alpha
	run -2 amap l1-kit record --home "$H" alpha id more
	run -2 amap l1-kit record alpha id
	run -2 amap l1-kit
	run -2 amap l1-kit prepare --home "$H" --fleet x --image x
	run -2 amap l1-kit profile --home "$H"
	run -2 amap list more
	run -2 amap gateway-config more
	run -2 amap siblings more
	run -2 amap teardown alpha
	run -2 amap router-config --more
	run -2 amap no-such-verb
	run -2 amap install --no-such-option
	run -2 amap --no-such-option install
	run -2 amap install --fleet-domain-base
	run -2 sh "$TOP/sh/amap-openshell" --home
	run -2 sh "$TOP/sh/amap-openshell"
	run -0 sh "$TOP/sh/amap-openshell" --help
	run -0 sh "$TOP/sh/amap-openshell" --version
	assert_regex "$output" '^amap-openshell [0-9.]+$'
}
