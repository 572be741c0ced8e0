# The small filters that the verbs are made of: amap-home, amap-field,
# amap-render-fleet, amap-drift, amap-profile.
load common

@test "each: usage, version, a full standard output" {
	for program in amap-home amap-field amap-render-fleet amap-drift amap-profile; do
		usage_is_sound $program
	done
}

# ---- amap-home ----

@test "home: the option, then the variable, then the record; empty counts as none" {
	mkdir a b c
	export XDG_CONFIG_HOME=$PWD/cfg
	mkdir -p cfg/amap-openshell
	echo "$PWD/c" >cfg/amap-openshell/home
	run -0 env AMAP_OPENSHELL_HOME="$PWD/b" amap-home --home "$PWD/a"
	assert_output "$PWD/a"
	run -0 env AMAP_OPENSHELL_HOME="$PWD/b" amap-home --home ''
	assert_output "$PWD/b"
	run -0 env AMAP_OPENSHELL_HOME= amap-home
	assert_output "$PWD/c"
	run -0 amap-home --record
	assert_output "$PWD/cfg/amap-openshell/home"
	run -0 env -u XDG_CONFIG_HOME HOME=/h amap-home --record
	assert_output /h/.config/amap-openshell/home
	run -1 env -u XDG_CONFIG_HOME -u HOME amap-home --record
	run -2 --separate-stderr env -u XDG_CONFIG_HOME -u HOME amap-home
	assert_equal "$stderr" 'amap-home: no home is known; give --home DIR or set AMAP_OPENSHELL_HOME'
}

@test "home: a record that is no regular file is none; one that names no single absolute path is an error" {
	export XDG_CONFIG_HOME=$PWD/cfg
	mkdir -p cfg/amap-openshell c
	record=cfg/amap-openshell/home
	for bad in '' ' ' relative $'/a\n/b'; do
		printf '%s' "$bad" >$record
		run -2 --separate-stderr amap-home
		assert_regex "$stderr" 'correct or remove it'
	done
	printf '/a\0b' >$record
	run -2 amap-home
	printf '  %s \n\n' "$PWD/c" >$record
	run -0 amap-home
	rm $record
	mkdir $record
	run -2 amap-home
	rmdir $record
	mkfifo $record
	run -2 amap-home
	rm $record
	echo "$PWD/c" >real
	ln -s "$PWD/real" $record
	run -2 --separate-stderr amap-home
	assert_regex "$stderr" 'no home is known'
}

