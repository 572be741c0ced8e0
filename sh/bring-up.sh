#!/bin/sh
# bring-up - from a policy to a running, verified fleet, in seven stages
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='bring-up [--claude-code-version VERSION] [--api-key-stdin] [--agent FILE] [--apply]'
apply='' version=${CLAUDE_CODE_VERSION-} key_from='' agent=''
while [ $# -gt 0 ]; do
	case $1 in
	--apply) apply=--apply ;;
	--agent) take_value "$@"; agent=$value; shift ;;
	--api-key-stdin) key_from=stdin ;;
	--claude-code-version) take_value "$@"; version=$value; shift ;;
	*) verb_usage "$1: unexpected" ;;
	esac
	shift
done

# ---- how it ends ----

# The last line says how bring-up ended, whatever ended it: a stage that stops,
# a refusal of preflight, or a program that could not go on.
stage=preflight ended=''
last_line() {
	status=$?
	[ -n "$ended" ] || printf 'bring-up stopped at %s: %s\n' "$stage" "${last_words:-exit status $status}" | clean
	exec >&- 2>&-
	wait
	rm -rf "$work"
}

# Nothing is printed that holds the key: neither these lines of preflight ...
clean() {
	amap-redact --secrets-fd 3 3<<-END
	$provider_key
	END
}
warn() {
	last_words=$*
	printf '%s: %s\n' "$label" "$*" | clean >&2
}
# ... nor, from redact [--log FILE] on, what anybody else says.
redact() {
	mkfifo "$work/out.fifo" "$work/err.fifo" || die 'no scratch FIFO'
	amap-redact --secrets-fd 3 "$@" <"$work/out.fifo" 9<&- 3<<-END &
	$provider_key
	END
	amap-redact --secrets-fd 3 "$@" <"$work/err.fifo" >&2 9<&- 3<<-END &
	$provider_key
	END
	exec >"$work/out.fifo" 2>"$work/err.fifo"
}

# ---- preflight: nothing is written by a refusal here ----

case $version in *[[:space:]]*) verb_usage "the version of Claude Code holds white space" ;; esac
if ! embedded && [ -z "$version" ]; then
	verb_usage 'which Claude Code? give --claude-code-version or set CLAUDE_CODE_VERSION'
fi
trap last_line EXIT
if [ -n "$key_from" ]; then
	IFS= read -r provider_key || :
	provider_key=$(printf '%s' "$provider_key" | sed 's/^[[:space:]]*//; s/[[:space:]]*$//')
	[ -n "$provider_key" ] || refuse '--api-key-stdin: standard input holds no key'
elif [ -n "$provider_key" ]; then
	key_from=environment
fi
[ -n "$apply" ] || redact
default_run_as
printf '{"end":0}\n' >"$work/nobody"
must amap-render-policy --files --run-as "$run_as" "$work/nobody" >"$work/nothing"
given_home=$home
find_home --new
[ -z "$apply" ] || [ ! -d "$home" ] || lock_home
[ "$router" = ours ] || [ -r "$router/router/reset.py" ] ||
	refuse "$router: not a checkout of the original router (router/reset.py); run $prog siblings --apply, or use --router ours"
if [ "$router" = ours ] && ! command -v amap-router >/dev/null; then
	refuse 'amap-router: not found; build this tree with make'
fi
policy=$fleet
if [ -e "$home/fleet.json" ] || [ -L "$home/fleet.json" ]; then
	policy=$home/fleet.json
fi
must amap-fleet ${home:+--no-follow} "$(readlink -f -- "$policy" || printf '%s' "$policy")" >"$work/plan"
read_plan
cp "$work/names" "$work/members"

# states: $work/states has NAME and settled, stopped, unrecorded, other or absent a
# line; an unknown one ends the run. Nobody but us starts an embedded sandbox again
# when the host was restarted; a gateway does that for its own.
states() {
	: >"$work/states"
	while IFS= read -r name; do
		find_sandbox "$name"
		recorded_id "$name"
		case $state:$recorded in
		unknown:*)
			last_words="UNKNOWN: $why"
			return 1 ;;
		unfit:*) warn "$name: $why"; return 1 ;;
		absent:*) printf '%s absent\n' "$name" ;;
		present:) printf '%s unrecorded\n' "$name" ;;
		present:"$id")
			case $phase in
			Stopped | Error) if embedded; then settled=stopped; else settled=settled; fi ;;
			*) settled=settled ;;
			esac
			printf '%s %s\n' "$name" "$settled" ;;
		*) printf '%s other\n' "$name" ;;
		esac >>"$work/states"
	done <"$work/members"
}
in_state() { awk -v s="$1" '$2 == s { print $1 }' "$work/states"; }

if ! states; then
	[ "$state" != unknown ] || printf 'UNKNOWN: %s\n' "$why" | clean
	exit 1
