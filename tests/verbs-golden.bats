load common
load golden

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

# set_gateway BOXES FAILURES: the state of the gateway before a step; W/NAME/ID each.
set_gateway() {
	local box dir
	rm -rf "$FAKE_OPENSHELL/boxes"
	for box in $1; do
		dir=$FAKE_OPENSHELL/boxes/${box%/*}
		mkdir -p "$dir"
		printf '%s' "${box##*/}" >"$dir/id"
		printf Ready >"$dir/phase"
	done
	printf '%b' "$2" >"$FAKE_OPENSHELL/fail"
	: >"$FAKE_OPENSHELL/calls"
}

# The calls made, in the form that the recording has: a create by its first
# words, when the rest are those of the rendered script.
calls_made() {
	local line name words
	while IFS= read -r line; do
		if [[ $line == *$'\tsandbox\tcreate\t'* ]]; then
			name=${line#*$'\t--name\t'}
			name=${name%%$'\t'*}
			words=$(eval "set -- $(cat "$H/commands/create-$name.sh")"; shift; printf '\t%s' "$@")
			[ "$line" = "${line%%$'\t'*}$words" ] || echo "a create with other words than the script's"
			line=${line%%$'\t--name\t'*}$'\t<the rendered create vector>'
		fi
		printf '%s\n' "$line"
	done <"$FAKE_OPENSHELL/calls"
}

@test "the recorded story of an operator: 59 steps, their reports, calls, exits and files" {
	golden_setup
	cp "$G/verbs/fleet.json" fleet.json
	# One line a step: fields with \x1d, words with \x1f, lines with \x1e between them.
	jq -r '.[] | [.step, (.argv | join("\u001f")), (.exit | tostring), .stdout // "", .stderr // "",
	    (.provider_key_set | tostring), (.home_changed | tostring), .tree // "",
	    ([.files // {} | to_entries[] | .key + "=" + (.value // "")] | join("\u001f")),
	    ([.calls[] | ([if .key then "1" else "0" end] + .argv[1:] | join("\t"))] | join("\u001e")),
	    ([.openshell_before.boxes | to_entries[] | "\(.value.workspace)/\(.key)/\(.value.id)"] | join(" ")),
	    (.openshell_before | [if .fail_get then "get gateway unreachable" else empty end,
	    if .fail_list then "list gateway unreachable" else empty end,
	    if .fail_create then "create provider profile not found" else empty end,
	    if .fail_delete then "delete delete refused" else empty end] | map(. + "\\n") | join(""))
	    ] | join("\u001d")' "$G/verbs/steps.json" >steps
	[ "$(wc -l <steps)" -eq 59 ]
	while IFS=$'\x1d' read -r step argv want_rc file diagnostic key changed tree files calls boxes failures; do
		set_gateway "$boxes" "$failures"
		by_hand "$step"
		state_of >before
		IFS=$'\x1f' read -r -a words <<<"$argv"
		for w in "${!words[@]}"; do
			[ "${words[w]}" != /srv/amap ] || words[w]=$H
		done
		[ "${argv%$'\x1f'}" = "$argv" ] || words+=('')		# an empty last word
		unset ANTHROPIC_API_KEY
		[ "$key" != true ] || export ANTHROPIC_API_KEY=sk-secret
		rc=0
		amap "${words[@]}" >out 2>err || rc=$?
		[ "$rc" -eq "$want_rc" ] || fail_step "step $step: exit $rc"
		if grep -q sk-secret out err; then fail_step "step $step shows the key"; fi
		: >want
		[ -z "$file" ] || ours "$G/verbs/$file" >want
		if [ "$step" = 24 ]; then
			plain_drift want
			plain_drift out
		fi
		same_text "step $step" want out
		if [ -n "$diagnostic" ]; then
			[ -s err ] || fail_step "step $step: no diagnostic"
			if grep -qv '^amap-openshell [a-z1-]* *[a-z]*: ' err; then fail_step "step $step: a line that names no verb"; fi
		else
			[ ! -s err ] || fail_step "step $step: a diagnostic"
		fi
		tr '\036' '\n' <<<"$calls" | grep . >want.calls || :
		calls_made >calls
		diff want.calls calls || fail_step "step $step: calls"
		state_of >after
		if [ "$changed" = true ]; then
			if cmp -s before after; then fail_step "step $step changed nothing"; fi
		elif [ -z "$files" ]; then
			diff before after || fail_step "step $step changed the home"
		fi
		if [ -n "$tree" ]; then
			tree_of "$H" >have.tree
			diff "$G/verbs/$tree" have.tree || fail_step "step $step: tree"
		fi
		for pair in ${files//$'\x1f'/ }; do
			path=${pair%%=*} file=${pair#*=}
			if [ -z "$file" ]; then
				[ ! -e "$H/$path" ] || fail_step "step $step: $path is there"
			elif [ "$path" = providers/amap-claude-code.json ]; then
				# Its three descriptive texts are free.
				diff <(jq 'del(.display_name, .description, .credentials[].description)' "$G/verbs/$file") \
				    <(jq 'del(.display_name, .description, .credentials[].description)' "$H/$path")
			else
				same_file "step $step" "$G/verbs/$file" "$H/$path"
			fi
		done
	done <steps
}

@test "gateway-config: the recorded fragments, verdicts and exits" {
	golden_setup
	while IFS=$'\x1d' read -r name file path rows want_rc environment; do
		rm -rf "$CFG/openshell"
		mkdir -p "$CFG/openshell"
		[ -z "$file" ] || cp "$G/gateway-config/$file" "$CFG/openshell/gateway.toml"
		rc=0
		if [ -n "$environment" ]; then
			XDG_CONFIG_HOME='' HOME='' amap gateway-config >out 2>err || rc=$?
		else
			amap --home "$H" gateway-config >out 2>err || rc=$?
			jq -r '.fragment_lines_printed_first[]' "$G/gateway-config/cases.json" >fragment
			ours fragment | tr -s ' ' >want
			sed '/^gateway\.toml: /,$d' out | grep -v '^ *#' | grep . | tr -s ' ' | diff want -
		fi
		[ "$rc" -eq "$want_rc" ] || fail_step "$name: exit $rc"
		[ ! -s err ] || fail_step "$name: a diagnostic"
		jq -rn --arg p "$path" '$p' >line
		grep -qxF "$(ours line)" out || fail_step "$name: no line for the path"
		tr '\036' '\n' <<<"$rows" | grep . >want
		sed '1,/^gateway\.toml: /d; s/ (.*//' out | diff want - || fail_step "$name: rows"
	done < <(jq -r '.cases[] | [.case, .file // "", .path_line, ([.rows[] | (.[0] + "        ")[:8] + " " + .[1]] | join("\u001e")),
	    (.exit | tostring), .environment // ""] | join("\u001d")' "$G/gateway-config/cases.json")
}
