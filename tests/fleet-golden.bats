# The recorded fleet cases: what the renderers print, byte for byte. Skipped
# unless AMAP_GOLDEN_DIR names the recorded data; the rules themselves are
# tested from our own data in the files of the single programs.
load common

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	[ -n "${AMAP_GOLDEN_DIR-}" ] || skip "AMAP_GOLDEN_DIR is not set"
	HOME_DIR=/srv/amap
}

# cases KIND: one line a case: directory, workspace, restart flag, then NAME=ID in the order of recording.
cases() {
	jq -r --arg kind "$1" 'select(.kind == $kind) |
	    "\(input_filename | rtrimstr("/case.json")) \(.restart_policy) \([.members[] as $m | "\($m)=\(.ids[$m])"] | join(" "))"' \
	    "$AMAP_GOLDEN_DIR"/*/case.json
}

# render CASE RESTART: the plan, the members, every policy and every script.
render() {
	flag=
	[ "$2" = false ] || flag=--restart-policy
	amap-fleet "$1/fleet.json" >plan
	amap-lanes --home "$HOME_DIR" <plan >members
	for policy in "$1"/policies/*.yaml; do
		name=${policy##*/} name=${name%.yaml}
		amap-render-policy --member "$name" --run-as 1000:1000 <members | cmp - "$policy"
		amap-render-create --member "$name" $flag <members | cmp - "$1/commands/create-$name.sh"
	done
	amap-render-policy --files --run-as 1000:1000 <members >files
	amap-render-create --files $flag <members >>files
	[ "$(grep -c '"path"' files)" = "$(find "$1/policies" "$1/commands" -type f | wc -l)" ]
}

# record WORKSPACE NAME=ID...: leaves membership.json
record() {
	workspace=$1
	shift
	for pair; do
		amap-membership record --workspace "$workspace" --name "${pair%%=*}" --id "${pair#*=}" membership.json >new
		mv new membership.json
	done
}

@test "every accepted case renders to the recorded bytes" {
	cases accepted >list
	[ "$(wc -l <list)" -eq 24 ]
	while read -r case restart pairs; do
		echo "case $case"
		rm -f membership.json
		render "$case" "$restart"
		workspace=$(sed 's/.*"workspace":"\([^"]*\)".*/\1/' plan)
		# shellcheck disable=SC2086	# a list of NAME=ID
		record "$workspace" $pairs
		cmp membership.json "$case/membership.json"
		amap-membership selected membership.json | cmp - "$case/selected.json"
		amap-fleet --membership membership.json "$case/fleet.json" | cmp - plan
		amap-render-router --home "$HOME_DIR" <plan | cmp - "$case/router.json"
		sed -n 's/^warning: one-sided //p' "$case/out/record-last-apply.txt" >want
		jq -r '.warnings[] | "\(.from) \(.to)"' plan | cmp - want
	done <list
}

@test "a fleet with a pair on both lanes renders, and has no router.json once it is whole" {
	cases refused-when-recorded >list
	[ "$(wc -l <list)" -eq 5 ]
	while read -r case restart pairs; do
		echo "case $case"
		rm -f membership.json
		render "$case" "$restart"
		# shellcheck disable=SC2086	# a list of NAME=ID
		record default $pairs
		amap-fleet --membership membership.json "$case/fleet.json" >plan
		run -1 --separate-stderr amap-render-router --home "$HOME_DIR" plan
		[ -z "$output" ]
		jq -r '.pairs[]' "$case/case.json" | sort >want
		printf '%s\n' "$stderr" | sed 's/^amap-render-router: \([^:]*\): .*/\1/' | sort | cmp - want
	done <list
}

@test "every rejected policy is refused with one line and nothing on standard output" {
	n=0
	for case in "$AMAP_GOLDEN_DIR"/reject-*; do
		echo "case $case"
		run -1 --separate-stderr amap-fleet "$case/fleet.json"
		[ -z "$output" ]
		[ "${#stderr_lines[@]}" -eq 1 ]
		n=$((n + 1))
	done
	[ "$n" -eq 51 ]
}
