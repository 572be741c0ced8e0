load common

@test "amap-membership answers the usual options" {
	usage_is_sound amap-membership
	for arguments in "" "nothing" "list a b" "record --name a --id b" "record --workspace w --name a" "remove" \
	    "id" "pending" "stray" "list --fleet x" "remove --id x a" "check --id x"; do
		# shellcheck disable=SC2086	# arguments
		run -2 --separate-stderr amap-membership $arguments
		[[ $stderr == "usage: amap-membership "* ]]
	done
}

record() {
	amap-membership record --workspace "${3:-w}" --name "$1" --id "$2" m >m.new && mv m.new m
}

@test "a record is sorted by name, and the same triple changes nothing" {
	record bob id-2
	record alice id-1
	record carol id-3
	run -0 cat m
	assert_output '{
  "version": 1,
  "members": [
    {
      "workspace": "w",
      "name": "alice",
      "id": "id-1"
    },
    {
      "workspace": "w",
      "name": "bob",
      "id": "id-2"
    },
    {
      "workspace": "w",
      "name": "carol",
      "id": "id-3"
    }
  ]
}'
	cp m before
	record bob id-2
	cmp m before
	run -0 amap-membership list m
	assert_output "alice id-1
bob id-2
carol id-3"
	run -0 amap-membership id bob m
	assert_output id-2
	run -0 amap-membership check m
	assert_output ""
	amap-membership list <m | cmp - <(amap-membership list m)
	run -0 amap-membership selected m
	assert_output '{
  "schema": 1,
  "selected": [
    {
      "slug": "alice"
    },
    {
      "slug": "bob"
    },
    {
      "slug": "carol"
    }
  ],
  "not_selected": []
}'
}

@test "a name under another ID, an ID under another name, another workspace: refused, both named" {
	record alice id-1
	run -1 --separate-stderr record alice id-2
	assert_equal "$stderr" "amap-membership: m: alice is recorded with the ID id-1, not id-2; deprovision it first"
	run -1 --separate-stderr record bob id-1
	assert_equal "$stderr" "amap-membership: m: the ID id-1 belongs to alice already"
	run -1 --separate-stderr record bob id-2 x
	assert_equal "$stderr" "amap-membership: m: its members are in workspace \"w\", not in \"x\""
	run -2 --separate-stderr record Bob id-2
	assert_equal "$stderr" "amap-membership: --name \"Bob\": it holds a character other than a-z, 0-9 and \"-\""
	run -2 --separate-stderr record bob "id 2"
	assert_equal "$stderr" "amap-membership: --id \"id 2\": it holds white space or an unprintable character"
	run -2 --separate-stderr record bob ""
	assert_equal "$stderr" "amap-membership: --id \"\": it is empty"
	run -2 --separate-stderr record bob $'\xe2\x80\x8b'
	run -2 --separate-stderr record bob $'\xff'
}

@test "removing takes one member out, and the last one leaves a document that is there" {
	record alice id-1
	record bob id-2
	amap-membership remove alice m >n
	run -0 amap-membership list n
	assert_output "bob id-2"
	amap-membership remove bob n >m
	run -0 cat m
	assert_output '{
  "version": 1,
  "members": []
}'
	run -0 amap-membership check m
	run -1 amap-membership remove bob m
	assert_output "amap-membership: m: bob is not recorded"
	run -1 amap-membership id bob m
	assert_output "amap-membership: m: bob is not recorded"
}

