load common
load evidence

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	fleet "$PWD/home"
	{
		for name in alpha beta; do
			answer ps "$name" 0 $'c1\nc2\n'
			answer inspect "$name" 0 "$(containers "$name")"
		done
	} >answers
	ended answers
}

# containers NAME: docker's array, the workload and the supervisor of one sandbox.
containers() {
	jq -nc --arg h "$PWD/home" --arg n "$1" '
	    def bind(s; t; rw): {Type: "bind", Source: ($h + "/" + s), Destination: ("/opt/amap/" + t), Mode: "", RW: rw,
	        Propagation: "rprivate"};
	    {"openshell.ai/sandbox-name": $n, "openshell.ai/sandbox-id": ("id-" + $n)} as $labels |
	    [{Id: "c1", Config: {Labels: ($labels + {"openshell.ai/sandbox-workspace": "default"})}, Mounts: [
	        bind("instances/\($n)/outbox"; "lanes/outbox"; true), bind("payload"; "payload"; false),
	        bind("instances/\($n)/inbox"; "lanes/inbox"; false), bind("roster"; "roster"; false),
	        bind("instances/\($n)/peer"; "lanes/peer"; false)]},
	     {Id: "c2", Config: {Labels: $labels}, Mounts: [{Type: "volume", Name: "channel", Source: "/var/lib/docker/x",
	        Destination: "/.openshell/channel", Mode: "z", RW: true}]}]'
}

# change NAME FILTER: a member's array, changed by jq.
change() {
	jq -c --arg n "$1" "if .ask == \"inspect\" and .subject == \$n then .stdout |= (fromjson | $2 | tojson) else . end" \
	    answers >changed
	mv changed answers
}

probe() { amap-probe-mounts --members members answers; }

@test "usage is sound" {
	usage_is_sound amap-probe-mounts
	run -2 amap-probe-mounts answers
	run -2 amap-probe-mounts --members members absent
}

@test "the rendered mounts are a PASS, whole" {
	run -0 probe
	row() { printf '{"source":"%s/home/%s","writable":%s}' "$PWD" "$1" "$2"; }
	rows="{\"/opt/amap/payload\":$(row payload false),\"/opt/amap/roster\":$(row roster false),\"/opt/amap/lanes/inbox\":$(row instances/alpha/inbox false),\"/opt/amap/lanes/peer\":$(row instances/alpha/peer false),\"/opt/amap/lanes/outbox\":$(row instances/alpha/outbox true)}"
	assert_equal "$(jq -cS 'select(.id == "M4" and .subject == "alpha") | [.outcome, .expected, .actual, .provenance]' <<<"$output")" \
	    "$(jq -cS . <<<"[\"PASS\",$rows,$rows,\"the rendered lane rows\"]")"
	assert_equal "$(outcomes <<<"$output")" $'M4 alpha PASS\nM5 alpha PASS\nM4 beta PASS\nM5 beta PASS'
	printf '%s\n' "$output" >checks
	sound checks
}

@test "a docker inspect array as it is gives the same, by its labels" {
	{ containers alpha; containers beta; } | jq -cs add >array
	run -0 sh -c "amap-probe-mounts --members members <array"
	assert_equal "$output" "$(probe)"
	jq '[.[] | select(.Config.Labels["openshell.ai/sandbox-name"] == "alpha")]' array >half
	run -1 amap-probe-mounts --members members half
	assert_equal "$(outcomes <<<"$output")" $'M4 alpha PASS\nM5 alpha UNKNOWN\nM4 beta UNKNOWN\nM5 beta UNKNOWN'
	assert_output --partial '"reason":"no container of it runs"'
	jq '.[0].Config.Labels["openshell.ai/sandbox-workspace"] = "other" | .[2].Config.Labels = null' array >other
	run -1 amap-probe-mounts --members members other
	assert_equal "$(outcomes <<<"$output" | grep M4)" $'M4 alpha FAIL\nM4 beta FAIL'
}

