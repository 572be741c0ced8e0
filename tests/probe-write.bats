load common

@test "usage is sound" {
	usage_is_sound amap-probe-write
	usage_is_sound amap-probe-running
	run -2 amap-probe-write
	run -2 amap-probe-write a b
	run -2 amap-probe-running
	run -2 amap-probe-running ''
}

@test "a file that can be made says OPENED and is gone again" {
	run -0 amap-probe-write ./fresh
	assert_output OPENED
	assert_equal "$(ls -A)" ""
}

@test "an error is named, and what stands at the path is left" {
	echo kept >there
	ln -s absent link
	run -0 amap-probe-write there
	assert_output EEXIST
	assert_equal "$(cat there)" kept
	run -0 amap-probe-write link
	assert_output EEXIST
	assert_file_not_exist absent
	run -0 amap-probe-write absent/x
	assert_output ENOENT
	run -0 amap-probe-write there/x
	assert_output ENOTDIR
	run -0 amap-probe-write "$(printf 'x%.0s' $(seq 300))"
	assert_output ENAMETOOLONG
}

@test "B42 a directory mounted read-only says EROFS" {
	mkdir lane
	bwrap --ro-bind / / true || skip 'bwrap cannot make a namespace here'
	run -0 bwrap --bind / / --ro-bind "$PWD/lane" "$PWD/lane" "$BIN/amap-probe-write" "$PWD/lane/fresh"
	assert_output EROFS
	assert_equal "$(ls -A lane)" ""
}

@test "an answer that cannot be printed is exit 2, and nothing is left behind" {
	run -2 sh -c 'amap-probe-write ./fresh >/dev/full'
	run -2 sh -c 'amap-probe-write ./fresh >&-'
	assert_equal "$(ls -A)" ""
}

@test "running processes of a name are counted, by comm and by the first two arguments" {
	printf '#!/bin/sh\nsleep 60 &\nwait\n' >amap-test-daemon
	chmod 755 amap-test-daemon
	cp "$(command -v sleep)" amap-test-copy
	run -0 amap-probe-running amap-test-daemon
	assert_output 0
	./amap-test-daemon 3>&- & a=$!
	sh ./amap-test-daemon 3>&- & b=$!
	./amap-test-copy 60 3>&- & c=$!
	sh -c 'sleep 60 & wait' x amap-test-daemon 3>&- & d=$!
	eventually eval '[ "$(amap-probe-running amap-test-copy)" = 1 ] && [ "$(amap-probe-running amap-test-daemon)" -ge 2 ]'
	run -0 amap-probe-running amap-test-daemon
	assert_output 2
	run -0 amap-probe-running amap-test-copy
	assert_output 1
	pkill -P "$a,$b,$d"
	kill "$c"
	wait
	run -0 amap-probe-running amap-test-daemon
	assert_output 0
}

@test "a zombie and this program itself do not count" {
	cp "$(type -P true)" amap-test-gone
	# the shell that waits for nobody keeps its child a zombie
	sh -c './amap-test-gone & exec sleep 60' 3>&- & pid=$!
	eventually eval 'grep -q ^State:.Z /proc/"$(pgrep -P $pid)"/status'
	run -0 amap-probe-running amap-test-gone
	assert_output 0
	kill $pid
	wait
	run -0 amap-probe-running amap-probe-running
	assert_output 0
}
