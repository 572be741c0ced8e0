load common

two() { printf '{"name":"alpha"}\n{"name":"beta","city":"b c"}\n{"end":2}\n'; }

@test "usage is sound" {
	usage_is_sound amap-ask
	run -2 amap-ask name
	run -2 amap-ask name true
	run -2 amap-ask --jobs 0 name -- true
	run -2 amap-ask --timeout x name -- true
	run -2 amap-ask --batch x name -- true
	run -2 amap-ask --batch x --each y
	run -2 amap-ask --of a name -- true
}

@test "a command's status, output and errors are its answer" {
	run -0 --separate-stderr amap-ask list -- sh -c 'echo out; echo err >&2; exit 3'
	assert_output '{"ask":"list","subject":null,"argv":["sh","-c","echo out; echo err >&2; exit 3"],"status":3,"reason":null,"stdout":"out\n","stderr":"err\n"}
{"end":1}'
}

@test "words of each record stand in the command, in the records' order" {
	two >members
	run -0 amap-ask --each members get -- sh -c 'test $1 = beta || sleep 0.2; printf "{\"id\":\"id-%s\"}" "$1"' - '{name}'
	assert_output --regexp '^\{"ask":"get","subject":"alpha",.*"stdout":"\{\\"id\\":\\"id-alpha\\"\}".*
\{"ask":"get","subject":"beta",.*"id-beta.*
\{"end":2\}$'
	printf '%s\n' "$output" >get
	run -0 amap-ask --each get ps -- echo 'a={subject}' 'b={stdout.id}' '{stdout}' '{}' '{No}' 'x{name'
	assert_line --partial '"stdout":"a=alpha b=id-alpha {\"id\":\"id-alpha\"} {} {No} x{name\n"'
}

@test "what cannot be asked is an answer that says so, and is not run" {
	two | amap-ask --each - get -- sh -c 'test "$1" = beta && echo "no object"' - '{name}' >get
	run -0 amap-ask --each get ps -- touch 'made-{stdout.id}'
	assert_line --partial '"subject":"alpha","argv":[],"status":null,"reason":"not asked: get failed","stdout":null'
	assert_line --partial '"subject":"beta","argv":[],"status":null,"reason":"not asked: there is no stdout.id to ask with"'
	assert_line '{"end":2}'
	two | amap-ask --each - get -- true >get
	run -0 amap-ask --each get inspect -- touch '{stdout}'
	assert_line --partial '"reason":"not asked: get named nothing"'
	assert_equal "$(ls)" "get"
	run -0 amap-ask --each get inspect -- touch 'x{city}'
	assert_line --partial '"reason":"not asked: there is no city to ask with"'
}

@test "a batch asks what its records say, each with its own time" {
	{
		echo '{"ask":"one","argv":["echo","a b","\"c\""]}'
		echo '{"ask":"two","subject":"alpha","timeout":1,"argv":["sleep","76.5"]}'
		echo '{"end":2}'
	} >questions
	run -0 amap-ask --batch questions
	assert_output '{"ask":"one","subject":null,"argv":["echo","a b","\"c\""],"status":0,"reason":null,"stdout":"a b \"c\"\n","stderr":""}
{"ask":"two","subject":"alpha","argv":["sleep","76.5"],"status":null,"reason":"ran out of time","stdout":"","stderr":""}
{"end":2}'
	grep -v two <<<"$output" | sed 's/end":2/end":1/' >answers
	run -0 amap-ask --batch answers
	assert_equal "$output" "$(cat answers)"
	for bad in '{"argv":["true"]}' '{"ask":"a"}' '{"ask":"a","argv":[]}' '{"ask":"a","argv":[1]}' '{"ask":"a","argv":["a\u0000"]}'; do
		printf '%s\n{"end":1}\n' "$bad" >questions
		run -2 amap-ask --batch questions
	done
}

@test "only the answers of one name are asked about" {
	{ printf '{"ask":"get","subject":"alpha"}\n{"ask":"other","subject":"alpha"}\n{"ask":"get","subject":"beta"}\n{"end":3}\n'; } >answers
	run -0 amap-ask --each answers --of get ps -- echo '{subject}'
	assert_line --index 0 --partial '"stdout":"alpha\n"'
	assert_line --index 1 --partial '"stdout":"beta\n"'
	assert_line --index 2 '{"end":2}'
}

@test "{stdout} stands for the words that were printed" {
	printf '{"name":"alpha"}\n{"end":1}\n' | amap-ask --each - ps -- printf 'one two\n three\n' >ps
	run -0 amap-ask --each ps inspect -- printf '<%s>' '{stdout}'
	assert_line --partial '"argv":["printf","<%s>","one","two","three"],"status":0,"reason":null,"stdout":"<one><two><three>"'
}

@test "a command that hangs is killed with all it started, and is no answer" {
	run -0 amap-ask --timeout 1 x -- sh -c 'echo a; sleep 77.5 & sleep 77.5'
	assert_line --partial '"status":null,"reason":"ran out of time","stdout":"a\n"'
	run -1 pgrep -f 'sleep 77[.]5'
}

@test "what a command leaves behind does not hold its answer, and is ended" {
	run -0 amap-ask x -- sh -c 'echo a; sleep 78.5 &'
	assert_line --partial '"status":0,"reason":null,"stdout":"a\n"'
	run -1 pgrep -f 'sleep 78[.]5'
}

@test "a command that cannot start, dies of a signal, or prints no text is no answer" {
	run -0 amap-ask x -- ./absent
	assert_line --partial '"status":null,"reason":"cannot be started: No such file or directory","stdout":null'
	run -0 amap-ask x -- sh -c 'kill -9 $$'
	assert_line --partial '"status":null,"reason":"killed by signal 9"'
	run -0 amap-ask x -- printf 'a\0b'
	assert_line --partial '"status":0,"reason":"its output is not text","stdout":null'
	run -0 amap-ask x -- printf 'a\377b'
	assert_line --partial '"reason":"its output is not text","stdout":null'
	run -0 amap-ask x -- cat /dev/zero
	assert_line --partial '"status":null,"reason":"printed too much","stdout":null'
}

@test "standard input is empty, whatever ours is" {
	run -0 --separate-stderr sh -c 'yes | amap-ask x -- cat'
	assert_line --partial '"status":0,"reason":null,"stdout":""'
	run -0 sh -c 'amap-ask x -- cat <&-'
	assert_line --partial '"status":0,"reason":null,"stdout":""'
}

@test "at most so many run at a time" {
	seq -f '{"name":"m%.0f"}' 12 >members
	echo '{"end":12}' >>members
	mkdir running
	run -0 amap-ask --jobs 3 --each members x -- sh -c 'mkdir running/$1; ls running | wc -l; sleep 0.1; rmdir running/$1' - '{name}'
	assert_equal "$(printf '%s\n' "$output" | grep -c '"stdout":"[123]\\n"')" 12
}

@test "a signal ends the commands too" {
	amap-ask x -- sleep 79.5 >out 3>&- &
	pid=$!
	eventually pgrep -f 'sleep 79[.]5'
	kill -TERM $pid
	rc=0; wait $pid || rc=$?
	assert_equal $rc 143
	run -1 pgrep -f 'sleep 79[.]5'
}

@test "a stream that is cut is refused before anything runs" {
	printf '{"name":"alpha"}\n' >members
	run -2 --separate-stderr amap-ask --each members x -- touch made
	assert_equal "$stderr" 'amap-ask: members:1: the stream is cut: no {"end":COUNT} line closes it'
	assert_file_not_exist made
	run -2 amap-ask --each absent x -- touch made
}

@test "output that cannot be written is exit 2" {
	run -2 sh -c 'amap-ask x -- true >/dev/full'
	run -2 sh -c 'amap-ask x -- true >&-'
}
