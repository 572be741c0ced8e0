# The stand-in for the gateway that other tests use: what spec openshell, section
# 15, says that one must do. The product never starts it.
load common

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export FAKE_OPENSHELL=$PWD/fake
	mkdir fake
	printf 'version: 1\nfilesystem_policy:\n  read_only:\n    - "/usr"\n' >policy
}

create() { openshell --workspace w sandbox create --name a "$@" -- true; }

@test "the product never names it" {
	run -1 grep -rnE 'tests/tools/openshell|FAKE_OPENSHELL' "$TOP"/sh "$TOP"/bin "$TOP"/lib "$TOP"/payload "$TOP"/image "$TOP"/examples
}

@test "--version, the workspace before the noun, status of a gateway that is not connected" {
	run -0 openshell --version
	assert_output --regexp '^openshell [0-9]+\.[0-9]+\.[0-9]+$'
	create
	run -0 openshell sandbox list --all-workspaces --names
	assert_output w/a
	run -0 openshell --workspace other sandbox list --names
	assert_output ''
	run -0 sh -c 'openshell status --output json | jq -r .status'
	assert_output connected
	echo no-gateway >fake/knows
	run -0 sh -c 'openshell status --output json | jq -r .status'
	assert_output not_configured
}

@test "errors are wrapped at 80 columns, the message in quotes" {
	printf 'a message that is so long that it cannot stand on one line of a terminal with "quotes" in it' >fake/deny
	run -1 --separate-stderr create
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" -gt 1 ]
	for line in "${stderr_lines[@]:1}"; do assert_regex "$line" '^  │ '; done
	[ "$(LC_ALL=C.UTF-8 wc -L <<<"$stderr")" -le 82 ]
	assert_regex "$(sed 's/^  │ //' <<<"$stderr" | tr -d '\n')" 'message: "a message .* \\"quotes\\" in it"$'
}

@test "a record stays after a create that ended in Error, a provider after one that was denied" {
	echo Error >fake/create-phase
	run -1 create
	run -0 sh -c 'openshell --workspace w sandbox get a --output json | jq -r .phase'
	assert_output Error
	echo no >fake/deny
	run -1 env ANTHROPIC_API_KEY=k openshell sandbox create --name b --provider p --auto-providers
	[ -e fake/providers/p ] && [ ! -e fake/boxes/default/b ]
}

@test "a new UUID for each create; a second of one name gets the hint; an unknown driver key stores nothing" {
	create
	first=$(cat fake/boxes/w/a/id)
	run -1 --separate-stderr create
	assert_equal "${#stderr_lines[@]} ${stderr_lines[1]}" '2 hint: delete it first with: openshell sandbox delete a'
	openshell --workspace w sandbox delete a
	create
	[ "$(cat fake/boxes/w/a/id)" != "$first" ]
	assert_regex "$first" '^[0-9a-f]{8}-[0-9a-f-]{27}$'
	run -1 openshell sandbox create --name c --driver-config-json '{"docker":{"other":1}}'
	assert_output --partial 'other'
	[ ! -e fake/boxes/default/c ]
}

@test "--policy-only has a baseline path and a provider's rule more; the two shapes of a list; --restart-policy when it is known" {
	create --policy policy
	run -0 openshell --workspace w sandbox get a --policy-only
	assert_line '    - /app'
	assert_line --regexp '^  _provider_'
	run -0 sh -c 'openshell sandbox list --all-workspaces -o json | jq -r ".[].name"'
	assert_output a
	echo object-list >fake/knows
	run -0 sh -c 'openshell sandbox list --all-workspaces -o json | jq -r ".sandboxes[].name"'
	assert_output a
	run -2 openshell sandbox create --name b --restart-policy on-failure
	echo restart-policy >fake/knows
	run -0 openshell sandbox create --name b --restart-policy on-failure
}

@test "exec reads its standard input to the end, and has the command's status, 124 after its time, 1 when not Ready" {
	create
	run -0 sh -c '{ openshell --workspace w sandbox exec --name a -- true; wc -c; } <"$1"' sh policy
	assert_output 0
	run -7 openshell --workspace w sandbox exec --name a -- sh -c 'exit 7' </dev/null
	run -124 openshell --workspace w sandbox exec --name a --timeout 0.1 -- sleep 9 </dev/null
	printf Stopped >fake/boxes/w/a/phase
	run -1 openshell --workspace w sandbox exec --name a -- true </dev/null
}
