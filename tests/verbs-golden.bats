load common
load golden

# The state of the gateway before a step.
set_gateway() {
	rm -rf "$FAKE_OPENSHELL/boxes" "$FAKE_OPENSHELL/fail" "$FAKE_OPENSHELL/calls"
	: >"$FAKE_OPENSHELL/calls"
	jq -r '.boxes | to_entries[] | [.value.workspace, .key, .value.id] | @tsv' <<<"$1" |
	while IFS=$'\t' read -r w name id; do
		mkdir -p "$FAKE_OPENSHELL/boxes/$w/$name"
		printf '%s' "$id" >"$FAKE_OPENSHELL/boxes/$w/$name/id"
		printf Ready >"$FAKE_OPENSHELL/boxes/$w/$name/phase"
	done
	jq -r 'if .fail_get then "get gateway unreachable" else empty end,
	    if .fail_list then "list gateway unreachable" else empty end,
	    if .fail_create then "create provider profile not found" else empty end,
	    if .fail_delete then "delete delete refused" else empty end' <<<"$1" >"$FAKE_OPENSHELL/fail"
}

# What was done by hand before some steps.
by_hand() {
	case $1 in
	24) ours "$G/verbs/out/23-router.edited.json" >"$H/router.json" ;;
	26) jq -c . "$H/router.json" >one && cat one >"$H/router.json" ;;
	27) echo '[1]' >"$H/router.json" ;;
	28) printf '{' >"$H/router.json" ;;
	29) rm "$H/router.json" ;;
	41)
		sed -n 's/^0.* file //p' "$G/verbs/out/42.tree.txt" | while IFS= read -r file; do
			[ -e "$H/$file" ] || { mkdir -p "$H/$(dirname "$file")"; echo x >"$H/$file"; }
		done ;;
	esac
}

# The calls made, in the form that the recording has.
calls_made() {
	while IFS= read -r line; do
		case $line in
		*"	sandbox	create	"*)
			name=$(sed 's/.*	--name	\([^	]*\)	.*/\1/' <<<"$line")
			words=$(eval "set -- $(cat "$H/commands/create-$name.sh")"; shift; printf '\t%s' "$@")
			[ "$line" = "${line%%	*}$words" ] || echo "a create with other words than the script's"
			printf '%s\n' "${line%%	--name	*}	<the rendered create vector>" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done <"$FAKE_OPENSHELL/calls"
}

@test "the recorded story of an operator: 59 steps, their reports, calls, exits and files" {
	golden_setup
	cp "$G/verbs/fleet.json" fleet.json
	n=$(jq length "$G/verbs/steps.json")
	[ "$n" -eq 59 ]
	for ((at = 0; at < n; at++)); do
		s=$(jq -c ".[$at]" "$G/verbs/steps.json")
		step=$(jq -r .step <<<"$s")
		set_gateway "$(jq -c .openshell_before <<<"$s")"
		by_hand "$step"
		before=$(state_of)
		mapfile -t argv < <(jq -r '.argv[]' <<<"$s" | sed "s|^/srv/amap$|$H|")
		rc=0
		if [ "$(jq .provider_key_set <<<"$s")" = true ]; then
			ANTHROPIC_API_KEY=sk-secret amap "${argv[@]}" >out 2>err || rc=$?
		else
			amap "${argv[@]}" >out 2>err || rc=$?
		fi
		run -1 grep sk-secret out err
		assert_equal "$step: exit $rc" "$step: exit $(jq .exit <<<"$s")"
		file=$(jq -r '.stdout // empty' <<<"$s")
		: >want
		[ -z "$file" ] || ours "$G/verbs/$file" >want
		if [[ $step = 24 ]]; then
			plain_drift <want >want.plain && mv want.plain want
			plain_drift <out >out.plain && mv out.plain out
		fi
		same_text "step $step" want out
		if [ "$(jq -r '.stderr // empty' <<<"$s")" ]; then
			[ -s err ]
			run -1 grep -v "^amap-openshell $(jq -r '.argv | map(select(test("^(list|provision|install|deprovision|router-config|teardown|l1-kit)$")))[0]' <<<"$s")" err
		else
			run -1 grep . err
		fi
		jq -r '.calls[] | [(if .key then "1" else "0" end)] + .argv[1:] | join("\t")' <<<"$s" >want.calls
		calls_made >calls
		diff want.calls calls || { echo "step $step: calls"; return 1; }
		after=$(state_of)
		if [ "$(jq .home_changed <<<"$s")" = true ]; then
			[ "$before" != "$after" ] || { echo "step $step changed nothing"; return 1; }
		elif [ "$(jq '.files != null' <<<"$s")" != true ]; then
			[ "$before" = "$after" ] || { echo "step $step changed the home"; return 1; }
		fi
		file=$(jq -r '.tree // empty' <<<"$s")
		if [ -n "$file" ]; then
			tree_of "$H" >tree
			diff "$G/verbs/$file" tree || { echo "step $step: tree"; return 1; }
		fi
		while IFS=$'\t' read -r path file; do
			if [ -z "$file" ]; then
				[ ! -e "$H/$path" ] || { echo "step $step: $path is there"; return 1; }
			elif [ "$path" = providers/amap-claude-code.json ]; then
				# Its three descriptive texts are free.
				diff <(jq 'del(.display_name, .description, .credentials[].description)' "$G/verbs/$file") \
				    <(jq 'del(.display_name, .description, .credentials[].description)' "$H/$path")
			else
				same_file "step $step" "$G/verbs/$file" "$H/$path"
			fi
		done < <(jq -r '.files // {} | to_entries[] | [.key, .value // ""] | @tsv' <<<"$s")
	done
}

