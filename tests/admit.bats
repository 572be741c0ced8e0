load common

# walk CASES: an array of { name, home, fleet, proposed_operation, allowed,
# clauses, setup }; {HOME} stands for a fresh directory. A fleet that is an
# object is written as fleet.json, a string as it is, null not at all. The
# clauses are compared as a multiset, the decision and the status with them.
walk() {
	jq -c '.[] | .name, .home, (.fleet | type), .fleet, .proposed_operation, .allowed,
	    ([.clauses[]] | sort | join(" ")), [.setup[]? | (.remove // .symlink), .to]' "$1" >cases
	n=0
	while IFS= read -r name && IFS= read -r home && IFS= read -r kind && IFS= read -r fleet &&
	    IFS= read -r operation && IFS= read -r allowed && IFS= read -r clauses && IFS= read -r setup; do
		n=$((n + 1)) at=$BATS_TEST_TMPDIR/$n
		mkdir -p "$at/payload" "$at/roster"
		case $kind in
		'"object"') printf '%s\n' "$fleet" >"$at/fleet.json" ;;
		'"string"') jq -rn "$fleet" >"$at/fleet.json" ;;
		esac
		for member in $(amap-fleet "$at/fleet.json" 2>/dev/null | grep -o '"name":"[a-z0-9-]*"' | cut -d'"' -f4); do
			mkdir -p "$at/instances/$member/inbox" "$at/instances/$member/peer" "$at/instances/$member/outbox"
		done
		[ "$setup" = "[]" ] || eval "$(jq -rn --arg at "$at" "$setup"' as $s | range(0; $s | length; 2) |
		    @sh "rm -rf \($at + "/" + $s[.]);" + if $s[. + 1] then
		    @sh " ln -s \($at + "/" + $s[. + 1]) \($at + "/" + $s[.])" else "" end')"
		home=${home#\"} home=${home%\"}
		printf '%s' "${operation//'{HOME}'/$at}" >request
		rc=0
		amap-admit --home "${home//'{HOME}'/$at}" request >answer 2>err || rc=$?
		got=$(grep -o '"clause":"[^"]*"' answer | cut -d'"' -f4 | sort | tr '\n' ' ')
		if [ "\"${got% }\"" != "$clauses" ] || ! grep -q "^{\"allowed\":$allowed," answer || [ -s err ] ||
		    [ "$rc" -ne "$([ "$allowed" = true ] && echo 0 || echo 1)" ]; then
			printf 'case %s: status %s, expected %s %s, got:\n' "$name" "$rc" "$allowed" "$clauses"
			cat answer err
			return 1
		fi
	done <cases
	echo "$n cases"
}

@test "amap-admit answers the usual options" {
	usage_is_sound amap-admit
}

@test "every recorded case is decided as recorded, for the recorded reasons" {
	[ -n "${AMAP_GOLDEN_DIR-}" ] || skip "AMAP_GOLDEN_DIR is not set"
	run walk "$AMAP_GOLDEN_DIR/interceptor/cases.json"
	assert_output "126 cases"
}

@test "our own cases are decided for the reasons of the rule" {
	run walk "$DATA/admit/cases.json"
	assert_output "61 cases"
}

@test "the reason against a source holds the source as it was given" {
	printf '{"workspace":"lab","fleet_domain":"x","groups":{"g":["tom"]}}\n' >fleet.json
	printf '%s' '{"name":"tom","workspaceScope":{"workspace":"lab"},"spec":{"template":{"driverConfig":{"docker":{"mounts":[{"type":"bind","source":"/srv/caf\u00e9/x"}]}}}}}' >request
	run -1 amap-admit --home "$PWD" request
	assert_output '{"allowed":false,"reasons":[{"clause":"R7b","reason":"mounts[0].source: /srv/café/x is not one of the member'"'"'s own"}]}'
}

@test "a request that is not JSON has no decision" {
	printf '{"workspace":"lab","fleet_domain":"x","groups":{"g":["tom"]}}\n' >fleet.json
	run -2 --separate-stderr amap-admit --home "$PWD" <<<'{"name":"a","name":"b"}'
	[ -z "$output" ]
	assert_equal "$stderr" 'amap-admit: <stdin>: line 1: a key that stands twice in one object: "name"'
	run -2 --separate-stderr amap-admit --home "$PWD" </dev/null
	[ -z "$output" ]
	run -2 --separate-stderr sh -c 'amap-admit --home "$PWD" <&-'
	[ -z "$output" ]
}