# Each line: a change of alpha's array, the outcome of M4.
@test "any other mount, flag or source is a FAIL; what is not said is UNKNOWN" {
	mkdir -p home/extra
	ln -s "$PWD/home/roster" home/link
	cp answers good
	while IFS='|' read -r filter outcome; do
		cp good answers
		change alpha "$filter"
		run -1 probe
		assert_equal "$(outcomes <<<"$output" | grep 'M4 alpha')" "M4 alpha $outcome"
		assert_equal "$(outcomes <<<"$output" | grep 'M4 beta')" 'M4 beta PASS'
	done <<-END
		.[0].Mounts[2].RW = true|FAIL
		.[0].Mounts[0].RW = false|FAIL
		.[0].Mounts[2].Source = "$PWD/home/instances/alpha/peer"|FAIL
		.[0].Mounts[2].Source = "$PWD/absent"|FAIL
		.[0].Mounts[2].Destination = "/opt/amap/lanes/inbox2"|FAIL
		.[0].Mounts += [{Type: "bind", Source: "$PWD/home/extra", Destination: "/extra", RW: false}]|FAIL
		del(.[0].Mounts[1])|FAIL
		.[0].Mounts = null|FAIL
		del(.[0].Mounts[2].RW)|UNKNOWN
		.[0].Mounts[2].RW = "false"|UNKNOWN
		.[0].Mounts[2].RW = null|UNKNOWN
		del(.[0].Mounts[2].Source)|UNKNOWN
		del(.[0].Mounts[2].Destination)|UNKNOWN
		del(.[0].Mounts[2].Type)|UNKNOWN
		.[0].Mounts += [.[0].Mounts[1]]|UNKNOWN
		.[1].Mounts += [.[0].Mounts[1]]|UNKNOWN
		del(.[0].Mounts)|UNKNOWN
		.[0].Mounts = {}|UNKNOWN
		.[0].Mounts = ["x"]|UNKNOWN
		.[0] = "x"|UNKNOWN
		[]|UNKNOWN
		{}|UNKNOWN
		.[0].Mountinfo = 7|UNKNOWN
	END
}

@test "B20 RW decides, whatever Mode says" {
	change alpha '.[0].Mounts |= map(.Mode = (if .RW then "ro" else "z" end))'
	run -0 probe
	change alpha '.[0].Mounts |= map(.Mode = "ro" | if .Destination == "/opt/amap/lanes/inbox" then .RW = true else . end)'
	run -1 probe
	assert_equal "$(outcomes <<<"$output" | head -n 1)" 'M4 alpha FAIL'
}

@test "B29 null Mounts and Labels, and an array for one container, are read" {
	change alpha '.[1].Mounts = null | .[1].Config.Labels = null'
	run -0 probe
	change alpha '[.[0]]'
	run -0 probe
}

@test "a source is the same through a link" {
	ln -s home other
	change alpha '.[0].Mounts |= map(.Source |= sub("/home/"; "/other/"))'
	run -0 probe
}

@test "a directory that two members mount is named in both, and not when unknown" {
	change alpha ".[0].Mounts += [{Type: \"bind\", Source: \"$PWD/home/instances/beta/outbox\", Destination: \"/x\", RW: true}]"
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'M4 alpha FAIL\nM5 alpha FAIL\nM4 beta PASS\nM5 beta FAIL'
	assert_equal "$(jq -c 'select(.id == "M5") | .actual' <<<"$output" | uniq)" \
	    "[{\"source\":\"$PWD/home/instances/beta/outbox\",\"members\":[\"alpha\",\"beta\"]}]"
	change alpha 'del(.[0].Mounts)'
	run -1 probe
	assert_equal "$(outcomes <<<"$output")" $'M4 alpha UNKNOWN\nM5 alpha UNKNOWN\nM4 beta PASS\nM5 beta UNKNOWN'
	assert_output --partial '"reason":"the mounts of alpha are not known: docker inspect shows no list of mounts"'
}

