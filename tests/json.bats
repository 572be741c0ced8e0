load common

# The strict reader and the writer of lib/json, asked through two programs that
# take any JSON: amap-admit says why it does not, amap-render-fleet prints an
# object again.

# refusal FILE: the reason why it is no JSON; nothing when it is.
refusal() {
	amap-admit --home "$PWD" "$1" 2>err >/dev/null || [ $? -eq 1 ] || sed "s|^amap-admit: $1: ||" err
}

@test "B04 B07 B14 what is no strict JSON is refused, by line and cause, without its text" {
	grep -v '^#' "$DATA/json/refused.txt" >cases
	n=0
	while IFS='	' read -r want text; do
		n=$((n + 1))
		printf '%b' "$text" >input
		assert_equal "$text: $(refusal input)" "$text: $want"
	done <cases
	[ "$n" -eq "$(wc -l <cases)" ]
}

@test "B02 a number is written in the fewest digits that read back as it, a whole one without an exponent" {
	printf '{"state_dir":null}' >want
	grep -v '^#' "$DATA/json/numbers.txt" >cases
	while IFS='	' read -r text number; do
		printf '{"state_dir":%s}' "$text" >have
		run -1 amap-drift want have
		assert_equal "$text: $output" "$text: ~ state_dir: $number -> null"
	done <cases
}

@test "B01 a number of a policy keeps its spelling when the policy is written for a new home" {
	printf '{ "a" :1.0,"b": [13911860366432393 ,1e5, -0],"fleet_domain" : {"x":["}"]} ,"c":{"fleet_domain":1E400} }' |
		sed 's/1E400/1E40/' >input
	run -0 amap-render-fleet --host h input
	assert_output '{
  "a": 1.0,
  "b": [
    13911860366432393,
    1e5,
    -0
  ],
  "fleet_domain": "openshell.h.internal",
  "c": {
    "fleet_domain": 1E40
  }
}'
	printf '{"\\u0066leet_domain":"x","z":"fleet_domain"}' >input
	run -0 amap-render-fleet --host h input
	assert_output '{
  "fleet_domain": "openshell.h.internal",
  "z": "fleet_domain"
}'
	run -0 amap-render-fleet --host h <<<' {  } '
	assert_output '{
  "fleet_domain": "openshell.h.internal"
}'
}

@test "what is strict JSON is read, and written the same way again" {
	grep -v '^#' "$DATA/json/accepted.txt" >cases
	n=0
	while IFS='	' read -r text want; do
		n=$((n + 1))
		printf '{"x":%b}' "$text" >input
		printf '{"x":%b,"fleet_domain":"openshell.h.internal"}\n' "$want" >want
		amap-render-fleet --host h input | tr -d '\n ' >got
		assert_equal "$text: $(cat got)" "$text: $(tr -d '\n ' <want)"
	done <cases
	[ "$n" -eq "$(wc -l <cases)" ]
}

@test "a document escapes what is not ASCII and nothing else that need not be" {
	printf '{"\177":"\177\\u007f/\303\251\\u001f"}' >input
	run -0 amap-render-fleet --host h input
	assert_line --index 1 $'  "\x7f": "\x7f\x7f/\\u00e9\\u001f",'
}

@test "the document style indents by two, and leaves empty ones on their line" {
	printf '{"a":[],"b":{},"c":[1,{"d":null}]}' >input
	run -0 amap-render-fleet --host h input
	assert_output '{
  "a": [],
  "b": {},
  "c": [
    1,
    {
      "d": null
    }
  ],
  "fleet_domain": "openshell.h.internal"
}'
}

@test "B08 a text cut at every byte is refused, without a read beyond its end" {
	printf '{"a\\u00e9":[1.5e+3,true,null,"\\ud83d\\ude00\303\251",{"b":{}}]}' >whole
	for n in $(seq 1 $(($(wc -c <whole) - 1))); do
		head -c "$n" whole >input
		[ -n "$(refusal input)" ]
	done
	cp whole input
	[ -z "$(refusal input)" ]
}

