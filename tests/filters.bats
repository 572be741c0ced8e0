# Every filter of the policy against what happens to its input and its output:
# closed, full, cut at each byte, ten megabytes of it. One table for all of them.
load common

# A small input of each kind, the last newline not in it.
inputs() {
	policy='{"workspace":"w","fleet_domain":"d","groups":{"g":["a"]}}'
	printf '%s' "$policy" >policy
	plan=$(amap-fleet policy)
	printf '%s' "$plan" >plan
	members=$(amap-lanes --home /h plan)
	names='{"name":"a"}
{"end":1}'
	membership='{"version":1,"members":[{"workspace":"w","name":"a","id":"i"}]}'
	printf '%s' "$membership" >membership
	template='{"id":"p","display_name":"d","description":"d","category":"agent","credentials":[{"name":"k","env_vars":["ANTHROPIC_API_KEY"]}],"discovery":{"credentials":["k"]},"endpoints":[{"port":443,"protocol":"rest"}]}'
	printf '%s' "$template" >template
	list='[{"id":"p","resource_version":1}]'
	printf '%s' "$list" >list
	router='{"state_dir":"/h"}'
	printf '%s' "$router" >router
	request='{"name":"a","workspaceScope":{"workspace":"w"},"spec":{}}'
	printf '%s' "$request" >request
	mkdir home home/payload home/roster
	cp policy home/fleet.json
	files='{"path":"f","mode":"0644","content":"x"}
{"end":1}'
	printf '%s\n' "$files" >files
	toml='[openshell.drivers.docker]
allow_driver_config=true'
	printf '%s' "$toml" >toml
	lines_text='a line
another'
	printf '%s' "$lines_text" >lines
}

# The kind of input, then the command; @ stands for the file of the input, or the
# command reads standard input. What is no JSON document or stream is not here.
filters='
policy amap-fleet @
policy amap-membership pending --fleet @ none
policy amap-render-fleet --host h
plan amap-lanes --home /h @
plan amap-render-router --home /h
members amap-render-policy --files --run-as 1:1
members amap-render-create --member a @
names amap-tree lanes
membership amap-membership check @
membership amap-membership record --workspace w --name b --id j @
membership amap-membership remove a @
membership amap-fleet --membership @ policy
template amap-profile render @ /b
template amap-profile compare @ list
list amap-profile update template @
router amap-drift @ list
request amap-field name
request amap-admit --home HOME @
files amap-put --home HOME --apply
'

# each FUNCTION: for every filter, with $kind, $program, $stdin (its input is standard
# input) and "${command[@]}", which reads the file ./cut.
each() (
	local kind program line stdin n=0
	trap - DEBUG	# by which bats follows every command: most of the time of such a loop
	while read -r kind line; do
		[ -n "$kind" ] || continue
		n=$((n + 1))
		program=${line%% *} stdin=yes
		case " $line " in *' @ '*) stdin='' ;; esac
		line=${line//HOME/$PWD/home}
		read -r -a command <<<"${line//@/cut}"
		"$1" || { echo "$kind $line, $at: exit $rc"; cat out err; return 1; }
	done <<<"$filters"
	[ "$n" -eq 19 ]
)

# tried: runs the command over ./cut.
tried() {
	rc=0
	if [ -n "$stdin" ]; then "${command[@]}" <cut >out 2>err; else "${command[@]}" </dev/null >out 2>err; fi || rc=$?
}

# refused: no answer, and one line that says why.
refused() {
	local said
	mapfile -t said <err
	{ [ "$rc" -eq 1 ] || [ "$rc" -eq 2 ]; } && [ "${#said[@]}" -eq 1 ] && [[ ${said[0]} == "$program: "* ]]
}

# nothing_out: the part of a stream that was printed has no end line.
nothing_out() {
	local said
	mapfile -t said <out
	case $kind:$program in
	members:* | names:* | files:*) [ "${#said[@]}" -eq 0 ] || [[ ${said[-1]} != '{"end":'* ]] ;;
	*) [ "${#said[@]}" -eq 0 ] ;;
	esac
}

cut_everywhere() {
	local text=${!kind} length
	length=${#text}
	case $kind in
	names | files) length=$((length + 1)) ;;		# its newline belongs to a stream
	members) step=$((step * 7)) ;;				# a line that is cut is a line that is cut
	esac
	for ((at = 0; at < length; at += step)); do
		printf '%s' "${text:0:at}" >cut
		tried
		refused && nothing_out || return 1
	done
	at=whole
	printf '%s\n' "$text" >cut
	tried
	case $program:${command[1]} in
	amap-membership:pending | amap-drift:*) [ "$rc" -eq 1 ] ;;		# that is its answer
	*) [ "$rc" -eq 0 ] ;;
	esac
}

@test "every filter, its input cut at every byte (long streams at every seventh): refused in one line, without an answer" {
	inputs
	step=1
	# The sanitizers take ten times as long for a start; every byte is the plain run's.
	[ "${AMAP_BUILD_DIR##*/}" != sanitized ] || step=23
	each cut_everywhere
	assert_equal "$(ls home)" 'f
fleet.json
payload
roster'
}

