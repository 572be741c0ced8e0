load common

# cases FILE: runs each case of the file as golden/README.md says, and compares
# all that it says. /srv/box stands for a directory of the test's own.
cases() {
	local cases nth box file want_exit
	mkdir -p bin
	cases=$(jq length "$1")
	for ((nth = 0; nth < cases; nth++)); do
		box=$BATS_TEST_TMPDIR/box.$nth
		sed "s|/srv/box|$box|g" "$1" | jq -c ".[$nth]" >case
		c() { jq -r "$1" case; }
		mkdir -p "$box/home" "$box/wd"
		file=$box/home/.claude.json
		case $(c .kind) in
		symlink) : >"$box/target"; ln -s ../target "$file" ;;
		dir) mkdir "$file" ;;
		file)
			if [ "$(c .before)" != null ]; then
				jq -j .before case >"$file"
				chmod "$(c .before_mode)" "$file"
			fi ;;
		esac
		printf '#!/bin/sh\nprintf "%%s\\n" "$VERSION_PRINTS"\nexit "$VERSION_EXIT"\n' >bin/claude
		chmod +x bin/claude
		local -a env=(PATH="$BATS_TEST_TMPDIR/bin:$PATH" VERSION_PRINTS="$(c .claude_version_prints)"
		    VERSION_EXIT="$(c .claude_version_exit)")
		[ "$(c .HOME)" = null ] || env+=(HOME="$(c .HOME)")
		[ "$(c .ANTHROPIC_API_KEY)" = null ] || env+=(ANTHROPIC_API_KEY="$(c .ANTHROPIC_API_KEY)")
		want_exit=$(c .exit)
		run "-$want_exit" --separate-stderr env -C "$(c .cwd)" -u HOME -u ANTHROPIC_API_KEY "${env[@]}" \
		    "$BIN/claude-seed" </dev/null
		assert_equal "$(c .case): $output" "$(c .case): $(c .stdout)"
		if [ "$(c .stderr_starts)" = null ]; then
			assert_equal "$(c .case): $stderr" "$(c .case): "
		else
			[[ $stderr == "$(c .stderr_starts)"* ]] || fail "$(c .case): $stderr"
			[[ $stderr != *"$(c '.ANTHROPIC_API_KEY // "(no key)"' | tail -c 11)"* ]] || fail "$(c .case): prints the key"
		fi
		case $(c .after) in
		null) assert_file_not_exists "$file" ;;
		unchanged) [ -L "$file" ] || [ -d "$file" ] || fail "$(c .case): changed" ;;
		*)
			jq -j .after case | cmp - "$file"
			assert_equal "$(stat -c %04a "$file")" "$(c .after_mode)" ;;
		esac
		run -0 find "$box" -name '*.tmp*'
		assert_output ""
	done
}

@test "usage, version, and a full standard output" {
	usage_is_sound claude-seed
}

@test "every case of our own comes out as written" {
	cases "$DATA/connector/seed.json"
}

@test "every golden case comes out as recorded" {
	[ -n "${AMAP_GOLDEN_DIR-}" ] || skip "AMAP_GOLDEN_DIR is not set"
	cases "$AMAP_GOLDEN_DIR/seed/cases.json"
}

@test "B79 a second run changes nothing, and does not touch the file" {
	mkdir bin home
	printf '#!/bin/sh\necho 3.4.5\n' >bin/claude
	chmod +x bin/claude
	PATH=$PWD/bin:$PATH HOME=$PWD/home ANTHROPIC_API_KEY=made-up-key-of-nobody-00001 claude-seed
	stat -c '%i %Y' home/.claude.json >before
	PATH=$PWD/bin:$PATH HOME=$PWD/home ANTHROPIC_API_KEY=made-up-key-of-nobody-00001 claude-seed
	run -0 stat -c '%i %Y' home/.claude.json
	assert_output "$(cat before)"
}

@test "a claude that is not there is named" {
	mkdir home
	run -1 env PATH=/nowhere HOME="$PWD/home" ANTHROPIC_API_KEY=made-up-key-of-nobody-00001 "$BIN/claude-seed"
	assert_output "claude-seed: claude --version: No such file or directory"
}