# run_steps CASE: the steps of a fleet case on a new home.
run_steps() {
	local c=$G/$1 at n s step rc file last
	rm -rf "$H"
	cp "$c/fleet.json" fleet.json
	n=$(jq '.steps | length' "$c/case.json")
	for ((at = 0; at < n; at++)); do
		s=$(jq -c ".steps[$at]" "$c/case.json")
		step=$(jq -r .step <<<"$s")
		case $step in
		record-last-dry)
			# The records between the first and the last are not in the list of steps.
			jq -r '.members[1:-1][]' "$c/case.json" | while IFS= read -r name; do
				amap l1-kit record --home "$H" "$name" "$(jq -r ".ids[\"$name\"]" "$c/case.json")" --apply >/dev/null || exit
			done ;;
		router-config-mode) chmod 600 "$H/router.json" ;;
		install-dry)
			chmod 644 "$H/router.json" 2>/dev/null || :
			check_files "$1"
			rm -rf "$H" ;;
		esac
		[ "$step" != record-first-dry ] || check_tree "$1" tree-prepared.txt
		mapfile -t argv < <(jq -r '.argv[]' <<<"$s" | sed "s|^/srv/amap$|$H|")
		rc=0
		amap "${argv[@]}" >out 2>err || rc=$?
		[ "$rc" -eq "$(jq .exit <<<"$s")" ] || { echo "$1 $step: exit $rc"; cat out err; return 1; }
		: >want
		file=$(jq -r '.stdout // empty' <<<"$s")
		[ -z "$file" ] || ours "$c/$file" >want
		same_text "$1 $step" want out || return 1
		if [ "$(jq -r '.stderr // empty' <<<"$s")" ]; then
			[ -s err ] || { echo "$1 $step: no diagnostic"; return 1; }
			check_pairs "$1" "$step" || return 1
		else
			[ ! -s err ] || { echo "$1 $step:"; cat err; return 1; }
		fi
	done
	same_file "$1" "$c/fleet-installed.json" "$H/fleet.json"
}

check_pairs() {
	case $2 in record-last-*) ;; *) return 0 ;; esac
	jq -r '.pairs // [] | .[] | if type == "array" then join(" -> ") else . end' "$G/$1/case.json" |
	while IFS= read -r pair; do
		grep -q -e "$pair" err || { echo "$1 $2: the diagnostic does not name $pair"; exit 1; }
	done
}

check_tree() {
	tree_of "$H" >tree
	diff "$G/$1/$2" tree || { echo "$1: $2"; return 1; }
}

check_files() {
	local c=$G/$1 file
	[ ! -e "$c/tree-recorded.txt" ] || check_tree "$1" tree-recorded.txt || return 1
	for file in membership.json selected.json router.json; do
		if [ -e "$c/$file" ]; then
			same_file "$1" "$c/$file" "$H/$file" || return 1
		else
			[ ! -e "$H/$file" ] || { echo "$1: $file is there"; return 1; }
		fi
	done
	(cd "$c" && ls policies/* commands/*) | while IFS= read -r file; do
		same_file "$1" "$c/$file" "$H/$file" || exit 1
	done
}

@test "the recorded fleets that were accepted, or refused at the last record: every step" {
	golden_setup
	for c in "$G"/*/case.json; do
		name=$(basename "$(dirname "$c")")
		case $(jq -r .kind "$c") in
		accepted | refused-when-recorded) run_steps "$name" ;;
		esac
	done
}

@test "the recorded fleets that were rejected: by prepare and install, dry and applied, without a trace" {
	golden_setup
	for c in "$G"/reject-*; do
		for apply in '' --apply; do
			cp "$c/fleet.json" fleet.json 2>/dev/null || rm -f fleet.json
			# shellcheck disable=SC2086
			run -1 --separate-stderr amap l1-kit prepare --home "$H" --fleet fleet.json --run-as 1000:1000 --image x $apply
			[ -z "$output" ]
			[ -n "$stderr" ]
			# shellcheck disable=SC2086
			run -1 --separate-stderr amap --home "$H" --fleet fleet.json install $apply
			[ -z "$output" ]
			[ -n "$stderr" ]
			[ ! -e "$H" ] && [ ! -e "$CFG" ]
		done
	done
}