fi
problem=''
add_problem() {
	[ -n "$apply" ] || printf 'preflight: %s\n' "$1"
	[ -n "$problem" ] || problem=$1
}
# The kernel's table of sockets: a path that somebody listens on has the accept flag.
listening() { awk -v p="$1" '$4 == "00010000" && $8 == p { found = 1 } END { exit !found }' /proc/net/unix; }
if ! embedded && ! listening "$home/run/interceptor.sock"; then
	add_problem "$home/run/interceptor.sock: nobody listens, so the gateway would refuse every sandbox; set the host up with its example and --home $home"
fi
absent=$(in_state absent | paste -s -d ' ')
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
if embedded && [ -n "$absent" ] && [ -n "$apply" ]; then
	try_sandbox
fi
if ! embedded && [ -n "$absent" ] && [ -z "$provider_key" ]; then
	add_problem "$absent: to be created, and there is no key; set ANTHROPIC_API_KEY or use --api-key-stdin; nothing was changed"
fi
if [ -n "$apply" ]; then
	[ -z "$problem" ] || refuse "$problem"
	if [ ! -d "$home" ]; then
		mkdir -m 0755 "$home" || die "$home: cannot be made"
		lock_home
	fi
	evidence=$home/evidence
	if [ -L "$evidence" ] || { [ -e "$evidence" ] && [ ! -d "$evidence" ]; }; then
		refuse "$evidence: not a real directory; move it away"
	fi
	[ -d "$evidence" ] || mkdir -m 0700 "$evidence" || die "$evidence: cannot be made"
	run_id=$(date -u +%Y%m%dT%H%M%SZ)
	redact --log "$evidence/runner.log"
else
	case $key_from in
	stdin) printf 'key: given on stdin\n' ;;
	environment) printf 'key: %s is set\n' "\$ANTHROPIC_API_KEY" ;;
	*) printf 'key: none\n' ;;
	esac
fi

# ---- the stages: look decides what do_STAGE would do; $skip, $stop, or neither ----

# plan [SECONDS] COMMAND...: a command that would be run, for the dry run.
plan() {
	case $1 in [1-9]*) shift ;; esac
	printf '+ %s\n' "$*" >>"$work/commands"
}

# run SECONDS COMMAND...: what it prints is in $work/out, what went wrong in
# $stop, and a record of it among the evidence.
run() {
	seconds=$1
	shift
	asked=0 asked_program=$1
	case $stage in image) step=1 ;; profile) step=3 ;; *) step=6 ;; esac
	amap-record --dir "$evidence" --step "$step" --run "$run_id" --label "${1##*/} ${2-} ${3-}" --timeout "$seconds" \
	    --secrets-fd 3 -- "$@" 9<&- >"$work/out" 2>"$work/err" 3<<-END || asked=$?
	$provider_key
	END
	cat "$work/out" >>"$work/said"
	[ "$asked" -eq 0 ] || { stop=$(first_words); return 1; }
}

# verb ARGUMENT...: another verb of this command on this home, its words to $work/said.
verb() {
	set -- --home "$home" --fleet "$fleet" --image "$image" --run-as "$run_as" ${restart_policy:+"$restart_policy"} \
	    --openshell "$openshell" --docker "$docker" ${gateway_toml:+--gateway-toml "$gateway_toml"} \
	    --router "$router" --connector "$connector" "$@"
	status=0
	sh "$sh_dir/amap-openshell" "$@" </dev/null >"$work/said" 2>"$work/complaint" || status=$?
	return "$status"
}

# The last line that a verb said, complaint before report.
last_of_verb() {
	line=$(grep -v '^usage:' "$work/complaint" | tail -n 1)
	[ -n "$line" ] || line=$(tail -n 1 "$work/said")
	printf '%s' "${line:-exit status $status}"
}

image_built=''
look_image() {
	if embedded; then
		skip="embedded sandboxes run on this host's own system"
		return
	fi
	labels=$("$docker" image inspect --format '{{json .Config.Labels}}' "$image" </dev/null 2>/dev/null) || labels='{}'
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

# The embedded gateway's file is ours to make, once; nobody's file is ever edited.
look_gateway_config() {
	if ! embedded; then
		[ -n "$apply" ] || check_gateway
		return 0
	fi
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
	if embedded; then
		(umask 077 && mkdir -p "$AMAP_SANDBOX_DIR") || { stop="$AMAP_SANDBOX_DIR: cannot be made"; return; }
		must amap-put --mode 0600 --apply "$gateway_toml" <"$work/gateway.toml" >"$work/put"
	fi
	check_gateway
}
check_gateway() {
	verb gateway-config ||
		stop="${gateway_toml:-gateway.toml}: the settings must be PRESENT; merge them and restart the gateway yourself"
}

look_install() { plan "$prog" install ${agent:+--agent "$agent"} --apply; }
do_install() { verb install ${agent:+--agent "$agent"} --apply || stop=$(last_of_verb); }

# The profile names the programs that may use the key by their real paths, which
# only the built image can tell.
profile=$home/providers/amap-claude-code.json
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
	copy=$(amap-profile compare "$profile" "$work/profiles" 2>"$work/err") && return 0
	stop=$(first_words)
	return 1
}

