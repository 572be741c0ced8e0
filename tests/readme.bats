load common

# The indented lines of a section of the README, as one script.
lines_of() {
	awk -v want="## $1" '/^## / { on = $0 == want } on && sub(/^    /, "")' "$TOP/README.md"
}

@test "every pipeline of the README works as it stands" {
	lines_of 'The pipelines, by hand' >pipelines
	[ "$(wc -l <pipelines)" -ge 9 ]
	ln -s "$TOP/examples" examples
	n=0
	while IFS= read -r line; do
		run -0 --separate-stderr bash -o pipefail -c "$line"
		[ -z "$stderr" ]
		case $line in mkdir*) continue ;; esac
		[ -n "$output" ]
		n=$((n + 1))
	done <pipelines
	[ "$n" -ge 9 ]
	assert_exists home/policies/alpha.yaml
	cmp home/policies/alpha.yaml home/policies/beta.yaml
}

@test "every directory that the README's tree names is there, and the other way round" {
	lines_of 'The tree' | sed -n 's,^\([a-z]*\)/ .*,\1,p' | sort >told
	(cd "$TOP" && git ls-files 2>/dev/null || find . -type f -printf '%P\n') |
	    sed -n 's,^\([a-z]*\)/.*,\1,p' | grep -vx build | sort -u >there
	run -0 diff told there
}

@test "every file that the README links to is there" {
	for path in $(sed -n 's/.*](\([^)]*\)).*/\1/p' "$TOP/README.md"); do
		assert_exists "$TOP/$path"
	done
}
