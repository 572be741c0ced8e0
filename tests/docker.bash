# For the tests with a Docker engine: one of the test file's own, without a network or a registry.

# start_engine: in the test file's directory, from setup_file; fails where there can be none.
start_engine() {
	if [ "$(id -u)" -ne 0 ]; then
		NO_ENGINE="only root can start a Docker engine"
	elif ! command -v dockerd >/dev/null; then
		NO_ENGINE="no Docker engine"
	fi
	export NO_ENGINE
	[ -z "${NO_ENGINE-}" ] || return 1
	cd "$BATS_FILE_TMPDIR" || return
	export DOCKER_HOST=unix://$BATS_FILE_TMPDIR/docker.sock
	dockerd --iptables=false --bridge=none -H "$DOCKER_HOST" --data-root "$PWD/data" --exec-root "$PWD/exec" \
	    -p "$PWD/docker.pid" >docker.log 2>&1 3>&- &
	for _ in $(seq 300); do
		docker version >/dev/null 2>&1 && return
		sleep 0.1
	done
	NO_ENGINE="no Docker engine can run here"
	return 1
}

# needs_engine: in setup. A skip in setup_file would be a failure of teardown_file, to this bats.
needs_engine() {
	[ -z "${NO_ENGINE-}" ] || skip "$NO_ENGINE"
}

stop_engine() {
	[ ! -s "$BATS_FILE_TMPDIR/docker.pid" ] || kill "$(cat "$BATS_FILE_TMPDIR/docker.pid")"
	for _ in $(seq 100); do
		[ -e "$BATS_FILE_TMPDIR/docker.pid" ] || break
		sleep 0.1
	done
}
