# Loaded by the tests that make sandboxes: state in the test's own directory,
# and nothing left behind, whatever the test did.

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	AMAP_SANDBOX_DIR=$BATS_TEST_TMPDIR/state
	export AMAP_SANDBOX_DIR
	unset OPENSHELL_WORKSPACE OPENSHELL_PROVISION_TIMEOUT XDG_STATE_HOME
	# whom the agents run as: root's sandboxes need somebody else
	if [ "$(id -u)" -eq 0 ]; then run_as=1000:1000; else run_as=$(id -u):$(id -g); fi
}

teardown() {
	for unit in "$AMAP_SANDBOX_DIR"/sandboxes/* "$AMAP_SANDBOX_DIR"/services/*; do
		[ -d "$unit" ] || continue
		name=${unit##*/}
		case $unit in
		*/services/*) amap-sandbox service delete "$name" ;;
		*) amap-sandbox --workspace "${name%%--*}" sandbox delete "${name#*--}" ;;
		esac >/dev/null 2>&1 || :
	done
}

# box NAME [OPTION...]: a sandbox whose main process sleeps.
box() {
	name=$1
	shift
	amap-sandbox sandbox create --name "$name" --detach --no-tty "$@" -- sleep 600
}

# inside NAME COMMAND...
inside() {
	name=$1
	shift
	amap-sandbox sandbox exec --name "$name" --no-tty --no-login-shell --timeout 60 -- "$@" </dev/null
}

# squash: standard input without what the error report puts between the words.
squash() { sed 's/[│×[:space:]]//g' | tr -d '\n'; }

# refused TEXT COMMAND...: exits 1, and its report holds TEXT.
refused() {
	want=$(printf '%s' "$1" | squash)
	shift
	rc=0
	"$@" >out 2>err </dev/null || rc=$?
	cat out err
	[ "$rc" -eq 1 ]
	case $(squash <err) in *"$want"*) ;; *) return 1 ;; esac
}

# fleet NAME...: a home with these members, admitted by the embedded gateway.
fleet() {
	home=$BATS_TEST_TMPDIR/home
	mkdir -p "$home/payload" "$home/roster" "$AMAP_SANDBOX_DIR"
	chmod 700 "$AMAP_SANDBOX_DIR"
	list=$(printf '"%s",' "$@")
	printf '{"version":1,"workspace":"default","fleet_domain":"agents.example.org","default_peers":[%s]}\n' "${list%,}" >"$home/fleet.json"
	for member in "$@"; do
		mkdir -p "$home/instances/$member/inbox" "$home/instances/$member/peer" "$home/instances/$member/outbox"
		echo secret >"$home/instances/$member/inbox/file"
	done
	[ "$(id -u)" -ne 0 ] || chown -R "$run_as" "$home"
	cat >"$AMAP_SANDBOX_DIR/gateway.toml" <<-END
	[openshell.drivers.docker]
	allow_driver_config = true
	enable_bind_mounts = true
	[amap.embedded]
	home = "$home"
	END
	amap-fleet "$home/fleet.json" | amap-lanes --home "$home" >members
}

# driver NAME: its rows as a driver config.
driver() {
	jq -c --arg name "$1" 'select(.name == $name) | { docker: { mounts: [.rows[] | { type: "bind", source, target, read_only }] } }' members
}

# member NAME [OPTION...]: the sandbox of a member with its lanes and its policy.
member() {
	amap-render-policy --member "$1" --run-as "$run_as" <members >"$1.yaml"
	name=$1
	shift
	box "$name" --policy "$name.yaml" --driver-config-json "$(driver "$name")" "$@"
}