@test "docker that fails is UNKNOWN, and no container is too" {
	jq -c 'if .ask == "ps" and .subject == "alpha" then .status = 1 | .stderr = "Cannot connect\n" else . end' answers >broken
	run -1 amap-probe-mounts --members members broken
	assert_equal "$(outcomes <<<"$output")" $'M4 alpha UNKNOWN\nM5 alpha UNKNOWN\nM4 beta PASS\nM5 beta UNKNOWN'
	assert_output --partial '"reason":"program: exit status 1: Cannot connect"'
	jq -c 'if .ask == "ps" and .subject == "alpha" then .stdout = "\n" else . end' answers >none
	run -1 amap-probe-mounts --members members none
	assert_line --index 0 --partial '"reason":"no container of it runs"'
	jq -c 'if .ask == "inspect" and .subject == "alpha" then .status = 1 else . end' answers >gone
	run -1 amap-probe-mounts --members members gone
	assert_equal "$(outcomes <<<"$output" | head -n 1)" 'M4 alpha UNKNOWN'
}

@test "B31 a socket that this process may not open is UNKNOWN, with what to do" {
	jq -c 'if .ask == "ps" and .subject == "alpha" then .status = 1 | .argv = ["docker"] |
	    .stderr = "permission denied while trying to connect to the docker API\n" else . end' answers >denied
	run -1 amap-probe-mounts --members members denied
	assert_equal "$(jq -r 'select(.id == "M4" and .subject == "alpha") | .remedy' <<<"$output")" \
	    'this process may not talk to docker: the account must be in the group docker'
}

@test "answers that are cut, and output that cannot be written, are exit 2" {
	head -c -5 answers >cut
	run -2 amap-probe-mounts --members members cut
	echo '[{' >cut
	run -2 amap-probe-mounts --members members cut
	run -2 sh -c 'amap-probe-mounts --members members answers >/dev/full'
	run -2 sh -c 'amap-probe-mounts --members members <&-'
}

# ---- a mount table ----

# table PID LINE...: alpha's array has one embedded sandbox with this table; beta's stays.
table() {
	local pid=$1
	shift
	printf '%s\n' "$@" >table
	jq -nc --argjson p "$pid" --rawfile t table '[{Id: "x", Name: "alpha", State: {Running: true, Pid: $p},
	    Config: {Labels: {}}, Mountinfo: $t}]' >array
	jq -c --rawfile a array 'if .ask == "inspect" and .subject == "alpha" then .stdout = $a else . end' answers >changed
	mv changed answers
}

