load common
load golden

# case_steps CASE: the steps of a fleet case on a new home.
case_steps() {
	local c=case step argv want_rc file diagnostic name id rc words w
	rm -rf "$H" "$CFG" case
	ours_all "$G/$1" case
	cp "$c/fleet.json" fleet.json
	jq -r '.steps[] | [.step, (.argv | join("\u001f")), (.exit | tostring), .stdout // "", .stderr // ""]
	    | join("\u001d")' "$c/case.json" >steps
	jq -r '. as $c | .members[1:-1][] | "\(.) \($c.ids[.])"' "$c/case.json" >others
	jq -r '.pairs // [] | .[] | if type == "array" then join(" -> ") else . end' "$c/case.json" >pairs
	while IFS=$'\x1d' read -r step argv want_rc file diagnostic; do
		case $step in
		record-first-dry) check_tree "$1" tree-prepared.txt || return 1 ;;
		record-last-dry)
			# The records between the first and the last are not in the list of steps.
			while read -r name id; do
				amap l1-kit record --home "$H" "$name" "$id" --apply >/dev/null || return 1
			done <others ;;
		router-config-mode) chmod 600 "$H/router.json" ;;
		install-dry)
			[ ! -e "$H/router.json" ] || chmod 644 "$H/router.json"
			check_files "$1" || return 1
			rm -rf "$H" ;;
		esac
		IFS=$'\x1f' read -r -a words <<<"$argv"
		for w in "${!words[@]}"; do
			[ "${words[w]}" != /srv/amap ] || words[w]=$H
		done
		rc=0
		amap "${words[@]}" >out 2>err || rc=$?
		[ "$rc" -eq "$want_rc" ] || fail_step "$1 $step: exit $rc" || return 1
		same_text "$1 $step" "${file:+$c/}${file:-/dev/null}" out || return 1
		if [ -z "$diagnostic" ]; then
			[ ! -s err ] || fail_step "$1 $step: a diagnostic" || return 1
			continue
		fi
		[ -s err ] || fail_step "$1 $step: no diagnostic" || return 1
		case $step in
		record-last-*)
			while IFS= read -r name; do
				grep -q -e "$name" err || fail_step "$1 $step: $name is not named" || return 1
			done <pairs ;;
		esac
	done <steps
	cmp "$c/fleet-installed.json" "$H/fleet.json"
}

check_tree() {
	tree_of "$H" | diff "$G/$1/$2" - || { echo "$1: $2"; return 1; }
}

check_files() {
	local file
	[ ! -e case/tree-recorded.txt ] || check_tree "$1" tree-recorded.txt || return 1
	for file in membership.json selected.json router.json; do
		if [ -e "case/$file" ]; then
			cmp "case/$file" "$H/$file" || return 1
		else
			[ ! -e "$H/$file" ] || { echo "$1: $file is there"; return 1; }
		fi
	done
	diff -r case/policies "$H/policies" && diff -r case/commands "$H/commands"
}

cases() {
	not_sanitized "long, and the same programs on the same fleets as fleet-golden.bats, the same verbs as verbs-golden.bats"
	golden_setup
	grep -lE "\"kind\": \"$1\"" "$G"/*/case.json | sed 's|/case.json$||; s|.*/||' >cases
	[ "$(wc -l <cases)" -eq "$2" ]
}

@test "the recorded fleets that were accepted: every step, but for the one of fifty members" {
	cases accepted 24
	while IFS= read -r name; do
		[ "$name" = fifty-members ] || case_steps "$name"
	done < <(cat cases)
}

@test "the recorded fleet of fifty members: every step" {
	cases accepted 24
	case_steps fifty-members
}

@test "the recorded fleets that were refused at the last record: every step, and every pair named" {
	cases refused-when-recorded 5
	while IFS= read -r name; do
		case_steps "$name"
	done < <(cat cases)
}