look_profile() {
	if embedded; then
		skip='embedded sandboxes have no provider'
		return
	fi
	if [ -f "$profile" ] && [ -z "$image_built" ]; then
		compare_profile || return
		if [ "$copy" = equal ]; then
			skip="the gateway's copy is equal to the rendered one"
			return
		fi
	fi
	plan "$docker" run --rm --network none --entrypoint sh "$image" -c "$paths_script"
	plan "$prog" l1-kit profile --home "$home" --binary NODE --binary CLAUDE --apply
	plan "$openshell" --workspace "$workspace" provider profile import -f "$profile"
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
	compare_profile || return
	case $copy in
	equal) return ;;
	absent)
		# The linter of OpenShell 0.1.2 rejects a profile whose ID is there, so only here.
		change profile lint -f "$profile" && change profile import -f "$profile" || return ;;
	differs)
		if ! amap-profile update "$profile" "$work/profiles" >"$work/update.json" 2>"$work/err"; then
			stop=$(first_words)
			return
		fi
		change profile update amap-claude-code -f "$work/update.json" || return ;;
	esac
	compare_profile || return
	[ "$copy" = equal ] || stop="the gateway's copy of the provider profile is still not the rendered one ($copy)"
}
change() {
	printf '+ %s provider %s\n' "$openshell" "$*" >>"$work/said"
	run 120 "$openshell" --workspace "$workspace" provider "$@"
}

look_provision() {
	if ! states; then
		stop=$last_words
		return
	fi
	if [ -z "$(awk '$2 != "settled"' "$work/states")" ]; then
		skip='every member is present and recorded'
		return
	fi
	awk '$2 != "settled" { print $1 }' "$work/states" >"$work/to-do"
	while IFS= read -r name; do
		if grep -qx "$name stopped" "$work/states"; then
			plan "$openshell" --workspace "$workspace" sandbox start "$name"
		else
			plan "$prog" provision "$name" --apply
		fi
	done <"$work/to-do"
}
do_provision() {
	while IFS= read -r name <&4; do
		if grep -qx "$name stopped" "$work/states"; then
			ask --workspace "$workspace" sandbox start "$name"
			cp "$work/out" "$work/said"
			[ "$asked" -eq 0 ] || stop="$name: \`sandbox start\` failed: $(first_words)"
		elif grep -qx "$name absent" "$work/states" && [ -n "$provider_key" ]; then
			ANTHROPIC_API_KEY=$provider_key verb provision "$name" --apply || stop=$(last_of_verb)
		else
			verb provision "$name" --apply || stop=$(last_of_verb)
		fi
		cat "$work/said" >>"$work/all-said"
		[ -z "$stop" ] || break
	done 4<"$work/to-do"
	mv "$work/all-said" "$work/said"
}

# $router_is: running, none, or the state that docker has for it.
router_state() {
	router_is=none
	if embedded; then
		"$docker" ps --filter 'name=^amap-router$' --format '{{.Names}}' </dev/null >"$work/out" 2>"$work/err" &&
			[ ! -s "$work/out" ] || router_is=running
		return 0
	fi
	if ! "$docker" ps -a --filter 'name=^amap-router-local$' --format '{{.Names}} {{.State}}' \
	    </dev/null >"$work/out" 2>"$work/err"; then
		asked=1 asked_program=$docker
		stop="\`docker ps\` failed: $(first_words)"
		return 1
	fi
	state=$(sed -n 's/^amap-router-local //p' "$work/out")
	router_is=${state:-none}
}

look_router() {
	router_state || return 0
	if [ "$router_is" = running ] && published; then
		skip='it is running and has published the roster'
		return
	fi
	case $router_is in
	running | none) ;;
	*) stop="the container amap-router-local is $router_is; look at its logs, then remove it"; return ;;
	esac
	plan "$prog" router-config --apply
	[ "$router_is" = running ] || start_router plan
}
do_router() {
	if ! verb router-config --apply; then
		stop=$(last_of_verb)
		return
	fi
	started=''
	if [ "$router_is" != running ]; then
		started=$work/started
		: >"$started"
		start_router run
	fi
	[ -n "$stop" ] || wait_for_roster
}

# The roster is there, written since the router was started if we started it, and
# the router has seen every member.
published() {
	[ -f "$home/roster/roster.json" ] && [ ! -L "$home/roster/roster.json" ] || return 1
	[ -z "${started-}" ] || [ -n "$(find "$home/roster/roster.json" -newer "$started")" ] || return 1
	while IFS= read -r name; do
		[ -f "$home/router-state/$name/first-seen.json" ] || return 1
	done <"$work/members"
}

