load common

# stat_line: a line of /proc/PID/stat with the fields that matter, from a case's process.
stat_line='if .stat then .stat else
    "\(.pid) (\(.comm)) S \(.ppid) 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 \(.start // 100) 0 0" end'

# The file as a case describes it: an object as JSON, a text as it is, FIFO, or so many spaces after a text.
write_file() {
	local value=$1 file=$2
	mkdir -p "$(dirname "$file")"
	case $value in
	'"FIFO"') mkfifo "$file" ;;
	'"<the text '*) jq -rj 'capture("<the text (?<t>.*) followed by (?<n>[0-9]+) spaces>") |
	    .t + ([range(.n | tonumber)] | map(" ") | join(""))' <<<"$value" >"$file" ;;
	'"'*) jq -j . <<<"$value" >"$file" ;;
	*) printf '%s' "$value" >"$file" ;;
	esac
}

# cases FILE: runs each case in a mount namespace where /proc is the case's process table.
cases() {
	local cases nth box pid name value start
	bwrap --ro-bind / / true 2>/dev/null || skip "bwrap cannot make a namespace here"
	cases=$(jq length "$1")
	for ((nth = 0; nth < cases; nth++)); do
		box=$BATS_TEST_TMPDIR/box.$nth
		mkdir -p "$box"/{home,run,proc/self}
		jq -c --arg now "$(date +%s)000" ".[$nth]"' | (.. | select(. == "NOW")?) |= ($now | tonumber)' "$1" >case
		while IFS=$'\t' read -r pid; do
			mkdir -p "$box/proc/$pid"
			jq -r --argjson pid "$pid" '.proc[] | select(.pid == $pid) | '"$stat_line" case >"$box/proc/$pid/stat"
			jq -j --argjson pid "$pid" '.proc[] | select(.pid == $pid) | .argv // [] | .[] + "\u0000"' case >"$box/proc/$pid/cmdline"
		done < <(jq -r '.proc[].pid' case)
		# A sanitized program looks at its maps, name and environment there.
		ln -s /srv/proc/self/maps /srv/proc/self/exe /srv/proc/self/environ "$box/proc/self/"
		jq -r '"99 (openshell-sessi) R \(.parent_of_the_lister) 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 700 0 0"' case >"$box/proc/self/stat"
		while IFS=$'\t' read -r dir name value; do
			write_file "$value" "$box/home/.claude/$dir/$name"
		done < <(jq -r '(.records | to_entries[] | "amap-sessions\t\(.key)\t\(.value | tojson)"),
		    ((.registry // {}) + .keys | to_entries[] | "sessions\t\(.key)\t\(.value | tojson)")' case)
		while IFS= read -r name; do
			perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un($ARGV[0])) or die $!' \
			    "$box/${name#/srv/box/}"
		done < <(jq -r '.sockets[]' case)
		run "-$(jq .exit case)" --separate-stderr bwrap --ro-bind / / --tmpfs /srv --ro-bind "$box" /srv/box \
		    --ro-bind /proc /srv/proc --ro-bind "$box/proc" /proc --setenv ASAN_OPTIONS detect_leaks=0 --setenv HOME "$(jq -r .HOME case)" -- "$BIN/openshell-sessions"
		assert_equal "$(jq -r .case case): $output" "$(jq -r '.case + ": " + ((.rows // []) | map(join("\t")) | join("\n"))' case)"
		if [ "$(jq .exit case)" -eq 0 ]; then
			assert_equal "$stderr" ""
		else
			[[ $stderr == "openshell-sessions: "* ]]
		fi
	done
}

@test "usage, version, and a full standard output" {
	usage_is_sound openshell-sessions
}

@test "every case of our own comes out as written" {
	cases "$DATA/connector/lister.json"
}

@test "every golden case comes out as recorded" {
	[ -n "${AMAP_GOLDEN_DIR-}" ] || skip "AMAP_GOLDEN_DIR is not set"
	cases "$AMAP_GOLDEN_DIR/lister/cases.json"
}

@test "without HOME, and without a main process, it says so and exits 2" {
	run -2 env -u HOME openshell-sessions
	assert_output "openshell-sessions: HOME is not set"
	run -2 openshell-sessions
	assert_output --partial "openshell-sessions: no ancestor of this program runs amap-main"
}