closed_and_full() {
	printf '%s\n' "${!kind}" >cut
	at='a full standard output' rc=0
	if [ -n "$stdin" ]; then "${command[@]}" <cut >/dev/full 2>err; else "${command[@]}" >/dev/full 2>err; fi || rc=$?
	case "${command[*]}" in
	'amap-membership check'*) [ "$rc" -eq 0 ] && [ ! -s err ] || return ;;		# it says nothing
	*) [ "$rc $(cat err)" = "2 $program: standard output: No space left on device" ] || return ;;
	esac
	at='closed standard input' rc=0
	"${command[@]}" <&- >out 2>err || rc=$?
	if [ -n "$stdin" ]; then
		[ "$rc" -eq 2 ] && refused && nothing_out
	else
		[ ! -s err ] || [ "$rc" -eq 1 ]
	fi
}

@test "every filter with a full standard output, and with its standard input closed" {
	inputs
	each closed_and_full
}

large() {
	cp bulk cut
	at='ten megabytes'
	tried
	refused && nothing_out && [ "$(wc -c <err)" -lt 300 ]
}

@test "every filter with ten megabytes: of a string without its end, and of nothing but brackets" {
	inputs
	{ printf '{"name":"'; head -c 10000000 /dev/zero | tr '\0' x; } >bulk
	each large
	head -c 10000000 /dev/zero | tr '\0' '[' >bulk
	each large
}

@test "what compares, looks or copies has an answer for an input that is cut, and never a yes that is not in it" {
	inputs
	for ((at = 0; at < ${#router}; at++)); do
		printf '%s' "${router:0:at}" >cut
		run -1 --separate-stderr amap-drift router cut
		[ "${#lines[@]} $stderr" = '1 ' ]
	done
	for ((at = 0; at < ${#toml}; at++)); do
		printf '%s' "${toml:0:at}" >cut
		run -1 --separate-stderr amap-probe-gateway --rows cut
		[ "${#lines[@]} $stderr" = '3 ' ]
		refute_line --partial PRESENT
	done
	run -1 amap-probe-gateway --rows toml
	assert_line --index 0 --partial PRESENT
	for ((at = 0; at <= ${#lines_text}; at++)); do
		printf '%s' "${lines_text:0:at}" >cut
		amap-redact <cut | cmp - cut
	done
	export XDG_CONFIG_HOME=$PWD/cfg
	mkdir -p cfg/amap-openshell
	whole=$PWD/home
	for ((at = 0; at < ${#whole}; at++)); do
		printf '%s' "${whole:0:at}" >cfg/amap-openshell/home
		rc=0
		amap-home >out 2>err || rc=$?
		# Another answer only where a directory has that name, as those above it.
		if [ "$rc" -eq 0 ]; then [ -d "${whole:0:at}" ]; else [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ]; fi
	done
	for ((at = 0; at < ${#policy}; at++)); do
		printf '%s' "${policy:0:at}" >home/fleet.json
		run -1 amap-admit --home "$PWD/home" request
		assert_output --regexp '^\{"allowed":false,'
	done
}

@test "what does not read standard input works without it, and says so when it cannot be heard" {
	inputs
	for command in "amap-home --home $PWD/home" "amap-render-gateway --home /h" "amap-drift router template" \
	    "amap-probe-gateway toml" "amap-probe-gateway --rows toml" "amap-tree clear --home $PWD/home a" "amap-tree teardown --home $PWD/home"; do
		run -0 sh -c "$command </dev/null || [ \$? -eq 1 ]"
		want=$output
		run -0 sh -c "$command <&- || [ \$? -eq 1 ]"
		assert_output "$want"
		run -2 sh -c "$command >/dev/full"
		assert_output "${command%% *}: standard output: No space left on device"
	done
	run -2 sh -c 'amap-redact <&-'
	assert_output 'amap-redact: <stdin>: Bad file descriptor'
	run -2 sh -c 'echo a | amap-redact >/dev/full'
	assert_output 'amap-redact: standard output: No space left on device'
}

@test "a message is one write, so that no other process's stands in the middle of it" {
	# each write is a datagram of its own
	writes() {
		perl -e 'use Socket qw(:DEFAULT MSG_DONTWAIT);
		    socketpair(my $in, my $out, AF_UNIX, SOCK_DGRAM, 0) or die;
		    if (!fork) { open STDERR, ">&", $out or die; exec @ARGV or die }
		    wait; while (defined recv($in, my $said, 65536, MSG_DONTWAIT)) { print "<$said>" }' "$@"
	}
	for words in "amap-fleet absent" "amap-router --config absent once" inbox-delivery "inbox-submit submit --to a@b --body x" \
	    "amap-confine --policy absent -- true"; do
		# shellcheck disable=SC2086 # words
		run -0 writes $words </dev/null
		assert_output --regexp "^(<[a-z-]+: [^<>]*"$'\n'">)+$"
	done
}