# start_router plan|run: the commands, shown or run.
start_router() {
	if embedded; then
		start_service "$1"
	elif [ "$router" != ours ]; then
		"$1" 3600 "$router/docker/build.sh" &&
			"$1" 300 "$router/docker/run.sh" --config "$home/router.json" --detach
	else
		start_container "$1"
	fi
	[ "$1" = run ] && [ -z "$stop" ] && ! embedded || return 0
	router_state || return 0
	[ "$router_is" = running ] || stop=$(crash_note)
}
# What the router may see, PATH and ro or rw, from the configuration that it will have.
router_mounts() {
	if [ "$1" = plan ]; then
		: >"$work/mounts"
	else
		must amap-router --config "$home/router.json" mounts >"$work/mounts"
	fi
}
start_service() {
	program=$(readlink -f "$(command -v amap-router)")
	router_mounts "$1"
	case $program in
	/usr/* | /bin/*) ;;		# every service has these
	*) printf '%s\tro\n' "${program%/*}" >>"$work/mounts" ;;
	esac
	"$1" 120 "$openshell" service start amap-router --mounts "$work/mounts" --restart unless-stopped ${owner:+--run-as "$owner"} -- \
	    "$program" --config "$home/router.json" run --interval 5
}
start_container() {
	router_mounts "$1"
	mkdir -p "$work/context"
	cp "$(command -v amap-router)" "$work/context/amap-router"
	"$1" 3600 "$docker" build -t amap-router-local -f "$top/image/router/Dockerfile" "$work/context" || return 0
	set -- "$1" 300 "$docker" run --detach --name amap-router-local --network none --read-only --cap-drop ALL \
	    --security-opt no-new-privileges --user "$run_as"
	while IFS='	' read -r path access; do
		set -- "$@" --volume "$path:$path:$access"
	done <"$work/mounts"
	"$@" amap-router-local --config "$home/router.json" run --interval 5
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

wait_for_roster() {
	tries=0
	until published; do
		if ! embedded; then
			router_state || return 0
			case $router_is in restarting | exited | dead) stop=$(crash_note); return ;; esac
			sleep 5
			tries=$((tries + 50))
		else
			sleep 0.1
			tries=$((tries + 1))
		fi
		[ "$tries" -le 1800 ] || { stop="$home/roster/roster.json: the router has not published every member within 180 s"; return; }
	done
}

look_verify() { plan "$prog" verify; }
do_verify() { verb verify || { stop='a check is not PASS'; verdict=$status; }; }

# ---- one after another ----

indent() { [ ! -s "$1" ] || sed 's/^/  /' "$1"; }

verdict=1 first_stop=''
set_owner
n=0
for stage in image gateway-config install profile provision router verify; do
	n=$((n + 1))
	case $stage in
	image) title='the image of the sandboxes' ;;
	gateway-config) title='what the gateway must allow' ;;
	install) title='the home' ;;
	profile) title='the provider profile' ;;
	provision) title='the members and their sandboxes' ;;
	router) title='the router' ;;
	verify) title='what really runs' ;;
	esac
	printf 'stage %d/7 %s: %s\n' "$n" "$stage" "$title"
	skip='' stop=''
	: >"$work/commands"
	: >"$work/said"
	: >"$work/all-said"
	function=$(printf '%s' "$stage" | tr - _)
	"look_$function"
	if [ -z "$apply" ]; then
		indent "$work/commands"
		if [ -n "$stop" ]; then
			outcome="would stop ($stop)"
			[ -n "$first_stop" ] || first_stop="$stage: $stop"
		else
			outcome=${skip:+"would skip ($skip)"}
			outcome=${outcome:-would run}
		fi
	else
		if [ -z "$stop$skip" ]; then
			: >"$work/said"
			"do_$function"
			indent "$work/said"
		fi
		if [ -n "$stop" ]; then outcome=stopped; else outcome=${skip:+"skipped ($skip)"}; fi
		outcome=${outcome:-done}
	fi
	printf 'stage %d/7 %s: %s\n' "$n" "$stage" "$outcome"
	if [ -n "$apply" ] && [ -n "$stop" ]; then
		last_words=$(printf '%s' "$stop" | tr '\n' ' ')
		exit "$verdict"
	fi
done
ended=yes
if [ -n "$apply" ]; then
	printf 'AMAP is up\n'
elif [ -n "${problem:-$first_stop}" ]; then
	printf 'dry run: --apply would stop at %s\n' "${problem:+preflight: }${problem:-$first_stop}"
	exit 1
else
	printf 'dry run: nothing was changed; add --apply to bring AMAP up\n'
fi
