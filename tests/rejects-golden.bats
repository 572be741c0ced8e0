load common
load golden

@test "the recorded fleets that were rejected: by prepare and install, dry and applied, without a trace" {
	golden_setup
	[ "$(ls -d "$G"/reject-* | wc -l)" -eq 51 ]
	for c in "$G"/reject-*; do
		cp "$c/fleet.json" fleet.json 2>/dev/null || rm -f fleet.json
		for apply in '' --apply; do
			# shellcheck disable=SC2086
			for verb in "l1-kit prepare --home $H --fleet fleet.json --run-as 1000:1000 --image x" \
			    "--home $H --fleet fleet.json install"; do
				rc=0
				amap $verb $apply >out 2>err || rc=$?
				[ "$rc" -eq 1 ] && [ ! -s out ] && [ -s err ] || fail_step "$c: exit $rc"
				[ ! -e "$H" ] && [ ! -e "$CFG" ] || fail_step "$c: something was written"
			done
		done
	done
}
