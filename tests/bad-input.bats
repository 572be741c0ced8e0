load common
load golden
load embedded

# What an operator does wrong, what the machine lacks, what a member does on
# purpose: each ends with a line that says what and what to do about it, and
# nothing half made. What a test of one program shows is not shown here again.

teardown() {
	embedded_teardown
}

# ---- standard descriptors ----

@test "no file takes the place of a standard descriptor that the caller closed" {
	run -2 --separate-stderr sh -c 'echo line | amap-redact --log log >&-'
	assert_equal "$stderr" 'amap-redact: standard output: Bad file descriptor'
	[ "$(grep -c line log)" -le 1 ]
	for program in "$BIN"/*; do
		[ -x "$program" ] || continue
		run -2 --separate-stderr sh -c '"$1" --version >&-' sh "$program"
		assert_equal "$stderr" "${program##*/}: standard output: Bad file descriptor"
		run -2 sh -c '"$1" --no-such-option <&- >&- 2>&-' sh "$program"
	done
}

# unheard VERB...: with a standard output that is full, and with none.
unheard() {
	run -2 --separate-stderr sh -c '"$@" >/dev/full' sh sh "$TOP/sh/amap-openshell" --home "$H" "${run_as[@]}" "$@"
	assert_regex "$stderr" '^[a-z -]*: (standard output|write error): [^
]*$'
	run -2 --separate-stderr sh -c '"$@" >&-' sh sh "$TOP/sh/amap-openshell" --home "$H" "${run_as[@]}" "$@"
	assert_equal "$stderr" 'amap-openshell: standard output: closed, and a report needs it'
}

@test "a verb whose report cannot be written says so and exits 2" {
	embedded_setup
	amap install --agent "$TOP/examples/agents/files.sh" --apply >/dev/null
	find "$H" -printf '%p %i %T@\n' | sort >before
	for verb in list install 'provision alpha' teardown verify bring-up gateway-config; do
		# shellcheck disable=SC2086
		unheard $verb
	done
	find "$H" -printf '%p %i %T@\n' | sort >after
	run -0 diff before after
	unheard bring-up --apply
	run -0 amap-sandbox sandbox list --all-workspaces --names
	assert_output ''
}

@test "a verb works with standard input and standard error closed" {
	embedded_setup
	run -0 sh -c 'exec "$@" <&- 2>&-' sh sh "$TOP/sh/amap-openshell" --home "$H" "${run_as[@]}" install --agent "$TOP/examples/agents/files.sh" --apply
	assert_line "created payload"
	run -0 sh -c 'exec "$@" <&- 2>&-' sh sh "$TOP/sh/amap-openshell" --home "$H" "${run_as[@]}" bring-up
	assert_equal "${lines[-1]}" 'dry run: nothing was changed; add --apply to bring AMAP up'
}

# ---- what is lacking ----

@test "embedded sandboxes without any agent are not even begun" {
	[ -z "$(PATH=/usr/local/bin:/usr/bin:/bin command -v claude)" ] || skip "there is a claude here"
	embedded_setup
	run -1 amap bring-up
	assert_line --partial 'preflight: --agent FILE: needed'
	run -1 --separate-stderr amap bring-up --apply
	assert_equal "$output" 'bring-up stopped at preflight: --agent FILE: needed, there is no claude below /usr; any command can be the agent, see amap-session(1)'
	for none in "$PWD/none" "$PWD" /dev/null; do
		run -1 --separate-stderr amap bring-up --agent "$none" --apply
		assert_equal "$output" "bring-up stopped at preflight: --agent $none: not a file that can be read"
	done
	[ ! -e "$H" ]
	amap install --agent "$TOP/examples/agents/files.sh" --apply
	run -0 amap bring-up
}

# ---- what was there before ----

@test "the embedded gateway's file of another version, or added to, is taken by what it means" {
	embedded_setup
	mkdir -m 700 "$AMAP_SANDBOX_DIR"
	cat >"$AMAP_SANDBOX_DIR/gateway.toml" <<-END
	# of another version
	amap.embedded = { home = "$H", workspaces = ["default"] }
	[openshell.drivers.docker]
	enable_bind_mounts = true
	allow_driver_config = true	# wherever
	resource_admission.enabled = false
	END
	cp "$AMAP_SANDBOX_DIR/gateway.toml" kept
	run amap bring-up
	assert_line 'stage 2/7 gateway-config: would run'
	run -0 amap bring-up --agent "$TOP/examples/agents/files.sh" --apply
	run -0 cmp kept "$AMAP_SANDBOX_DIR/gateway.toml"
}
