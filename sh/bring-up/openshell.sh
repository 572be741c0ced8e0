#!/bin/sh
# openshell.sh - what bring-up does on OpenShell: an image, a provider profile, a container for the router
# shellcheck disable=SC2034,SC2154 # variables are shared with bring-up.sh and lib.sh

# The kernel's table of sockets: a path that somebody listens on has the accept flag.
listening() { awk -v p="$1" '$4 == "00010000" && $8 == p { found = 1 } END { exit !found }' /proc/net/unix; }
preflight() {
	socket=$home/run/interceptor.sock
	if [ ${#socket} -gt 107 ]; then
		add_problem "$socket: the path of a socket has at most 107 bytes, this one has ${#socket}; choose a shorter --home"
	elif ! listening "$socket"; then
		add_problem "$socket: nobody listens, so the gateway would refuse every sandbox; start the mount interceptor on this socket, see amap-render-gateway(1)"
	fi
	if [ -n "$absent" ] && [ -z "$provider_key" ]; then
		add_problem "$absent: to be created, and there is no key; set ANTHROPIC_API_KEY or use --api-key-stdin; nothing was changed"
	fi
}

image_built=''
look_image() {
	asked=0 asked_program=$docker
	labels=$("$docker" image inspect --format '{{json .Config.Labels}}' "$image" </dev/null 2>"$work/err") || asked=$?
	if [ "$asked" -ne 0 ] && ! grep -qi 'no such image' "$work/err"; then
		stop="\`docker image inspect\` failed: $(first_words)"
		return
	fi
	if [ "$(printf '%s' "$labels" | amap-field amap-openshell.claude-code-version amap-openshell.run-as 2>/dev/null)" \
	    = "$version	$run_as" ]; then
		skip='both labels match'
	else
		build_image plan
	fi
}
do_image() {
	build_image run || return 0
	image_built=yes
}
build_image() {
	"$1" 3600 "$docker" build --build-arg "CLAUDE_CODE_VERSION=$version" --build-arg "SANDBOX_UID=${run_as%:*}" \
	    --build-arg "SANDBOX_GID=${run_as#*:}" --label "amap-openshell.claude-code-version=$version" \
	    --label "amap-openshell.run-as=$run_as" -t "$image" "$top/image/"
}

# Read only: nobody's gateway.toml is ever edited.
look_gateway_config() { [ -n "$apply" ] || do_gateway_config; }
do_gateway_config() {
	verb gateway-config ||
		stop="${gateway_toml:-gateway.toml}: the settings must be PRESENT; merge them and restart the gateway yourself"
}

# The profile names the programs that may use the key by their real paths, which
# only the built image can tell.
profile=providers/amap-claude-code.json
# shellcheck disable=SC2016 # the shell in the image expands it
paths_script='printf "node=%s\nclaude=%s\n" "$(readlink -f "$(command -v node)")" "$(readlink -f "$(command -v claude)")"'

# compare_profile: $copy is absent, equal or differs; or $stop says why not.
compare_profile() {
	ask --workspace "$workspace" provider list-profiles -o json
	if [ "$asked" -ne 0 ]; then
		stop="\`provider list-profiles\` failed: $(first_words)"
		return 1
	fi
	mv "$work/out" "$work/profiles"
	copy=$(amap-profile compare "$home/$profile" "$work/profiles" 2>"$work/err") && return 0
	stop=$(first_words)
	return 1
}

look_profile() {
	if [ -f "$home/$profile" ] && [ -z "$image_built" ]; then
		compare_profile || return 0
		if [ "$copy" = equal ]; then
			skip="the gateway's copy is equal to the rendered one"
			return
		fi
	fi
	plan "$docker" run --rm --network none --entrypoint sh "$image" -c "$paths_script"
	plan "$prog" l1-kit profile --home "$home" --binary NODE --binary CLAUDE --apply
	plan "$openshell" --workspace "$workspace" provider profile import -f "$home/$profile"
}
do_profile() {
	run 300 "$docker" run --rm --network none --entrypoint sh "$image" -c "$paths_script" || return 0
	grep . "$work/out" >"$work/paths" || :
	node=$(sed -n 's/^node=//p' "$work/paths")
	claude=$(sed -n 's/^claude=//p' "$work/paths")
	if [ "$(cut -d = -f 1 "$work/paths" | sort | paste -s -d ' ')" != 'claude node' ]; then
		stop="the programs in $image: not told as the two lines node= and claude="
		return
	fi
	if ! verb l1-kit profile --home "$home" --binary "$node" --binary "$claude" --apply; then
		stop=$(last_of_verb)
		return
	fi
	compare_profile || return 0
	case $copy in
	equal) return ;;
	absent)
		# The linter of OpenShell 0.1.2 rejects a profile whose ID is there, so only here.
		change profile lint -f "$home/$profile" && change profile import -f "$home/$profile" || return 0 ;;
	differs)
		if ! amap-profile update "$home/$profile" "$work/profiles" >"$work/update.json" 2>"$work/err"; then
			stop=$(first_words)
			return
		fi
		change profile update amap-claude-code -f "$work/update.json" || return 0 ;;
	esac
	compare_profile || return 0
	[ "$copy" = equal ] || stop="the gateway's copy of the provider profile is still not the rendered one ($copy)"
}
change() {
	printf '+ %s provider %s\n' "$openshell" "$*" >>"$work/said"
	run 120 "$openshell" --workspace "$workspace" provider "$@"
}

# $router_is: running, none, or the state that docker has for it.
router_state() {
	router_is=none
	if ! "$docker" ps -a --filter 'name=^amap-router-local$' --format '{{.Names}} {{.State}}' \
	    </dev/null >"$work/out" 2>"$work/err"; then
		asked=1 asked_program=$docker
		stop="\`docker ps\` failed: $(first_words)"
		return 1
	fi
	state=$(sed -n 's/^amap-router-local //p' "$work/out")
	router_is=${state:-none}
	# Not while one that was started here comes up: then its crash is told.
	case $started:$router_is in
	:running | :none | ?*:*) ;;
	*) stop="the container amap-router-local is $router_is; look at its logs, then remove it"; return 1 ;;
	esac
}

# start_router plan|run: the commands, shown or run.
start_router() {
	if [ "$router" = ours ]; then
		"$1" 3600 "$sh_dir/router-start.sh" --detach --config "$home/router.json" --user "$run_as" \
		    --image amap-router-local --name amap-router-local --docker "$docker"
	else
		"$1" 3600 "$router/docker/build.sh" &&
			"$1" 300 "$router/docker/run.sh" --config "$home/router.json" --detach
	fi
	[ "$1" = run ] && [ -z "$stop" ] && router_state || return 0
	[ "$router_is" = running ] || stop=$(crash_note)
}

# One line on a container that does not run: its state, its exit code, its last words.
crash_note() {
	code=$("$docker" inspect --format '{{.State.ExitCode}}' amap-router-local </dev/null 2>/dev/null) || code=unreadable
	if "$docker" logs --tail 50 amap-router-local </dev/null >"$work/out" 2>"$work/err"; then
		words=$(cat "$work/out" "$work/err" | grep '[^[:space:]]' | tail -n 1 | tr -c '[:print:]\n' '?' | cut -c 1-200)
	else
		words=unreadable
	fi
	printf 'the container amap-router-local is %s, exit code %s: %s' "$router_is" "$code" "${words:-no log}"
}

# While the roster is waited for: one that has crashed is not waited for.
look_at_start() {
	router_state || return 1
	case $router_is in restarting | exited | dead) stop=$(crash_note); return 1 ;; esac
}
poll=5 polls=36
