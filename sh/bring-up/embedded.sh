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
	! is_line amap-try "$work/names" || refuse 'amap-try: bring-up needs this name for itself; give the member another'
	ask --workspace "$workspace" sandbox delete amap-try		# of a run that was killed here
	ask --workspace "$workspace" sandbox create --name amap-try --policy "$work/try.yaml" --detach --no-tty -- sleep 60
	words=$([ "$asked" -eq 0 ] || first_words)
	ask --workspace "$workspace" sandbox delete amap-try
	[ -z "$words" ] || refuse "$words"
}
# Without an agent given the payload starts claude, and a sandbox ends with its agent.
has_agent() {
	[ -n "$agent" ] || [ -f "$home/payload/agent" ] || [ "$image" != amap-openshell-agent ] ||
	    grep -qs '^[[:space:]]*image' "$gateway_toml" ||
	    (PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin command -v claude >/dev/null)
}
preflight() {
	[ -z "$absent" ] || has_agent ||
		add_problem '--agent FILE: needed, there is no claude below /usr; any command can be the agent, see amap-session(1)'
	[ -z "$apply" ] || [ -z "$absent" ] || [ -n "$problem" ] || try_sandbox
}

look_image() { skip="embedded sandboxes run on this host's own system"; }
look_profile() { skip='embedded sandboxes have no provider'; }

# The embedded gateway's file is ours to make, once; nobody's file is ever edited.
# One that is there is taken by what it means: another version of us wrote it, or
# the operator added to it.
look_gateway_config() {
	embedded_gateway "$home" >"$work/gateway.toml"
	if [ ! -e "$gateway_toml" ] && [ ! -L "$gateway_toml" ]; then
		plan make "$gateway_toml"
	elif ! gateway_fits; then
		stop="$gateway_toml: says something else than this fleet needs; is it another fleet's? choose another AMAP_SANDBOX_DIR or move it away"
	fi
}
gateway_fits() {
	amap-probe-gateway --home "$home" --embedded "$gateway_toml" >"$work/checks" && amap-verdict "$work/checks" >"$work/verdict"
}
do_gateway_config() {
	(umask 077 && mkdir -p "$AMAP_SANDBOX_DIR") || { stop="$AMAP_SANDBOX_DIR: cannot be made"; return; }
	[ -e "$gateway_toml" ] || must amap-put --mode 0600 --apply "$gateway_toml" <"$work/gateway.toml" >"$work/put"
	verb gateway-config || stop="$gateway_toml: not what it was written to say"
}

# $router_is: running or none.
router_state() {
	router_is=none asked=0 asked_program=$docker
	"$docker" ps --filter 'name=^amap-router$' --format '{{.Names}}' </dev/null >"$work/out" 2>"$work/err" || asked=$?
	if [ "$asked" -ne 0 ]; then
		stop="\`ps\` failed: $(first_words)"
		return 1
	fi
	[ ! -s "$work/out" ] || router_is=running
}

# start_router plan|run: the command, shown or run.
start_router() {
	program=$(readlink -f "$(command -v amap-router)")
	if [ "$1" = plan ]; then
		: >"$work/mounts"		# the configuration may have to be written first
	else
		must amap-router --config "$home/router.json" mounts >"$work/mounts"
		ask service stop amap-router	# one that died and waits to be restarted does not run, but is there
	fi
	case $program in
	/usr/* | /bin/*) ;;		# every service has these
	*)
		printf '%s\tro\t/opt/amap/bin\n' "${program%/*}" >>"$work/mounts"
		program=/opt/amap/bin/${program##*/} ;;
	esac
	"$1" 120 "$openshell" service start amap-router --mounts "$work/mounts" --restart unless-stopped \
	    ${owner:+--run-as "$owner"} -- "$program" --config "$home/router.json" run --interval 5
}

# While the roster is waited for: nothing to look at, a service starts again by itself.
look_at_start() { :; }
poll=0.1 polls=1800
