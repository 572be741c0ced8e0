# Loaded by the tests that run a fleet in embedded sandboxes, for real. As root
# the fleet runs as a user of its own, as anybody else as the caller.

embedded_setup() {
	H=$BATS_TEST_TMPDIR/home
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/cfg AMAP_SANDBOX_DIR=$BATS_TEST_TMPDIR/boxes
	run_as=()
	[ "$(id -u)" -ne 0 ] || run_as=(--run-as 64123:64123)
	fleet_uid=$(id -u)
	[ "$fleet_uid" -ne 0 ] || fleet_uid=64123
}

amap() { sh "$TOP/sh/amap-openshell" --home "$H" "${run_as[@]}" "$@"; }

embedded_teardown() {
	[ -d "${AMAP_SANDBOX_DIR-}" ] || return 0
	amap-sandbox service stop amap-router || :
	amap-sandbox sandbox delete --all || :
} >/dev/null 2>&1