@test "B10 nesting is taken 64 deep, and refused beyond on every libjq" {
	printf '%s%s' "$(printf '[%.0s' $(seq 64))" "$(printf ']%.0s' $(seq 64))" >input
	[ -z "$(refusal input)" ]
	printf '%s%s' "$(printf '[%.0s' $(seq 65))" "$(printf ']%.0s' $(seq 65))" >input
	assert_equal "$(refusal input)" "line 1: nested too deep"
	printf '{"a":%.0s' $(seq 100000) >input
	assert_equal "$(refusal input)" "line 1: nested too deep"
}

@test "B16 a large object is read, one of keys that were made to collide is not" {
	{ printf '{'; seq -f '"k%.0f":1,' 65535 | tr -d '\n'; printf '"z":1}'; } >input
	[ -z "$(refusal input)" ]
	{ printf '{'; seq -f '"k%.0f":1,' 65536 | tr -d '\n'; printf '"z":1}'; } >input
	assert_equal "$(refusal input)" "line 1: an object with too many keys"
}

@test "B16 an object of keys that were made to collide is refused, where libjq has a fixed seed" {
	{ printf '{'; sed 's/.*/"&":1,/' "$DATA/json/colliding-keys.txt" | tr -d '\n'; printf '"z":1}'; } >input
	[ -n "$(refusal input)" ] || skip "this libjq takes a new seed each time, so nobody can make such keys"
	assert_equal "$(refusal input)" "line 1: an object whose keys collide"
}

@test "a document larger than the limit is refused, and no more of it read" {
	head -c 16777217 /dev/zero | tr '\0' ' ' >input
	assert_equal "$(refusal input)" "larger than 16777216 bytes"
	run -2 sh -c 'yes " " | amap-admit --home "$PWD"'
	assert_output "amap-admit: <stdin>: larger than 16777216 bytes"
}

# ---- JSON Lines, through amap-render-policy ----

members() {
	printf '{"workspace":"w","fleet_domain":"d","groups":{"g":["a","b"]}}\n' |
		amap-fleet | amap-lanes --home /srv/amap
}

@test "a stream that is cut at any byte is refused, and says so" {
	members >whole
	for n in 0 1 $(seq 2 37 "$(($(wc -c <whole) - 1))") $(($(wc -c <whole) - 1)); do
		head -c "$n" whole >input
		run -2 --separate-stderr amap-render-policy --member a --run-as 1:1 input
		[ -z "$output" ]
		[[ $stderr == "amap-render-policy: input"*": the stream is cut"* ]]
	done
}

@test "two parts of a stream have an end line each; a wrong count is a cut" {
	members >one
	cat one one >two
	run -0 amap-render-policy --files --run-as 1:1 two
	assert_line --index 4 '{"end":4}'
	sed 's/"end":2/"end":3/' one >input
	run -2 amap-render-policy --files --run-as 1:1 input
	assert_line --partial "input:3: the stream is cut: its end line counts other records than were read"
	{ cat one; head -n 1 one; } >input
	run -2 amap-render-policy --files --run-as 1:1 input
	assert_line --partial "the stream is cut: no {\"end\":COUNT} line closes it"
}

@test "B05 a bad line of a stream is named by file and line" {
	members | sed '2s/.*/{"name":"\\ud800"}/' >input
	run -2 --separate-stderr amap-render-policy --files --run-as 1:1 input
	assert_equal "$stderr" "amap-render-policy: input:2: line 1: a lone surrogate in a string"
	members | sed '2s/.*/[]/' >input
	run -2 --separate-stderr amap-render-policy --files --run-as 1:1 input
	assert_equal "$stderr" "amap-render-policy: input:2: not an object"
	members | sed '2s/$/\r/' | tr '\r' '\0' >input
	run -2 --separate-stderr amap-render-policy --files --run-as 1:1 input
	assert_equal "$stderr" "amap-render-policy: input:2: line 1: a NUL byte"
}

@test "a line without an end is refused at the limit, not read for ever" {
	run -2 timeout 60 sh -c 'yes | tr -d "\n" | amap-render-policy --files --run-as 1:1'
	assert_output "amap-render-policy: <stdin>: the line is too long"
}

@test "an end line has no other key; the stream that comes in single bytes is the same stream" {
	members | sed '$ s/}/,"x":1}/' >input
	run -2 amap-render-policy --files --run-as 1:1 input
	assert_line --partial "amap-render-policy: input:3: it has no sound name"
	members | dd bs=1 status=none | amap-render-policy --files --run-as 1:1 | cmp - <(members | amap-render-policy --files --run-as 1:1)
}
