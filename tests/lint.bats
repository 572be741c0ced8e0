load common

# The shell scripts, by their first line: payload/ holds data as well.
scripts() {
	cd "$TOP" || return
	grep -lsZ -m 1 '^#!/bin/sh' sh/* sh/*/* payload/* examples/* examples/agents/* tests/fuzz/*.sh .ci/* | sort -z
}

@test "every script is clean under shellcheck -s sh" {
	scripts >list
	cd "$TOP"
	run -0 xargs -0 shellcheck -s sh <"$BATS_TEST_TMPDIR/list"
	assert_output ""
}

@test "every manual page is clean under mandoc -Tlint" {
	cd "$TOP"
	run -0 mandoc -Tlint -Wwarning man/*
	assert_output ""
}

@test "every program and every verb has a manual page" {
	for source in "$TOP"/bin/*.c; do
		name=$(basename "$source" .c)
		run -0 ls "$TOP"/man/"$name".1
	done
	run -0 ls "$TOP"/man/amap-openshell.1
	for verb in "$TOP"/sh/*.sh; do
		name=$(basename "$verb" .sh)
		case $name in lib | setup | check | demo) continue ;; esac
		case $name in
		router-start) run -0 grep -q "$name" "$TOP"/man/amap-router.1 ;;
		*) run -0 grep -qE "^\.It Cm $name( |\$)" "$TOP"/man/amap-openshell.1 ;;
		esac
	done
}

@test "every test that SECURITY.md names is there" {
	n=0
	while IFS=$'\t' read -r file name; do
		n=$((n + 1))
		run -0 grep -cF "@test \"$name\" {" "$TOP/tests/$file"
	done < <(perl -ne 'while (/`([a-z-]+\.bats)`: ((?:"[^"]+"(?:, )?)+)/g) { $f = $1; print "$f\t$_\n" for $2 =~ /"([^"]+)"/g }' "$TOP/docs/SECURITY.md")
	[ "$n" -ge 25 ]
}

@test "what only a longer check builds compiles as well" {
	cd "$TOP"
	for source in tests/fuzz/*.c tests/bench/*.c tests/tools/*.c; do
		run -0 cc -std=c11 -fsyntax-only -Wall -Wextra -Werror -D_GNU_SOURCE -DLIBBSD_OVERLAY \
		    -isystem /usr/include/bsd -Ilib "$source"
		assert_output ""
	done
}

@test "B85 no test asserts with a bare negation, which bats ignores" {
	run -1 grep -nE '^[[:space:]]*! ' "$TOP"/tests/*.bats
}

@test "B86 no program of a test goes on in the background with the descriptor that bats waits for" {
	run -1 sh -c 'grep -nE "(^|[^&])&\$" "$1"/tests/*.bats "$1"/tests/*.bash | grep -v "3>&-"' sh "$TOP"
}

@test "B13 no code hands a copy to a jv function that only looks" {
	run -1 grep -nE 'jv_(is_valid|get_kind|number_value|string_value)\(jv_copy' -r "$TOP"/bin "$TOP"/lib
}

@test "no program starts jq" {
	run -1 grep -rnE 'jq_compile|jq_init' "$TOP"/bin "$TOP"/lib
}

@test "fuzzing gives the readers that all rests on 30 seconds in the check, first, and no time means no time" {
	mkdir -p dir/tests/fuzz
	for source in "$TOP"/tests/fuzz/*.c; do
		target=dir/tests/fuzz/$(basename "$source" .c)
		printf '#!/bin/sh\necho "${0##*/} $1" >>"%s"\necho stat::number_of_executed_units: 7 >&2\n' "$PWD/ran" >"$target"
		chmod +x "$target"
	done
	seconds=$(sed -n 's/.*FUZZ_SECONDS=\([0-9]*\) fuzz$/\1/p' "$TOP/sh/check.sh")
	[ "$seconds" -gt 0 ]
	run -0 sh "$TOP/tests/fuzz/run.sh" "$seconds" dir
	assert_equal "$(grep -c '^ok fuzz .*: 7 inputs$' <<<"$output")" "$(ls "$TOP"/tests/fuzz/*.c | wc -l)"
	assert_equal "$(grep -c -- '-max_total_time=30$' ran)" 3
	for target in json fleet policy; do grep -qx -- "$target -max_total_time=30" ran; done
	assert_equal "$(grep -c -- "-max_total_time=$seconds\$" ran)" $(($(ls "$TOP"/tests/fuzz/*.c | wc -l) - 3))
	rm ran
	run -0 sh "$TOP/tests/fuzz/run.sh" 60 dir
	run -1 grep -v -- '-max_total_time=60$' ran
	rm ran
	run -0 sh "$TOP/tests/fuzz/run.sh" 0 dir
	run -1 grep -v -- '-runs=0$' ran
}