@test "absent and empty differ: only record, pending and stray begin without a file" {
	printf '{"workspace":"w","fleet_domain":"d","groups":{"g":["a","b"]}}' >fleet.json
	for command in check list selected "id a" "remove a"; do
		# shellcheck disable=SC2086	# a command
		run -1 --separate-stderr amap-membership $command none
		[ -z "$output" ]
		assert_equal "$stderr" "amap-membership: none: No such file or directory"
	done
	run -1 amap-membership pending --fleet fleet.json none
	assert_output "a
b"
	run -0 amap-membership stray --fleet fleet.json none
	assert_output ""
	record b id-b
	record z id-z
	run -1 amap-membership pending --fleet fleet.json m
	assert_output a
	run -1 amap-membership stray --fleet fleet.json m
	assert_output z
	amap-membership remove z m >n
	record a id-a
	run -0 amap-membership pending --fleet fleet.json m
	assert_output ""
	run -2 --separate-stderr amap-membership pending --fleet none m
	assert_equal "$output$stderr" "amap-membership: none: No such file or directory"
}

@test "the record is read strictly" {
	entry='{"workspace":"w","name":"a","id":"i"}'
	n=0
	while IFS='	' read -r want text; do
		n=$((n + 1))
		printf '%s' "${text//ENTRY/$entry}" >m
		run -1 --separate-stderr amap-membership list m
		assert_equal "$text: $output$stderr" "$text: amap-membership: m: $want"
	done <<'END'
it is no JSON object	[]
line 1: a key that stands twice in one object: "version"	{"version":1,"version":1,"members":[]}
extra: no such key	{"version":1,"members":[],"extra":1}
version: it is not 1	{"members":[]}
version: it is not 1	{"version":true,"members":[]}
version: it is not 1	{"version":2,"members":[]}
members: it is no list	{"version":1}
members: it is no list	{"version":1,"members":{}}
members: entry 1 is no object	{"version":1,"members":["a"]}
members: entry 2: note: no such key	{"version":1,"members":[ENTRY,{"workspace":"w","name":"b","id":"j","note":""}]}
members: entry 1: workspace, name and id must be strings	{"version":1,"members":[{"workspace":"w","name":"a"}]}
members: entry 1: workspace, name and id must be strings	{"version":1,"members":[{"workspace":"w","name":"a","id":7}]}
members: entry 1: workspace, name and id must be strings	{"version":1,"members":[{"workspace":"w","name":"a","id":"\u0000"}]}
members: entry 1: workspace "W": it holds a character other than a-z, 0-9 and "-"	{"version":1,"members":[{"workspace":"W","name":"a","id":"i"}]}
members: entry 1: name "a_b": it holds a character other than a-z, 0-9 and "-"	{"version":1,"members":[{"workspace":"w","name":"a_b","id":"i"}]}
members: entry 1: id "": it is empty	{"version":1,"members":[{"workspace":"w","name":"a","id":""}]}
members: entry 1: id "a\x09b": it holds white space or an unprintable character	{"version":1,"members":[{"workspace":"w","name":"a","id":"a\tb"}]}
members: entry 1: id "a\xc2\xa0b": it holds white space or an unprintable character	{"version":1,"members":[{"workspace":"w","name":"a","id":"a\u00a0b"}]}
members: a stands twice	{"version":1,"members":[ENTRY,{"workspace":"w","name":"a","id":"j"}]}
members: a and b have the same id i	{"version":1,"members":[ENTRY,{"workspace":"w","name":"b","id":"i"}]}
members: "w" and "x" are two workspaces; one fleet has one	{"version":1,"members":[ENTRY,{"workspace":"x","name":"b","id":"j"}]}
empty	
END
	[ "$n" -eq 22 ]
	printf '%s' '{"version":1,"members":[{"id":"caf\u00e9:/+=~","name":"a","workspace":"w"}]}' >m
	run -0 amap-membership list m
	assert_output "a café:/+=~"
}

@test "a link, a directory and a FIFO in place of the record are refused" {
	record a i
	ln -s m link
	run -1 amap-membership list link
	assert_output "amap-membership: link: a symbolic link where a file should stand"
	mkfifo fifo
	run -1 amap-membership list fifo
	assert_output "amap-membership: fifo: not a regular file"
	run -1 amap-membership list .
	run -2 sh -c 'amap-membership list <&-'
	run -2 sh -c 'amap-membership list m >/dev/full'
}
