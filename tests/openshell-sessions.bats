load common

# What makes the boxes of all cases and says what is expected of each, as one script: put FILE TEXT,
# words FILE ARGUMENT..., dir, fifo and socket PATH, then expect NTH CASE EXIT HOME ROWS.
script='
# A file as a case describes it: an object as JSON, a text as it is, FIFO, or so many spaces after a text.
def file($path):
    if . == "FIFO" then "fifo \($path | @sh)"
    elif type == "string" and startswith("<the text ") then
        capture("<the text (?<t>.*) followed by (?<n>[0-9]+) spaces>") | @sh "put \($path) \(.t + (.n | tonumber) * " ")"
    elif type == "string" then @sh "put \($path) \(.)"
    else @sh "put \($path) \(tojson)" end;
def at($dir; $box): to_entries[] | .key as $name | .value | file("\($box)/home/.claude/\($dir)/\($name)");
range(length) as $n | .[$n] | (.. | select(. == "NOW")?) |= $now | "\($n)" as $box |
(.proc[] | "\($box)/proc/\(.pid)" as $dir |
    @sh "put \($dir + "/stat") \(.stat // "\(.pid) (\(.comm)) S \(.ppid) 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 \(.start // 100) 0 0")",
    @sh "words \($dir + "/cmdline") \(.argv // [])"),
@sh "put \($box + "/proc/self/stat") \("99 (openshell-sessi) R \(.parent_of_the_lister) 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 700 0 0")",
(.records | at("amap-sessions"; $box)), (.registry // {} | at("sessions"; $box)), (.keys | at("sessions"; $box)),
(.sockets[] | @sh "socket \($box + "/" + ltrimstr("/srv/box/"))"),
@sh "expect \($n) \(.case) \(.exit) \(.HOME) \((.rows // []) | map(join("\t")) | join("\n"))"'

put() { printf '%s' "$2" >"$1"; }
words() {
	local file=$1
	shift
	if [ $# -eq 0 ]; then : >"$file"; else printf '%s\0' "$@" >"$file"; fi
}
fifo() { mkfifo "$1"; }
socket() { :; }			# they were made at once
expect() {
	ln -s /srv/proc/self/maps /srv/proc/self/exe /srv/proc/self/environ "$1/proc/self/"
	run "-$3" --separate-stderr bwrap --ro-bind / / --tmpfs /srv --ro-bind "$1" /srv/box --ro-bind /proc /srv/proc \
	    --ro-bind "$1/proc" /proc --setenv ASAN_OPTIONS detect_leaks=0 --setenv HOME "$4" -- "$BIN/openshell-sessions"
	assert_equal "$2: $output" "$2: $5"
	if [ "$3" -eq 0 ]; then
		assert_equal "$2: $stderr" "$2: "
	else
		[[ $stderr == "openshell-sessions: "* ]] || fail "$2: $stderr"
	fi
}

# cases FILE: runs each case in a mount namespace where /proc is the case's process table. A
# sanitized program looks at its own maps, name and environment there.
cases() {
	bwrap --ro-bind / / true 2>/dev/null || skip "bwrap cannot make a namespace here"
	jq -r --argjson now "$(date +%s)000" "$script" "$1" >script
	{
		jq -r 'keys[] | "\(.)/home", "\(.)/run"' "$1"
		sed -nE "s,^(put|words|fifo) '([^']*)/[^/']*'.*,\2,p" script | uniq
	} | xargs mkdir -p
	sed -n "s,^socket '\(.*\)'$,\1,p" script | perl -MSocket -ne '
	    chomp; socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un($_)) or die "$_: $!"'
	. ./script
	assert_equal "$(grep -c ^expect script)" "$(jq length "$1")"
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