@test "B22 B23 B25 B26 B28 a real sandbox's own mount table: PASS, and each fault shown" {
	bwrap --ro-bind / / true || skip 'bwrap cannot make a namespace here'
	lanes=$PWD/home/instances/alpha
	box() {	# box OPTION...: a process in such a sandbox, its table in the answers
		: >info
		bwrap --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 \
		    --unshare-pid --as-pid-1 --proc /proc --dev /dev --tmpfs /tmp --die-with-parent \
		    --ro-bind "$PWD/home/payload" /opt/amap/payload --ro-bind "$PWD/home/roster" /opt/amap/roster \
		    --ro-bind "$lanes/inbox" /opt/amap/lanes/inbox --ro-bind "$lanes/peer" /opt/amap/lanes/peer \
		    --bind "$lanes/outbox" /opt/amap/lanes/outbox "$@" --remount-ro / --info-fd 8 sleep 60 8>info 3>&- &
		for _ in $(seq 100); do
			pid=$(jq -e '."child-pid"' info) && [ "$(cat /proc/"$pid"/comm)" = sleep ] && break
			sleep 0.02
		done
		mapfile -t lines </proc/"$pid"/mountinfo
		table "$pid" "${lines[@]}"
	}
	end() { kill -KILL "$pid"; wait || true; }

	box
	run -0 probe
	end
	touch home/payload/file; mkdir -p deep home/payload/deep "$lanes/outbox/sub"
	while IFS='|' read -r outcome text options; do
		eval "box $options"
		run -1 probe
		assert_equal "$(outcomes <<<"$output" | head -n 1)" "M4 alpha $outcome"
		printf '%s\n' "$output" >checks
		run -1 amap-verdict checks
		assert_output --partial "$text"
		end
	done <<-'END'
		FAIL|/opt/amap/lanes/inbox: expected|--bind "$lanes/inbox" /opt/amap/lanes/inbox
		FAIL|unexpected /opt/amap/payload/deep: found|--bind deep /opt/amap/payload/deep
		FAIL|unexpected /extra: found|--ro-bind deep /extra
		FAIL|found {"source":"another directory|--ro-bind deep /opt/amap/lanes/peer
		FAIL|unexpected /opt/amap: found|--tmpfs /opt/amap
		FAIL|unexpected /opt/amap/lanes/outbox/sub: found|--tmpfs /opt/amap/lanes/outbox/sub
		FAIL|unexpected /usr: found|--bind /usr /usr
		FAIL|unexpected /tmp: found|--bind /tmp /tmp
		FAIL|unexpected /proc: found|--ro-bind /proc /proc
		FAIL|unexpected /proc/bus: found|--ro-bind deep /proc/bus
		FAIL|unexpected /dev/deep: found|--ro-bind deep /dev/deep
		FAIL|unexpected /dev/shm: found|--bind /dev/shm /dev/shm
		FAIL|unexpected /etc: found|--ro-bind /etc /etc
		FAIL|unexpected /etc/deep: found|--dir /etc --ro-bind deep /etc/deep
		FAIL|unexpected /opt/amap/payload/file: found|--ro-bind info /opt/amap/payload/file
		FAIL|unexpected /ex tra\x09x: found|--ro-bind deep $'/ex tra\tx'
	END

	# The same process, its table as other kernels and mounts would show it.
	box
	edit_table() { mapfile -t lines < <(sed "$1" /proc/"$pid"/mountinfo); table "$pid" "${lines[@]}"; }
	lane=/opt/amap/lanes/inbox
	edit_table "\\,$lane ,s/ ro,\\(.*\\) rw/ rw,\\1 ro/"
	run -0 probe
	edit_table "\\,$lane ,s/ ro,/ rw,/"
	run -1 probe
	assert_equal "$(outcomes <<<"$output" | head -n 1)" 'M4 alpha FAIL'
	id=$(awk -v t=$lane '$5 == t { print $1 }' /proc/"$pid"/mountinfo)
	edit_table "\\,$lane ,{h;s/ ro,/ rw,/;p;g;s/^[0-9]* [0-9]*/9999 $id/}"
	run -0 probe
	edit_table "\\,$lane ,{p;s/ ro,/ rw,/;s/^[0-9]* [0-9]*/9999 $id/}"
	run -1 probe
	assert_equal "$(outcomes <<<"$output" | head -n 1)" 'M4 alpha FAIL'
	edit_table "\\,$lane ,{p;s/^[0-9]*/9999/}"
	run -1 probe
	assert_equal "$(outcomes <<<"$output" | head -n 1)" 'M4 alpha UNKNOWN'
	edit_table "\\,$lane ,s/ - .*//"
	run -1 probe
	assert_equal "$(outcomes <<<"$output" | head -n 1)" 'M4 alpha UNKNOWN'
	end
}

@test "B32 a user namespace that renumbers is shown as what it is" {
	unshare --user true || skip 'no user namespace can be made here'
	map=(--map-root-user)
	[ "$(id -u)" -ne 0 ] || map=()
	unshare --user "${map[@]}" sleep 60 3>&- &
	pid=$!
	eventually eval '[ "$(cat /proc/$pid/comm)" = sleep ]'
	[ "$(id -u)" -ne 0 ] || echo '0 100000 1' >/proc/$pid/uid_map
	change alpha "map(.State.Pid = $pid)"
	run -1 probe
	kill $pid
	assert_equal "$(outcomes <<<"$output" | head -n 1)" 'M4 alpha FAIL'
	assert_regex "$(jq -r 'select(.id == "M4" and .subject == "alpha") | .actual.uid_map' <<<"$output")" '^ *0 +[1-9][0-9]* +1'
}

@test "a table's directory is unknown when its process cannot be looked at" {
	fs='- ext4 /dev/vda rw'
	table 4194304 "1 0 0:1 / / rw $fs" "2 1 0:1 $PWD/home/payload /opt/amap/payload ro $fs"
	run -1 probe
	assert_equal "$(outcomes <<<"$output" | head -n 1)" 'M4 alpha UNKNOWN'
	assert_output --partial 'cannot be looked at through its process: No such file or directory'
	table 0 "1 0 0:1 / / rw $fs"
	run -1 probe
	assert_output --partial '"reason":"it has no process"'
}
