#!/bin/sh
# embedded.sh - what bring-up does where sandboxes are embedded
# shellcheck disable=SC2034,SC2154 # variables are shared with bring-up.sh and lib.sh

# Can this machine run a sandbox at all? One that does nothing says so before anything is made.
try_sandbox() {
	cat >"$work/try.yaml" <<-END
	version: 1
	filesystem_policy:
	  include_workdir: false
	  read_only: ["/usr", "/bin", "/lib", "/lib64", "/etc", "/proc"]
	  read_write: ["/tmp"]
	landlock:
	  compatibility: "hard_requirement"
	process:
	  run_as_user: "${run_as%:*}"
	  run_as_group: "${run_as#*:}"
	END
	ask --workspace "$workspace" sandbox delete amap-try		# of a run that was killed here
	ask --workspace "$workspace" sandbox create --name amap-try --policy "$work/try.yaml" --detach --no-tty -- sleep 60
	words=$([ "$asked" -eq 0 ] || first_words)
	ask --workspace "$workspace" sandbox delete amap-try
	[ -z "$words" ] || refuse "$words"
}
preflight() {
	[ -z "$apply" ] || [ -z "$absent" ] || try_sandbox
}

look_image() { skip="embedded sandboxes run on this host's own system"; }
look_profile() { skip='embedded sandboxes have no provider'; }

# The embedded gateway's file is ours to make, once; nobody's file is ever edited.
look_gateway_config() {
	embedded_gateway "$home" >"$work/gateway.toml"
	[ -d "$AMAP_SANDBOX_DIR" ] || { plan make "$gateway_toml"; return 0; }
	must amap-put --mode 0600 "$gateway_toml" <"$work/gateway.toml" >"$work/said"
	case $(cat "$work/said") in
	present*) ;;
	'would create'*) plan make "$gateway_toml" ;;
	*) stop="$gateway_toml: says something else than this fleet needs; is it another fleet's? choose another AMAP_SANDBOX_DIR or move it away" ;;
	esac
}
do_gateway_config() {
	(umask 077 && mkdir -p "$AMAP_SANDBOX_DIR") || { stop="$AMAP_SANDBOX_DIR: cannot be made"; return; }
	must amap-put --mode 0600 --apply "$gateway_toml" <"$work/gateway.toml" >"$work/put"
	verb gateway-config || stop="$gateway_toml: not what it was written to say"
}

# $router_is: running or none.
router_state() {
	router_is=none
	"$docker" ps --filter 'name=^amap-router$' --format '{{.Names}}' </dev/null >"$work/out" 2>"$work/err" &&
		[ ! -s "$work/out" ] || router_is=running
}

# start_router plan|run: the command, shown or run.
start_router() {
	program=$(readlink -f "$(command -v amap-router)")
	router_mounts "$1"
	case $program in
	/usr/* | /bin/*) ;;		# every service has these
	*) printf '%s\tro\n' "${program%/*}" >>"$work/mounts" ;;
	esac
	"$1" 120 "$openshell" service start amap-router --mounts "$work/mounts" --restart unless-stopped \
	    ${owner:+--run-as "$owner"} -- "$program" --config "$home/router.json" run --interval 5
}

# While the roster is waited for: nothing to look at, a service starts again by itself.
look_at_start() { :; }
poll=0.1 polls=1800
