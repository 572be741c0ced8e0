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
