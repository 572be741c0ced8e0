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
	[ -n "$ended" ] || printf 'bring-up stopped at %s: %s\n' "$stage" "${last_words:-exit status $status}" | clean || :
	exec >&- 2>&-
	[ -z "$redactor" ] || wait "$redactor" || status=2		# the end was not heard
	wait
	rm -rf "$work"
	exit "$status"
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
# ... nor, from redact [--log FILE] on, what anybody else says. Who redacts says
# that standard output cannot be written; what is left to us is to end.
redactor=''
redact() {
	mkfifo "$work/out.fifo" "$work/err.fifo" || die 'no scratch FIFO'
	amap-redact --secrets-fd 3 "$@" <"$work/out.fifo" 9<&- 3<<-END &
	$provider_key
	END
	redactor=$!
	amap-redact --secrets-fd 3 "$@" <"$work/err.fifo" >&2 9<&- 3<<-END &
	$provider_key
	END
	exec >"$work/out.fifo" 2>"$work/err.fifo"
	unheard() { exit 2; }
	trap unheard PIPE
}

# ---- preflight: nothing is written by a refusal here ----

case $version in *[[:space:]]*) verb_usage "the version of Claude Code holds white space" ;; esac
if ! embedded && [ -z "$version" ]; then
	verb_usage 'which Claude Code? give --claude-code-version or set CLAUDE_CODE_VERSION'
fi
# What differs between the two kinds of host.
# shellcheck source=/dev/null
if embedded; then . "$sh_dir/bring-up/embedded.sh"; else . "$sh_dir/bring-up/openshell.sh"; fi
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
[ -z "$agent" ] || { [ -f "$agent" ] && [ -r "$agent" ]; } || refuse "--agent $agent: not a file that can be read"
find_home --new
lock_home
[ "$router" = ours ] || [ -r "$router/router/reset.py" ] ||
	refuse "$router: not a checkout of the original router (router/reset.py); run $prog siblings --apply, or use --router ours"
if [ "$router" = ours ] && ! command -v amap-router >/dev/null; then
	refuse 'amap-router: not found; build this tree with make'
fi
if [ -e "$home/fleet.json" ] || [ -L "$home/fleet.json" ]; then
	load_fleet
else
	must amap-fleet "$fleet" >"$work/plan"
	read_plan
fi
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
			Stopped | Error | Completed) if embedded; then settled=stopped; else settled=settled; fi ;;
			*) settled=settled ;;
			esac
			printf '%s %s\n' "$name" "$settled" ;;
		*) printf '%s other\n' "$name" ;;
		esac >>"$work/states"
	done <"$work/members"
}

if ! states; then
	[ "$state" != unknown ] || printf 'UNKNOWN: %s\n' "$why" | clean
	exit 1
fi
problem=''
add_problem() {
	[ -n "$apply" ] || printf 'preflight: %s\n' "$1"
	[ -n "$problem" ] || problem=$1
}
absent=$(awk '$2 == "absent" { print $1 }' "$work/states" | paste -s -d ' ')
preflight
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

# verb ARGUMENT...: another verb of this command on this home, its words to
# $work/said. The key goes with it only when $give_key says so.
give_key=''
verb() {
	set -- --home "$home" --fleet "$fleet" --image "$image" --run-as "$run_as" ${restart_policy:+"$restart_policy"} \
	    --openshell "$openshell" --docker "$docker" ${gateway_toml:+--gateway-toml "$gateway_toml"} \
	    --router "$router" --connector "$connector" "$@"
	status=0
	if [ -n "$give_key" ]; then
		ANTHROPIC_API_KEY=$provider_key sh "$sh_dir/amap-openshell" "$@" </dev/null >"$work/said" 2>"$work/complaint" || status=$?
	else
		sh "$sh_dir/amap-openshell" "$@" </dev/null >"$work/said" 2>"$work/complaint" || status=$?
	fi
	return "$status"
}

# The last line that a verb said, complaint before report.
last_of_verb() {
	line=$(grep -v '^usage:' "$work/complaint" | tail -n 1)
	[ -n "$line" ] || line=$(tail -n 1 "$work/said")
	printf '%s' "${line:-exit status $status}"
}

look_install() { plan "$prog" install ${agent:+--agent "$agent"} --apply; }
do_install() { verb install ${agent:+--agent "$agent"} --apply || stop=$(last_of_verb); }

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
		else
			! grep -qx "$name absent" "$work/states" || give_key=$provider_key
			verb provision "$name" --apply || stop=$(last_of_verb)
			give_key=''
		fi
		cat "$work/said" >>"$work/all-said"
		[ -z "$stop" ] || break
	done 4<"$work/to-do"
	mv "$work/all-said" "$work/said"
}

started=''		# a file as old as the start of the router, when that was here
look_router() {
	router_state || return 0
	if [ "$router_is" = running ] && published; then
		skip='it is running and has published the roster'
		return
	fi
	plan "$prog" router-config --apply
	[ "$router_is" = running ] || start_router plan || :
}
do_router() {
	if ! verb router-config --apply; then
		stop=$(last_of_verb)
		return
	fi
	if [ "$router_is" != running ]; then
		started=$work/started
		: >"$started"
		start_router run || :		# $stop says what went wrong
	fi
	[ -n "$stop" ] || wait_for_roster
}

# The roster is there, written since the router was started if we started it, and
# the router has seen every member.
published() {
	[ -f "$home/roster/roster.json" ] && [ ! -L "$home/roster/roster.json" ] || return 1
	[ -z "$started" ] || [ -n "$(find "$home/roster/roster.json" -newer "$started")" ] || return 1
	while IFS= read -r name; do
		[ -f "$home/router-state/$name/first-seen.json" ] || return 1
	done <"$work/members"
}

wait_for_roster() {
	waited=0
	until published; do
		look_at_start || return 0
		sleep "$poll"
		waited=$((waited + 1))
		[ "$waited" -lt "$polls" ] || { stop="$home/roster/roster.json: the router has not published every member within 180 s"; return; }
	done
}

look_verify() { plan "$prog" verify; }
do_verify() { verb verify || { stop='a check is not PASS'; verdict=$status; }; }

# ---- one after another ----

indent() { [ ! -s "$1" ] || sed 's/^/  /' "$1" || unheard; }

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
