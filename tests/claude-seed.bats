load common

# cases FILE: runs each case of the file as golden/README.md says, and compares
# all that it says. /srv/box stands for a directory of the test's own.
cases() {
	mkdir -p bin
	printf '#!/bin/sh\nprintf "%%s\\n" "$VERSION_PRINTS"\nexit "$VERSION_EXIT"\n' >bin/claude
	chmod +x bin/claude
	# One line a case: everything that it says, as words of the shell; null is NULL.
	jq -r --arg top "$BATS_TEST_TMPDIR" 'to_entries[] | .key as $n |
	    .value | walk(if type == "string" then gsub("/srv/box"; "\($top)/box.\($n)") else . // "NULL" end) |
	    "try " + ([$n, .case, .kind, .before, .before_mode, .HOME, .cwd, .ANTHROPIC_API_KEY, .claude_version_prints,
	    .claude_version_exit, .exit, .stdout, .stderr_starts, .after, .after_mode] | map(@sh) | join(" "))' "$1" >script
	jq -r 'keys[] | "box.\(.)/home", "box.\(.)/wd"' "$1" | xargs mkdir -p
	tried=0
	. ./script
	assert_equal "$tried" "$(jq length "$1")"
	run -0 find . -name '*.tmp*'
	assert_output ""
}

# text FILE: all of it, as TEXT.
text() { IFS= read -r -d '' TEXT <"$1" || :; }

try() {
	local box=$PWD/box.$1 name=$2 kind=$3 before=$4 before_mode=$5 home=$6 cwd=$7 key=$8 prints=$9
	shift 9
	local status=$1 want_exit=$2 stdout=$3 stderr_starts=$4 after=$5 after_mode=$6 file=$box/home/.claude.json
	local -a env=(PATH="$PWD/bin:$PATH" VERSION_PRINTS="$prints" VERSION_EXIT="$status")
	case $kind in
	symlink) : >"$box/target"; ln -s ../target "$file" ;;
	dir) mkdir "$file" ;;
	file)
		if [ "$before" != NULL ]; then
			printf '%s' "$before" >"$file"
			chmod "$before_mode" "$file"
		fi ;;
	esac
	[ "$home" = NULL ] || env+=(HOME="$home")
	[ "$key" = NULL ] || env+=(ANTHROPIC_API_KEY="$key")
	run "-$want_exit" --separate-stderr env -C "$cwd" -u HOME -u ANTHROPIC_API_KEY "${env[@]}" "$BIN/claude-seed" </dev/null
	assert_equal "$name: $output" "$name: $stdout"
	if [ "$stderr_starts" = NULL ]; then
		assert_equal "$name: $stderr" "$name: "
	else
		[[ $stderr == "$stderr_starts"* ]] || fail "$name: $stderr"
		[ "$key" = NULL ] || [[ $stderr != *"${key: -10}"* ]] || fail "$name: prints the key"
	fi
	case $after in
	NULL) assert_file_not_exists "$file" ;;
	unchanged) [ -L "$file" ] || [ -d "$file" ] || fail "$name: changed" ;;
	*)
		text "$file"
		assert_equal "$name: $TEXT" "$name: $after"
		assert_equal "$(stat -c %04a "$file")" "$after_mode" ;;
	esac
	tried=$((tried + 1))
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

@test "B79 a false that took the place of our true is repaired; the operator's own false stays" {
	mkdir bin home wd
	printf '#!/bin/sh\necho 3.4.5\n' >bin/claude
	chmod +x bin/claude
	seed() { (cd wd && PATH=$BATS_TEST_TMPDIR/bin:$PATH HOME=$BATS_TEST_TMPDIR/home ANTHROPIC_API_KEY=made-up-key-of-nobody-00001 claude-seed); }
	deny() {
		jq --arg cwd "$PWD/wd" '.projects[$cwd].hasTrustDialogAccepted = false | .hasCompletedOnboarding = false' home/.claude.json >new
		mv new home/.claude.json
	}
	values() { run -0 jq -c '[.hasCompletedOnboarding, .projects[].hasTrustDialogAccepted]' home/.claude.json; }
	seed
	deny
	seed
	values
	assert_output '[true,true]'
	deny
	printf '%s' /elsewhere >home/.claude/connector/seeded
	seed
	values
	assert_output '[false,false]'
	rm home/.claude.json
	rm -r home/.claude
	echo '{"projects":{}}' >home/.claude.json
	: >home/.claude
	run -0 seed
	assert_output --regexp 'claude-seed: .*/home/\.claude/connector/seeded: Not a directory'
	deny
	run -0 seed
	values
	assert_output '[false,false]'
}

@test "a claude that is not there is named" {
	mkdir home
	run -1 env PATH=/nowhere HOME="$PWD/home" ANTHROPIC_API_KEY=made-up-key-of-nobody-00001 "$BIN/claude-seed"
	assert_output "claude-seed: claude --version: No such file or directory"
}