@test "home: where it may be" {
	mkdir -p real/sub
	ln -s real link
	ln -s real/sub sublink
	echo >file
	while IFS='|' read -r want options dir why; do
		dir=${dir//@/$PWD}
		# shellcheck disable=SC2086
		run "-$want" --separate-stderr amap-home ${options//@/$PWD} --home "$dir"
		[ -z "$why" ] || assert_regex "$stderr" "$why"
		[ "$want" -ne 0 ] || assert_output "$dir"
	done <<'CASES'
0||@/real|
0||@/link/sub|
1|--real|@/link/sub|symbolic link
0|--real|@/real/sub|
1||@/sublink|symbolic link
1||@/file|not a directory
1||@/none|no such home
0|--new|@/none|
1|--new|@/none/none|directory above
1|--new|@/file/none|directory above
1||real|not absolute
1||//tmp|not normalised
1||@/real/|not normalised
1||@/./real|not normalised
1||@/real/../real|not normalised
1||@//real|not normalised
1||/|root
1|--new|@/a:b|colon
1|--new|@/a b|white space
1|--new|@/a	b|white space
1|--outside @/real|@/real|overlaps
1|--outside @/real|@/real/sub|overlaps
1|--outside @/real/sub|@/real|overlaps
1|--outside @/link|@/real/sub|overlaps
1|--outside @/real|@/link/sub|overlaps
1|--new --outside @/real|@/link/new|overlaps
0|--outside @/rea|@/real|
0|--outside @/real/subx|@/real/sub|
CASES
}

# ---- amap-field ----

@test "field: strings, absent and null keys, other kinds, unprintable values" {
	run -0 amap-field a b c <<<'{"a":"x","c":"y é","b":null}'
	assert_output $'x\t\ty é'
	run -1 --separate-stderr amap-field a b <<<'{"a":"x","b":7}'
	[ -z "$output" ]
	assert_equal "$stderr" 'amap-field: b: what stands under this key is no string'
	for bad in '"x\ty"' '"x\ny"' '"\u001b[1m"' '"a\u0000b"' '"\u202e"' '[]' '{}' true; do
		run -1 --separate-stderr amap-field a <<<"{\"a\":$bad}"
		[ -z "$output" ]
	done
	for bad in '' '{' '[]' '"a"' '{"a":1,"a":2}' '{"a":"\ud800"}'; do
		run -2 --separate-stderr amap-field a <<<"$bad"
		[ -z "$output" ]
		[ -n "$stderr" ]
	done
}

@test "field: each object of a list, and only the keys that are expected" {
	run -0 amap-field --each l a b <<<'{"l":[{"a":"1","b":"2"},{"a":"3"}],"z":1}'
	assert_output $'1\t2\n3\t'
	run -1 amap-field --each l a <<<'{"l":{}}'
	run -1 amap-field --each l a <<<'{}'
	run -0 amap-field --only a b <<<'{"a":"1"}'
	run -1 amap-field --only a <<<'{"a":"1","c":1}'
	run -0 amap-field --only --each l a <<<'{"l":[{"a":"1"}]}'
	run -1 amap-field --only --each l a <<<'{"l":[{"a":"1"}],"m":1}'
	run -1 amap-field --only --each l a <<<'{"l":[{"a":"1","b":"1"}]}'
}

# ---- amap-render-fleet ----

@test "render-fleet: the host's label" {
	while IFS='|' read -r host base want; do
		run -0 amap-render-fleet --host "$host" ${base:+--base "$base"} <<<'{"fleet_domain":"x"}'
		assert_equal "$(jq -r .fleet_domain <<<"$output")" "$want"
	done <<CASES
Host-1.local||openshell.host-1.internal
My_Box|example.net|openshell.my-box.example.net
___||openshell.internal
||openshell.internal
.local||openshell.internal
--||openshell.internal
-a-||openshell.a.internal
a__b||openshell.a-b.internal
é||openshell.internal
aéb||openshell.a-b.internal
$(printf 'a%.0s' {1..70})||openshell.$(printf 'a%.0s' {1..63}).internal
$(printf 'a%.0s' {1..62})_b||openshell.$(printf 'a%.0s' {1..62}).internal
CASES
	for base in '' Upper a..b -a a- a_b a. $'a\n'; do
		run -1 amap-render-fleet --host h --base "$base" <<<'{}'
	done
}

@test "render-fleet: every other key, its value and the order stay" {
	run -0 amap-render-fleet --host h <<<'{"z":[],"fleet_domain":"x","_comment":"é\ud83d\ude00","a":{"k":{}}}'
	assert_output '{
  "z": [],
  "fleet_domain": "openshell.h.internal",
  "_comment": "\u00e9\ud83d\ude00",
  "a": {
    "k": {}
  }
}'
}

# ---- amap-drift ----

@test "drift: one line for each difference, in the order of the table" {
	cat >want <<-'END'
	{"state_dir":"/s","fleet_domain":"d","peer_senders":{"a":[],"b":["a"]},"peers":{"a":["x","y"]}}
	END
	while IFS='|' read -r have told; do
		printf '%s\n' "$have" >have
		run -1 --separate-stderr amap-drift want have
		assert_output "$(printf '%b' "$told")"
		[ -z "$stderr" ]
	done <<'CASES'
{"state_dir":"/s","fleet_domain":"d","peer_senders":{"a":[],"b":["a"]},"peers":{"a":["y","x"]},"x":1}|- x: not a key of a rendered router.json
{"q":1,"fleet_domain":"e","task_graph":"all","p":2}|- q: not a key of a rendered router.json\n- p: not a key of a rendered router.json\n+ state_dir: "/s"\n~ fleet_domain: "e" -> "d"\n- task_graph: "all"\n+ peer_senders: {"a":[],"b":["a"]}\n+ peers: {"a":["x","y"]}
{"state_dir":"/s","fleet_domain":"d","peer_senders":{"b":["c"],"z":[]},"peers":{"a":["x","z"]}}|~ peer_senders[a] absent -> []\n~ peer_senders[b] ["c"] -> ["a"]\n~ peer_senders[z] [] -> absent\n~ peers[a] ["x","z"] -> ["x","y"]
{"state_dir":"/s","fleet_domain":"d","peer_senders":[],"peers":{"a":["x","y"]}}|~ peer_senders: [] -> {"a":[],"b":["a"]}
{"peers":{"a":["x","y"]},"state_dir":"/s","fleet_domain":"d","peer_senders":{"a":[],"b":["a"]}}|same content, different bytes (whitespace or key order)
{"state_dir":"/s","fleet_domain":"d","peer_senders":{"a":[],"b":["a"]},"peers":{"a":["y","x"]}}|same content, different bytes (whitespace or key order)
{"state_dir":"/s","fleet_domain":"d","peer_senders":{"a":[],"b":["a"]},"peers":{"a":["y","x","y"]}}|same content, different bytes (whitespace or key order)
{"state_dir":"/s","fleet_domain":"d","peer_senders":{"a":[],"b":["a","a"]},"peers":{"a":["x","y"]}}|~ peer_senders[b] ["a","a"] -> ["a"]
{"state_dir":"/s","fleet_domain":"d","peer_senders":{"a":[],"b":["a"]},"peers":{"a":["x","y"]},"peers\u0000":1}|- peers: not a key of a rendered router.json
[1]|the file on disk is not a JSON object
{|have is not valid JSON: line 2: an object whose key is no string
{"a":1,"a":2}|have is not valid JSON: line 1: a key that stands twice in one object: "a"
CASES
	rm have
	run -1 amap-drift want have
	assert_output 'have is absent: render it to create it'
	ln -s want have
	run -1 amap-drift want have
	assert_output --partial 'have cannot be read: '
	run -0 amap-drift want want
	assert_output ''
	run -2 amap-drift have want
	run -2 amap-drift none want
}

@test "drift: what a hostile file says is shown harmless and short" {
	echo '{}' >want
	printf '{"a\\u001b[2J":1,"fleet_domain":"%s"}' "$(printf 'x%.0s' {1..500})" >have
	run -1 amap-drift want have
	assert_line --index 0 '- a\x1b[2J: not a key of a rendered router.json'
	[ "${#lines[1]}" -lt 260 ]
}

# ---- amap-profile ----

template() { jq "$1" "$TOP/examples/providers/amap-claude-code.json" >template; }

@test "profile: rendered with each path once, in order" {
	template .
	run -0 amap-profile render template /b /a /b
	assert_equal "$(jq -c .binaries <<<"$output")" '["/b","/a"]'
	assert_equal "$(jq -S 'del(.binaries)' <<<"$output")" "$(jq -S 'del(.binaries)' template)"
	for category in other inference agent source_control messaging data knowledge; do
		template ".category=\"$category\" | .credentials[0].auth_style=\"bearer\" | del(.credentials[0].header_name)"
		run -0 amap-profile render template /a
	done
	template .
	for bad in '' b /a/ /a//b /a/../b '/a b' $'/a\tb' $'/a\x1b'; do
		run -1 --separate-stderr amap-profile render template /ok "$bad"
		[ -z "$output" ]
	done
	run -0 amap-profile render template /a:b
}

@test "profile: every fault of a template is named" {
	while IFS='|' read change fault; do		# a backslash keeps the bar in a change
		template "$change"
		run -1 --separate-stderr amap-profile render template /a
		[ -z "$output" ]
		assert_equal "$(cut -d : -f 2 <<<"$stderr" | sort -u | paste -sd ,)" "$fault"
	done <<'CASES'
.extra=1| extra
.id=" "| id
.id="claude-code"| id
.id="A"| id
.id="a-"| id
.id="a--b"| id
.id="-a"| id
.id=7| id
del(.id)| id
del(.display_name)| display_name
.display_name=" \\t\\n"| display_name
.description=""| description
.category="toys"| category
.credentials=[]| credentials
.credentials+=.credentials| credentials
.credentials[0].env_vars=["OTHER"]| credentials.env_vars
.credentials[0].env_vars+=["OTHER"]| credentials.env_vars
.credentials[0].env_vars="ANTHROPIC_API_KEY"| credentials.env_vars
.credentials[0].header_name=""| credentials.header_name
del(.credentials[0].header_name)| credentials.header_name
.discovery.credentials=[]| discovery.credentials
.discovery.credentials=["other"]| discovery.credentials
.endpoints=[]| endpoints
.endpoints+=.endpoints| endpoints
.endpoints[0].port=80| endpoints.port
.endpoints[0].protocol="tcp"| endpoints.protocol
.endpoints[0].tls="skip"| endpoints.tls
.endpoints[0].port="443"| endpoints.port
del(.endpoints)| endpoints
.endpoints[0].allow_uninspected_credentials=true| endpoints.allow_uninspected_credentials
.id="" \| .category="x" \| .endpoints[0].port=1| category, endpoints.port, id
CASES
}

@test "profile: compared by what it means, updated with the copy's version" {
	template .
	amap-profile render template /a /b >rendered
	while IFS='|' read -r change want; do
		jq "[{id:\"other\"}, (. + {resource_version: 4, source: \"user\", scope: \"x\"} | $change)]" rendered >list
		run -0 amap-profile compare rendered list
		assert_output "$want"
	done <<'CASES'
.|equal
.binaries=[{"path":"/a"},{"path":"/b"}]|equal
.credentials[0].description="other"|equal
.endpoints[0].path="/x"|equal
.binaries=["/b","/a"]|differs
.binaries=[{"path":"/a"},{"path":"/c"}]|differs
.description="other"|differs
.category="other"|differs
.credentials[0].name="other"|differs
.credentials[0].env_vars=["OTHER"]|differs
.credentials[0].auth_style="bearer"|differs
.credentials[0].header_name="other"|differs
.credentials+=[{}]|differs
.endpoints[0].host="other"|differs
.endpoints[0].port=80|differs
.endpoints[0].protocol="tcp"|differs
.endpoints+=[{}]|differs
del(.discovery)|differs
.binaries=[]|differs
.display_name="other"|differs
.inference_capable=false|differs
.endpoints[0].access="full"|differs
.endpoints[0].enforcement="audit"|differs
del(.endpoints[0].enforcement)|differs
.credentials[0].required=false|differs
.discovery.credentials=[]|differs
.id="another"|absent
CASES
	jq '[. + {resource_version: 4}]' rendered >list
	run -0 amap-profile update rendered list
	assert_equal "$(jq -S . <<<"$output")" "$(jq -S '. + {resource_version: 4}' rendered)"
	for version in 0 -1 1.5 '"4"' null; do
		jq "[. + {resource_version: $version}]" rendered >list
		run -2 amap-profile update rendered list
	done
	echo '[]' >list
	run -2 amap-profile update rendered list
	jq '[., .]' rendered >list
	run -2 --separate-stderr amap-profile compare rendered list
	assert_regex "$stderr" 'has 2 profiles of this id'
	echo '{}' >list
	run -2 amap-profile compare rendered list
}
