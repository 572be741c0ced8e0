load common

# Every test has a home; streams are given one record an argument.
home() {
	HOME_DIR=$BATS_TEST_TMPDIR/home
	mkdir "$HOME_DIR"
}

teardown() {
	case ${HOME_DIR-} in /dev/shm/*) rm -rf "$HOME_DIR" ;; esac
}

stream() {
	[ $# -eq 0 ] || printf '%s\n' "$@"
	printf '{"end":%d}\n' $#
}

put() {
	stream "${@:2}" >"$BATS_TEST_TMPDIR/stream"
	# shellcheck disable=SC2086
	amap-put --home "$HOME_DIR" $1 "$BATS_TEST_TMPDIR/stream"
}

# The tree below the home, as golden data has it.
tree() {
	(cd "$HOME_DIR" && find . -mindepth 1 -printf '%04m %y %P\n' | sort -k 3)
}

@test "usage, version, and a full standard output" {
	usage_is_sound amap-put
}

@test "a dry run says what would be and changes nothing" {
	home
	run -0 --separate-stderr put "" '{"path":"d","mode":"0750","directory":true}' \
	    '{"path":"d/f","mode":"0640","content":"x"}' '{"note":"and a word"}' '{"before":"first"}'
	assert_output "first
would create d
would create d/f
and a word"
	[ -z "$stderr" ]
	assert_equal "$(tree)" ""
}

@test "--apply does it, with exact modes whatever the umask; a second run finds it present" {
	home
	umask 077
	run -0 put --apply '{"path":"d","mode":"0755","directory":true}' \
	    '{"path":"d/f","mode":"0664","content":"x\u00e9\n"}'
	assert_output "created d
created d/f"
	assert_equal "$(tree)" "0755 d d
0664 f d/f"
	assert_equal "$(cat "$HOME_DIR/d/f")" "xé"
	run -0 put --apply '{"path":"d","mode":"0700","directory":true}' \
	    '{"path":"d/f","mode":"0664","content":"x\u00e9\n"}'
	assert_output "present d
present d/f"
	assert_equal "$(tree)" "0755 d d
0664 f d/f"
}

@test "a directory has its exact mode also below one that hands its group down" {
	home
	chmod 2755 "$HOME_DIR"
	run -0 put --apply '{"path":"d","mode":"0755","directory":true}'
	assert_equal "$(stat -c %a "$HOME_DIR/d")" 755
}

@test "a null mode is the default less the umask" {
	home
	umask 027
	run -0 put --apply '{"path":"d","mode":null,"directory":true}' '{"path":"f","mode":null,"content":""}'
	assert_equal "$(tree)" "0750 d d
0640 f f"
}

@test "a file that differs in bytes or in mode is updated" {
	home
	put --apply '{"path":"a","mode":"0644","content":"1"}' '{"path":"b","mode":"0644","content":"1"}' \
	    '{"path":"c","mode":"0644","content":"1"}'
	chmod 600 "$HOME_DIR/b"
	run -0 put "" '{"path":"a","mode":"0644","content":"2"}' '{"path":"b","mode":"0644","content":"1"}' \
	    '{"path":"c","mode":"0644","content":"1"}'
	assert_output "would update a
would update b
present c"
	run -0 put --apply '{"path":"a","mode":"0644","content":"2"}' '{"path":"b","mode":"0644","content":"1"}' \
	    '{"path":"c","mode":"0644","content":"1"}'
	assert_output "updated a
updated b
present c"
	assert_equal "$(cat "$HOME_DIR/a")" 2
	assert_equal "$(stat -c %a "$HOME_DIR/b")" 644
}

@test "a source is copied byte for byte, and every missing one is named at once" {
	home
	head -c 70000 /dev/urandom >src
	run -0 put --apply "{\"path\":\"f\",\"mode\":\"0755\",\"source\":\"$PWD/src\"}"
	run -0 cmp src "$HOME_DIR/f"
	run -1 --separate-stderr put --apply '{"path":"g","mode":"0644","content":"x"}' \
	    '{"path":"h","mode":"0644","source":"/nonexistent/one"}' \
	    '{"path":"i","mode":"0644","source":"/nonexistent/two"}' '{"path":"j","mode":"0644","source":"/dev/null"}'
	[ -z "$output" ]
	assert_equal "$stderr" "amap-put: h: its source /nonexistent/one: No such file or directory
amap-put: i: its source /nonexistent/two: No such file or directory
amap-put: j: its source /dev/null: not a regular file"
	assert_equal "$(tree)" "0755 f f"
}

@test "removals go first, then directories, then files, each in the order of the stream" {
	home
	mkdir -p "$HOME_DIR/old/deep/er" "$HOME_DIR/lane"
	echo 1 >"$HOME_DIR/old/deep/er/f"
	echo 1 >"$HOME_DIR/lane/f"
	ln -s /etc "$HOME_DIR/lane/link"
	run -0 put --apply '{"path":"f","mode":"0644","content":""}' '{"path":"lane","remove":"contents"}' \
	    '{"path":"d","mode":"0755","directory":true}' '{"path":"old","remove":"directory"}' \
	    '{"path":"gone","remove":"file"}'
	assert_output "removed lane
removed old
absent gone
created d
created f"
	assert_equal "$(tree)" "0755 d d
0644 f f
0755 d lane"
	[ -e /etc/passwd ]
}

@test "in a dry run the lanes of a member after a missing one count as missing" {
	home
	mkdir -p "$HOME_DIR/m/b" "$HOME_DIR/n"
	set -- '{"path":"m","mode":null,"directory":true,"member":"m"}' \
	    '{"path":"m/a","mode":null,"directory":true,"member":"m"}' \
	    '{"path":"m/b","mode":null,"directory":true,"member":"m"}' \
	    '{"path":"n","mode":null,"directory":true,"member":"n"}'
	run -0 put "" "$@"
	assert_output "present m
would create m/a
would create m/b
present n"
	run -0 put --apply "$@"
	assert_output "present m
created m/a
present m/b
present n"
}

@test "the home is made when the stream says so, and only then" {
	HOME_DIR=$BATS_TEST_TMPDIR/new
	run -1 --separate-stderr put --apply '{"path":"f","mode":"0644","content":""}'
	assert_equal "$stderr" "amap-put: $HOME_DIR: it is not there; the install verb makes it"
	[ ! -e "$HOME_DIR" ]
	run -0 put "" '{"path":".","mode":"0755","directory":true}' '{"path":"f","mode":"0644","content":""}'
	[ ! -e "$HOME_DIR" ]
	run -0 put --apply '{"path":".","mode":"0751","directory":true}' '{"path":"f","mode":"0644","content":""}'
	assert_output "created .
created f"
	assert_equal "$(stat -c %a "$HOME_DIR")" 751
}

@test "every refusal is named and nothing is changed: links, wrong kinds, missing parents" {
	home
	mkdir "$HOME_DIR/dir" "$BATS_TEST_TMPDIR/elsewhere"
	echo 1 >"$HOME_DIR/file"
	ln -s "$BATS_TEST_TMPDIR/elsewhere" "$HOME_DIR/link"
	ln -s file "$HOME_DIR/filelink"
	before=$(tree)
	run -1 --separate-stderr put --apply '{"path":"ok","mode":"0644","content":""}' \
	    '{"path":"link","mode":"0755","directory":true}' \
	    '{"path":"link/f","mode":"0644","content":"x"}' \
	    '{"path":"filelink","mode":"0644","content":"x"}' \
	    '{"path":"dir","mode":"0644","content":"x"}' \
	    '{"path":"file","mode":"0755","directory":true}' \
	    '{"path":"file/f","mode":"0644","content":"x"}' \
	    '{"path":"none/f","mode":"0644","content":"x"}' \
	    '{"path":"none/d","mode":"0755","directory":true}'
	[ -z "$output" ]
	assert_equal "$stderr" "amap-put: link: it is a symbolic link; remove it first
amap-put: link/f: its parent is a symbolic link; remove it first
amap-put: filelink: it is a symbolic link; remove it first
amap-put: dir: it is not a regular file; remove it first
amap-put: file: it is not a directory; remove it first
amap-put: file/f: its parent is not a directory; remove it first
amap-put: none/f: the directory it belongs in is not there
amap-put: none/d: the directory it belongs in is not there"
	assert_equal "$(tree)" "$before"
	run -1 --separate-stderr put --apply '{"path":"link","remove":"directory"}' \
	    '{"path":"filelink","remove":"file"}' '{"path":"dir","remove":"file"}' \
	    '{"path":"file","remove":"contents"}'
	assert_equal "$stderr" "amap-put: link: it is a symbolic link; remove it by hand
amap-put: filelink: it is a symbolic link; remove it by hand
amap-put: dir: it is a directory; remove it by hand
amap-put: file: it is of another kind than it should be; remove it by hand"
	assert_equal "$(tree)" "$before"
}

@test "a home that is a link, a file, relative or unfit is refused" {
	home
	ln -s home link
	echo 1 >file
	for h in "$PWD/link" "$PWD/file" home "$PWD/home/" "$PWD//home" / "$PWD/a:b" "$PWD/a b" "$PWD/none/home"; do
		run -1 --separate-stderr amap-put --home "$h" --apply \
		    <(stream '{"path":".","mode":"0755","directory":true}')
		[ -z "$output" ]
		[ "$(printf '%s\n' "$stderr" | wc -l)" -eq 1 ]
	done
}

@test "records that are not sound are refused with their line" {
	home
	while IFS= read -r bad; do
		run -2 --separate-stderr put --apply '{"path":"ok","mode":"0644","content":"x"}' "$bad"
		[ -z "$output" ]
		assert_regex "$stderr" "^amap-put: .*stream:2: .+; nothing was changed$"
	done <<'BAD'
{}
{"path":"../f","mode":"0644","content":""}
{"path":"/f","mode":"0644","content":""}
{"path":"a//b","mode":"0644","content":""}
{"path":"a/","mode":"0644","content":""}
{"path":"a/.","mode":"0644","content":""}
{"path":"","mode":"0644","content":""}
{"path":"f\u0000g","mode":"0644","content":""}
{"path":7,"mode":"0644","content":""}
{"path":".","mode":"0644","content":""}
{"path":".","remove":"directory"}
{"path":"f","mode":"0644"}
{"path":"f","mode":"0644","content":"","source":"/x"}
{"path":"f","mode":"0644","content":7}
{"path":"f","mode":"0644","source":"x"}
{"path":"f","mode":"0844","content":""}
{"path":"f","mode":"-644","content":""}
{"path":"f","mode":"10000","content":""}
{"path":"f","mode":420,"content":""}
{"path":"f","mode":"0755","directory":false}
{"path":"f","remove":"all"}
{"path":"f","mode":"0644","content":"","owner":"1:1"}
{"path":"f","mode":"0755","directory":true,"owner":"1"}
{"path":"f","mode":"0755","directory":true,"owner":"1:4294967295"}
{"path":"ok","mode":"0644","content":"twice"}
{"path":"ok","mode":"0755","directory":true}
BAD
	assert_equal "$(tree)" ""
}

@test "a stream that is cut at any byte changes nothing" {
	home
	stream '{"path":"f","mode":"0644","content":"xé"}' '{"path":"g","mode":"0644","content":"y"}' >whole
	size=$(stat -c %s whole)
	for n in $(seq 0 $((size - 1))); do
		run -2 --separate-stderr amap-put --home "$HOME_DIR" --apply <(head -c "$n" whole)
		[ -z "$output" ]
	done
	assert_equal "$(tree)" ""
	run -0 amap-put --home "$HOME_DIR" --apply whole
	assert_equal "$(tree)" "0644 f f
0644 f g"
}

@test "parts may be concatenated, and a directory may be asked for in each" {
	home
	{ stream '{"path":"d","mode":"0755","directory":true}' '{"path":"d/a","mode":"0644","content":""}'
	  stream '{"path":"d","mode":"0755","directory":true}' '{"path":"d/b","mode":"0644","content":""}'; } >whole
	run -0 amap-put --home "$HOME_DIR" whole
	assert_output "would create d
would create d/a
would create d/b"
}

@test "as root a directory is given to its owner; as anybody else only to oneself" {
	home
	if [ "$(id -u)" -eq 0 ]; then
		run -0 put --apply '{"path":"d","mode":null,"directory":true,"owner":"1234:2345"}'
		assert_output "created d"
		assert_equal "$(stat -c %u:%g "$HOME_DIR/d")" 1234:2345
		run -0 put --apply '{"path":"d","mode":null,"directory":true,"owner":"1234:5"}'
		assert_output "updated d"
		assert_equal "$(stat -c %u:%g "$HOME_DIR/d")" 1234:5
	else
		run -1 --separate-stderr put --apply '{"path":"d","mode":null,"directory":true,"owner":"1234:2345"}'
		assert_equal "$stderr" "amap-put: d: only root can give it to another owner"
		run -0 put --apply "{\"path\":\"d\",\"mode\":null,\"directory\":true,\"owner\":\"$(id -u):$(id -g)\"}"
	fi
}

@test "one file: published from standard input, present the second time, a link refused" {
	run -0 amap-put new </dev/null
	assert_output "would create new"
	[ ! -e new ]
	run -0 amap-put --mode 0600 --apply new <<<hello
	assert_output "created new"
	assert_equal "$(stat -c %a new) $(cat new)" "600 hello"
	run -0 amap-put --mode 0600 --apply "$PWD/new" <<<hello
	assert_output "present $PWD/new"
	run -0 amap-put --apply new <<<hello
	assert_output "updated new"
	ln -s new link
	mkdir dir
	run -1 --separate-stderr amap-put --apply link <<<x
	assert_equal "$stderr" "amap-put: link: it is a symbolic link; remove it first"
	run -1 amap-put --apply dir <<<x
	run -2 amap-put --apply none/f <<<x
	run -2 amap-put --mode 0888 --apply new <<<x
	assert_equal "$(cat new)" hello
}

@test "temporary files of a killed run are swept where it publishes" {
	home
	mkdir "$HOME_DIR/d" "$HOME_DIR/e"
	touch "$HOME_DIR"/{d,e}/.f.0123456789ab.tmp "$HOME_DIR"/d/{.f.0123456789aX.tmp,f.0123456789ab.tmp,.0123456789ab.tmp}
	run -0 put --apply '{"path":"d/f","mode":"0644","content":""}'
	assert_equal "$(cd "$HOME_DIR" && find . -type f | sort)" "./d/.0123456789ab.tmp
./d/.f.0123456789aX.tmp
./d/f
./d/f.0123456789ab.tmp
./e/.f.0123456789ab.tmp"
}

@test "a hostile tree is removed: closed, full of links and FIFOs" {
	home
	(cd "$HOME_DIR" && mkdir lane && cd lane && mkfifo pipe && ln -s .. up && mkdir -p closed/in/side && touch closed/in/f && chmod 0 closed/in closed)
	run -0 put --apply '{"path":"lane","remove":"contents"}'
	assert_equal "$(tree)" "0755 d lane"
}

@test "a tree is removed however deep it is" {
	# in memory where there is such a file system: on a disk it takes longer to be made than to be removed
	HOME_DIR=$(mktemp -d /dev/shm/amap-put.XXXXXX 2>/dev/null) || home
	mkdir "$HOME_DIR/lane"
	perl -e 'chdir $ARGV[0]; for (1 .. 33000) { mkdir "d"; chdir "d" or exit 1 } open F, ">", "bottom"' "$HOME_DIR/lane"
	run -0 put --apply '{"path":"lane","remove":"contents"}'
	assert_equal "$(tree)" "0755 d lane"
}

@test "closed standard input, and a full standard output after the work" {
	home
	run -2 --separate-stderr sh -c 'amap-put --home "$1" --apply <&-' sh "$HOME_DIR"
	[ -n "$stderr" ]
	stream '{"path":"f","mode":"0644","content":""}' >whole
	run -2 --separate-stderr sh -c 'amap-put --home "$1" --apply whole >/dev/full' sh "$HOME_DIR"
	assert_equal "$stderr" "amap-put: standard output: No space left on device"
	assert_equal "$(tree)" "0644 f f"
}
