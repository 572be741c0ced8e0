load common

# A members stream for names in workspace w, domain d, below $1.
members() {
	home=$1
	shift
	printf '{"workspace":"w","fleet_domain":"d.example","groups":{"g":[%s]}}' "$(printf '"%s",' "$@" | sed 's/,$//')" |
		amap-fleet | amap-lanes --home "$home"
}

@test "the programs answer the usual options" {
	usage_is_sound amap-lanes
	usage_is_sound amap-render-policy
	usage_is_sound amap-render-create
	usage_is_sound amap-render-router
	for command in "amap-lanes" "amap-render-policy --member a" "amap-render-policy --run-as 1:1" \
	    "amap-render-policy --member a --files --run-as 1:1" "amap-render-create" \
	    "amap-render-create --files --json" "amap-render-router" "amap-render-create --member a x y"; do
		# shellcheck disable=SC2086	# a command line
		run -2 --separate-stderr $command </dev/null
		[ -z "$output" ]
		[[ $stderr == "usage: "* ]]
	done
}

@test "a member has five rows, only the outbox is writable" {
	run -0 members /srv/amap a
	assert_output '{"name":"a","workspace":"w","address":"a@d.example","rows":[{"role":"payload","source":"/srv/amap/payload","target":"/opt/amap/payload","read_only":true},{"role":"roster","source":"/srv/amap/roster","target":"/opt/amap/roster","read_only":true},{"role":"inbox","source":"/srv/amap/instances/a/inbox","target":"/opt/amap/lanes/inbox","read_only":true},{"role":"peer","source":"/srv/amap/instances/a/peer","target":"/opt/amap/lanes/peer","read_only":true},{"role":"outbox","source":"/srv/amap/instances/a/outbox","target":"/opt/amap/lanes/outbox","read_only":false}]}
{"end":1}'
}

@test "a home must be absolute and normalised, without colon, white space or what cannot be printed" {
	printf '{"workspace":"w","fleet_domain":"d","groups":{"g":["a"]}}' | amap-fleet >plan
	for home in "" / srv /srv/ /srv//amap //srv /srv/. /srv/../x /srv:x "/srv/a b" $'/srv/a\tb' $'/srv/\xc2\xa0' $'/srv/\xe2\x80\x8b' $'/srv/\xff'; do
		run -2 --separate-stderr amap-lanes --home "$home" plan
		[[ -z $output && $stderr == "amap-lanes: --home "* ]]
		run -2 --separate-stderr amap-render-router --home "$home" plan
		[[ -z $output && $stderr == "amap-render-router: --home "* ]]
	done
	run -0 amap-lanes --home '/srv/é"\'"'"'$x' plan
}

@test "a plan that is none is refused" {
	for text in '{}' '[]' '{"workspace":"w","domain":"d","members":{}}' '{"workspace":"W","domain":"d","members":[]}' \
	    '{"workspace":"w","domain":"d","members":[{}]}'; do
		printf '%s' "$text" >plan
		run -2 --separate-stderr amap-lanes --home /srv/amap plan
		[[ $output != *'"end"'* ]]
	done
	printf '{"workspace":"w","domain":"d","members":[{"name":"a"}]}' >plan
	run -2 --separate-stderr amap-render-router --home /srv/amap plan
	[ -z "$output" ]
}

@test "a policy has the rows' targets by their flags, and the ids as strings" {
	members /srv/amap a >members
	run -0 amap-render-policy --member a --run-as 1000:0012 members
	assert_output '# Sandbox policy rendered by amap-openshell. Re-render it; do not edit it.
version: 1
filesystem_policy:
  include_workdir: false
  read_only:
    - "/bin"
    - "/usr"
    - "/lib"
    - "/proc"
    - "/dev/urandom"
    - "/etc"
    - "/var/log"
    - "/opt/amap/payload"
    - "/opt/amap/roster"
    - "/opt/amap/lanes/inbox"
    - "/opt/amap/lanes/peer"
  read_write:
    - "/sandbox"
    - "/tmp"
    - "/dev/null"
    - "/opt/amap/lanes/outbox"
landlock:
  compatibility: "hard_requirement"
process:
  run_as_user: "1000"
  run_as_group: "12"'
}

