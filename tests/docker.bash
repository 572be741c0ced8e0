# For the tests with a Docker engine: one of the test file's own, without a network or a registry.

# start_engine: in the test file's directory, from setup_file; skips where there can be none.
start_engine() {
	[ "$(id -u)" -eq 0 ] || skip "only root can start a Docker engine"
	command -v dockerd >/dev/null || skip "no Docker engine"
	cd "$BATS_FILE_TMPDIR" || return
	export DOCKER_HOST=unix://$BATS_FILE_TMPDIR/docker.sock
	dockerd --iptables=false --bridge=none -H "$DOCKER_HOST" --data-root "$PWD/data" --exec-root "$PWD/exec" \
	    -p "$PWD/docker.pid" >docker.log 2>&1 3>&- &
	for _ in $(seq 300); do
		docker version >/dev/null 2>&1 && return
		sleep 0.1
	done
	skip "no Docker engine can run here"
}

stop_engine() {
	[ ! -s "$BATS_FILE_TMPDIR/docker.pid" ] || kill "$(cat "$BATS_FILE_TMPDIR/docker.pid")"
	for _ in $(seq 100); do
		[ -e "$BATS_FILE_TMPDIR/docker.pid" ] || break
		sleep 0.1
	done
}