@test "--run-as takes two numbers, neither 0 nor more than 4294967294" {
	members /srv/amap a >members
	run -0 amap-render-policy --member a --run-as 4294967294:0001 members
	assert_line '  run_as_user: "4294967294"'
	assert_line '  run_as_group: "1"'
	for ids in "" 1 1: :1 0:1 1:0 00:1 1:1:1 -1:1 +1:1 "1: 1" " 1:1" 1:1x x:1 4294967295:1 1:18446744073709551617 1:٣; do
		run -2 --separate-stderr amap-render-policy --member a --run-as "$ids" members
		assert_equal "$output${stderr%%:*}" amap-render-policy
	done
}

@test "the command is one line for sh, quoted where it must be, with exactly these words" {
	home="/srv/a'b\"c\\é\$x"
	members "$home" a >members
	amap-render-create --member a --image 'registry/image:1' --restart-policy members >create.sh
	assert_equal "$(wc -l <create.sh)" 1
	cat >want <<-END
		--workspace
		w
		sandbox
		create
		--name
		a
		--from
		registry/image:1
		--provider
		amap-claude-code
		--auto-providers
		--policy
		$home/policies/a.yaml
		--driver-config-json
		{"docker":{"mounts":[{"read_only":true,"source":"/srv/a'b\\"c\\\\\\u00e9\$x/payload","target":"/opt/amap/payload","type":"bind"},{"read_only":true,"source":"/srv/a'b\\"c\\\\\\u00e9\$x/roster","target":"/opt/amap/roster","type":"bind"},{"read_only":true,"source":"/srv/a'b\\"c\\\\\\u00e9\$x/instances/a/inbox","target":"/opt/amap/lanes/inbox","type":"bind"},{"read_only":true,"source":"/srv/a'b\\"c\\\\\\u00e9\$x/instances/a/peer","target":"/opt/amap/lanes/peer","type":"bind"},{"read_only":false,"source":"/srv/a'b\\"c\\\\\\u00e9\$x/instances/a/outbox","target":"/opt/amap/lanes/outbox","type":"bind"}]}}
		--env
		AMAP_INBOX_DIR=/opt/amap/lanes/inbox
		--env
		AMAP_PEER_DIR=/opt/amap/lanes/peer
		--env
		AMAP_OUTBOX_DIR=/opt/amap/lanes/outbox
		--env
		AMAP_SELF_ADDRESS=a@d.example
		--env
		AMAP_SELF=a@d.example
		--env
		AMAP_ROSTER_DIR=/opt/amap/roster
		--restart-policy
		on-failure
		--detach
		--tty
		--
		/opt/amap/payload/amap-main
		--mcp-config
		/opt/amap/payload/mcp-servers.json
		--append-system-prompt-file
		/opt/amap/payload/INBOX-POLICY.md
		--settings
		/opt/amap/payload/claude-settings.json
		--dangerously-skip-permissions
	END
	sh -c 'openshell() { printf "%s\n" "$@"; }; . ./create.sh' | cmp - want
	amap-render-create --member a --image 'registry/image:1' --restart-policy --json members | jq -r '.[]' |
		cmp - <(echo openshell; cat want)
	amap-render-create --member a members >create.sh
	run -1 grep -e restart-policy create.sh
	run -0 grep -c -e '--from amap-openshell-agent ' create.sh
	for image in "" "a b" $'a\nb' $'a\xc2\xa0b' $'\xff'; do
		run -2 --separate-stderr amap-render-create --member a --image "$image" members
		[ -z "$output" ]
	done
}

@test "a word is bare when all of it is letters, digits and _@%+=:,./- and else in single quotes" {
	members /srv/amap a >members
	for code in $(seq 33 126); do
		printf -v c "\\x$(printf %x "$code")"
		case $c in
		[A-Za-z0-9_@%+=:,./-]) want="x${c}y" ;;
		"'") want="'x'\"'\"'y'" ;;
		*) want="'x${c}y'" ;;
		esac
		script=$(amap-render-create --member a --image "x${c}y" members)
		[[ $script == *" --from $want --provider "* ]] || { echo "$c: $script"; false; }
	done
}

@test "--files has a record for each member, and they are the single artifacts" {
	members /srv/amap a b c >members
	amap-render-policy --files --run-as 7:8 members >files
	amap-render-create --files members >>files
	run -0 jq -r 'select(.path) | .path + " " + .mode' files
	assert_output "policies/a.yaml 0644
policies/b.yaml 0644
policies/c.yaml 0644
commands/create-a.sh 0644
commands/create-b.sh 0644
commands/create-c.sh 0644"
	jq -j 'select(.path == "policies/b.yaml") | .content' files | cmp - <(amap-render-policy --member b --run-as 7:8 members)
	jq -j 'select(.path == "commands/create-c.sh") | .content' files | cmp - <(amap-render-create --member c members)
	assert_equal "$(grep -c '^{"end":3}$' files)" 2
}

@test "a member that is not there is no artifact" {
	members /srv/amap a >members
	run -1 --separate-stderr amap-render-policy --member b --run-as 1:1 members
	assert_equal "$output$stderr" "amap-render-policy: b: not one of the members"
	run -1 --separate-stderr amap-render-create --member b members
	assert_equal "$output$stderr" "amap-render-create: b: not one of the members"
}

# refused WANT SED: a stream that sed changed renders nothing, for this reason.
refused() {
	sed "$2" members >changed
	for command in "amap-render-policy --member a --run-as 1:1" "amap-render-create --member a" \
	    "amap-render-policy --files --run-as 1:1" "amap-render-create --files"; do
		# shellcheck disable=SC2086	# a command line
		run -2 --separate-stderr $command changed
		assert_equal "$2: $output${stderr#amap-render-*: }" "$2: $1"
	done
}

@test "rows that the table would not make are refused, every fault named" {
	members /srv/amap a >members
	refused "a: not rendered: inbox is writable" 's|\(lanes/inbox","read_only":\)true|\1false|'
	refused "a: not rendered: payload is writable; the target of payload overlaps /dev" \
	    's|"/opt/amap/payload","read_only":true|"/dev/amap","read_only":false|'
	refused "a: not rendered: the target of peer: it is not absolute" 's|"/opt/amap/lanes/peer"|"lanes/peer"|'
	refused "a: not rendered: the target of peer: it is not normalised" 's|"/opt/amap/lanes/peer"|"/opt/../peer"|'
	refused "a: not rendered: the target of outbox: it is the root directory" 's|"/opt/amap/lanes/outbox"|"/"|'
	refused "a: not rendered: the target of outbox overlaps /sandbox" 's|"/opt/amap/lanes/outbox"|"/sandbox/out"|'
	refused "a: not rendered: the target of outbox lies below /tmp, which is writable" 's|"/opt/amap/lanes/outbox"|"/tmp/out"|'
	refused "a: not rendered: the targets of payload and outbox overlap" 's|"/opt/amap/lanes/outbox"|"/opt/amap/payload/out"|'
	refused "a: not rendered: the targets of payload and roster overlap" 's|"/opt/amap/roster"|"/opt/amap/payload"|'
	for path in /opt/openshell /etc/openshell /etc/openshell-tls /run/openshell /run/openshell-sidecar /run/netns \
	    /var/run/netns /proc /sys /dev /sandbox; do
		refused "a: not rendered: the target of roster overlaps $path" "s|\"/opt/amap/roster\"|\"$path/x\"|"
	done
	refused "a: not rendered: the target of roster overlaps /var/run/netns" 's|"/opt/amap/roster"|"/var/run"|'
	# Another sound target is nobody's fault.
	sed 's|"/opt/amap/roster"|"/opt/other"|' members >changed
	run -0 amap-render-policy --member a --run-as 1:1 changed
	assert_line '    - "/opt/other"'
	run -0 amap-render-create --member a changed
}

@test "B19a what must never leave a renderer is found in its text, every fault of it" {
	compiler=cc
	if grep -q __asan_report "$BIN/../libamap.a"; then compiler='clang -fsanitize=address,undefined'; fi
	# shellcheck disable=SC2086	# several words or one
	$compiler -std=c11 -w -D_GNU_SOURCE -I"$TOP/lib" -o rendering "$TOP/tests/tools/rendering.c" "$BIN/../libamap.a" -ljq -lyaml
	printf '{"workspace":"default","fleet_domain":"example.org","groups":{"g":["alpha"]}}' | amap-fleet | amap-lanes --home /srv/amap >members
	amap-render-policy --member alpha --run-as 1000:1001 members >policy
	amap-render-create --member alpha --image image --json members | jq -r '.[]' >words
	grep -v '^#' "$DATA/render/problems.txt" >cases
	n=0
	while IFS= read -r line; do
		n=$((n + 1))
		kind=${line%%	*} line=${line#*	}
		sed "${line%	*}" "$kind" >changed
		assert_equal "$line: $(./rendering "$kind" <changed)" "$line: ${line##*	}"
	done <cases
	[ "$n" -eq "$(wc -l <cases)" ]
}

@test "a record that amap-lanes does not make is refused by what it lacks" {
	members /srv/amap a >members
	refused "changed:1: it has no sound name" 's|"name":"a"|"name":"A"|'
	refused "changed:1: it has no sound workspace" 's|"workspace":"w"|"workspace":"w w"|'
	refused "changed:1: its address is not NAME@DOMAIN" 's|"a@d.example"|"b@d.example"|'
	refused "changed:1: its address is not NAME@DOMAIN" 's|"a@d.example"|"a@d.example;x"|'
	refused "changed:1: it has not 5 rows" 's|,{"role":"outbox".*|]}|'
	refused 'changed:1: the row "roster" is not in its place' 's|"role":"roster"|"role":"Roster"|'
	refused 'changed:1: the source of the row "outbox" is not the member'"'"'s own' 's|instances/a/outbox|instances/b/outbox|'
	refused 'changed:1: the source of the row "roster" is not the member'"'"'s own' 's|/srv/amap/roster|/srv/other/roster|'
	refused 'changed:1: the source of the row "payload" is not the member'"'"'s own' 's|/srv/amap/payload|/srv/../payload|'
	refused 'changed:1: the row "peer" has no target' 's|,"target":"/opt/amap/lanes/peer"||'
	refused 'changed:1: the row "peer" has no read_only flag' 's|\(lanes/peer","read_only":\)true|\1"true"|'
	refused 'changed:1: line 1: a key that stands twice in one object: "name"' 's|"name":"a"|"name":"a","name":"a"|'
}

@test "B17 B19 a name of digits and a long path stay strings on one line" {
	home=/srv/$(printf 'x%.0s' $(seq 200))/é
	members "$home" 007 1e3 no >members
	run -0 amap-render-create --member 007 members
	[ "${#lines[@]}" -eq 1 ]
	sed 's|"/opt/amap/roster"|"/opt/'"$(printf 'y%.0s' $(seq 200))"'/é"|' members >changed
	run -0 amap-render-policy --member 1e3 --run-as 08:09 changed
	assert_line "    - \"/opt/$(printf 'y%.0s' $(seq 200))/é\""
	assert_line '  run_as_user: "8"'
}

@test "router.json has peer_senders for everyone, peers where there are some, no other key" {
	printf '%s' '{"workspace":"w","fleet_domain":"d","default_peers":["ALLOW_ANY"],"peers":{"b":[],"a":["c"]},"task_graph":{"b":["c"]}}' |
		amap-fleet | sed 's/,"overlaps":.*/}/' >plan
	run -0 amap-render-router --home /srv/amap plan
	assert_output '{
  "state_dir": "/srv/amap/router-state",
  "instances_dir": "/srv/amap/instances",
  "selected_json": "/srv/amap/selected.json",
  "fleet_domain": "d",
  "peer_senders": {
    "a": [],
    "b": [
      "c"
    ],
    "c": []
  },
  "peers": {
    "a": [
      "c"
    ],
    "c": [
      "ALLOW_ANY"
    ]
  }
}'
	printf '%s' '{"workspace":"w","fleet_domain":"d","groups":{"g":["a","b"]},"task_graph":"ALL"}' | amap-fleet >plan
	run -0 amap-render-router --home /srv/é plan
	assert_output '{
  "state_dir": "/srv/\u00e9/router-state",
  "instances_dir": "/srv/\u00e9/instances",
  "selected_json": "/srv/\u00e9/selected.json",
  "fleet_domain": "d",
  "task_graph": "all"
}'
}

@test "every pair on both lanes is named, and there is no router.json" {
	printf '%s' '{"workspace":"w","fleet_domain":"d","peers":{"a":["b","c"]},"task_graph":{"b":["a"],"a":["c"]}}' |
		amap-fleet >plan
	run -1 --separate-stderr amap-render-router --home /srv/amap plan
	[ -z "$output" ]
	assert_equal "$stderr" "amap-render-router: c -> a: on both lanes, mail and delegation; take the pair out of peers or of task_graph
amap-render-router: a -> b: on both lanes, mail and delegation; take the pair out of peers or of task_graph"
}

@test "an input that is not there is named" {
	for command in "amap-lanes --home /srv/amap" "amap-render-policy --files --run-as 1:1" \
	    "amap-render-create --files" "amap-render-router --home /srv/amap"; do
		run -2 $command none
		assert_output "${command%% *}: none: No such file or directory"
	done
}
