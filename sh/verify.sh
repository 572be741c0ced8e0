#!/bin/sh
# verify - the report: what is installed, what really runs, what an agent can do; changes nothing
#
# Commands that only look are asked (amap-ask), probes judge what they answered
# (amap-probe-*), amap-verdict prints the report. A part that cannot be judged
# is UNKNOWN; none is left out. By hand: sh/verify.sh [HOST-WIDE OPTION]...
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
case ${0##*/} in verify.sh) exec sh "$(dirname "$(readlink -f "$0")")/amap-openshell" "$@" verify ;; esac
synopsis='verify [--docker PROGRAM] [--router-container NAME] [--router-image IMAGE] [--format FORM]'
format=report router_image=${IMAGE:-amap-router-local} router_container=${CONTAINER:-amap-router-local}
! embedded || router_container=amap-router
while [ $# -gt 0 ]; do
	case $1 in
	--docker) take_value "$@"; docker=$value; shift ;;
	--router-container) take_value "$@"; router_container=$value; shift ;;
	--router-image) take_value "$@"; router_image=$value; shift ;;
	--format) take_value "$@"; format=$value; shift ;;
	*) verb_usage "$1: unexpected" ;;
	esac
	shift
done
case $format in
report | jsonl | tap | junit | nagios | prometheus) ;;
*) verb_usage "--format $format: one of report, jsonl, tap, junit, nagios, prometheus is needed" ;;
esac
find_home

# ---- asking: questions are collected, then asked together ----

# words WORD...: a JSON array of them.
words() {
	between='['
	for word; do
		word=$(json "$word")
		printf '%s"%s"' "$between" "$word"
		between=,
	done
	printf ']'
}

# question NAME SECONDS COMMAND...: one about the whole fleet.
question() {
	printf '{"ask":"%s","timeout":%d,"argv":' "$1" "$2"
	shift 2
	words "$@"
	printf '}\n'
}

# begin FILE JOBS: begins to ask the questions in it; the answers go to FILE.answers.
asking='' about_members=''
begin() {
	end_records "$1"
	amap-ask --jobs "$2" --batch "$1" >"$1.answers" 9<&- &
	asking="$asking $!"
}

# begin_each FILE ASK NAME COMMAND...: asks NAME about every answer ASK in FILE.answers.
begin_each() {
	from=$1 of=$2 name=$3
	shift 3
	amap-ask --each "$work/$from.answers" --of "$of" "$name" -- "$@" >"$work/$name.answers" 9<&- &
	asking="$asking $!"
}

# answered: waits for all that was asked.
answered() {
	for process in $asking; do
		wait "$process" || :
	done
	asking=''
}
# shellcheck disable=SC2086 # a list of process ids
trap '[ -z "$asking$about_members" ] || kill $asking $about_members 2>/dev/null || :; rm -rf "$work"' EXIT

# probe SECTION COMMAND...: its checks, a file of their own.
operands='' part=0
probe() {
	part=$((part + 1))
	operands="$operands $1=checks-$part"
	shift
	probed=0
	"$@" >"$work/checks-$part" 2>"$work/err" </dev/null || probed=$?
	relabel
}

# again: forgets the last probe's checks, so that it can be made once more.
again() { operands=${operands% *}; }

# ---- the fleet: what is asked about, and what is expected ----

problem=''
try() {
	asked=0 asked_program=$1
	"$@" 2>"$work/err" || asked=$?
	[ "$asked" -eq 0 ] || problem=$(first_words)
	return "$asked"
}
if try amap-fleet --no-follow "$home/fleet.json" >"$work/plan" && try amap-lanes --home "$home" "$work/plan" >"$work/members"; then
	read_plan
	IFS= read -r first <"$work/names"
else
	printf '{"problem":"%s"}\n{"end":1}\n' "$(json "$problem")" >"$work/members"
fi

# ---- questions about each member ----

# What runs inside. The originals' payload has no probes, but its image has a shell.
random=$(od -An -N11 -tx1 /dev/urandom | tr -d ' \n')
fresh=/opt/amap/lanes/inbox/.amap-verify-${random%??????}
if [ "$connector" = ours ]; then
	inside_write() { words /opt/amap/payload/bin/amap-probe-write "$fresh"; }
	inside_delivery() { words /opt/amap/payload/bin/amap-probe-running inbox-delivery; }
else
	# shellcheck disable=SC2016 # the shell in the sandbox expands it
	by_shell_write='set -C; LC_ALL=C; export LC_ALL; said=$( (: >"$1") 2>&1) && { echo OPENED; rm -f "$1"; exit; }; case $said in *"Read-only file system") echo EROFS ;; *"Permission denied") echo EACCES ;; *) printf "%s\n" "${said##*: }" ;; esac'
	# shellcheck disable=SC2016 # the shell in the sandbox expands it
	by_shell_delivery='n=0; for p in /proc/[0-9]*; do { tr "\000" "\n" <"$p/cmdline"; } 2>/dev/null | sed -n "1,2s,^\(.*/\)*,,p" | grep -qx inbox-delivery && n=$((n + 1)); done; echo "$n"'
	inside_write() { words sh -c "$by_shell_write" sh "$fresh"; }
	inside_delivery() { words sh -c "$by_shell_delivery"; }
fi

# member_questions NAME WORDS MORE: about every member, with its name between the words.
member_questions() {
	while IFS= read -r member; do
		printf '{"ask":"%s","subject":"%s","argv":%s,"%s",%s}\n' "$1" "$member" "${2%]}" "$member" "${3#[}"
	done <"$work/names"
}
policy_questions() { member_questions policy "$(words "$openshell" --workspace "$workspace" sandbox get)" '"--policy-only"]'; }
for answers in each ps inspect; do printf '{"end":0}\n' >"$work/$answers.answers"; done
if [ -n "$first" ]; then
	exec_in=$(words "$openshell" --workspace "$workspace" sandbox exec --name)
	options=$(words --no-tty --no-login-shell --timeout 60 --)
	options=${options%]}
	write=$(inside_write)
	delivery=$(inside_delivery)
	{
		member_questions get "$(words "$openshell" --workspace "$workspace" sandbox get)" '"--output","json"]'
		policy_questions
		member_questions write "$exec_in" "$options,${write#[}"
		member_questions delivery "$exec_in" "$options,${delivery#[}"
	} >"$work/each"
	begin "$work/each" 3
fi
about_members=$asking asking=''

# ---- questions about the whole ----

if [ -z "$problem" ] && [ ! -e "$home/membership.json" ] && [ ! -L "$home/membership.json" ]; then
	problem='membership.json is absent'
fi
rendered=''
if [ -z "$problem" ] && try amap-fleet --no-follow --membership "$home/membership.json" "$home/fleet.json" >"$work/router-plan" &&
    try amap-render-router --home "$home" "$work/router-plan" >"$work/router.json" &&
    try amap-membership selected "$home/membership.json" >"$work/selected.json"; then
	rendered=yes
fi
source=$home/instances/$first/outbox
router_problem=''
one_shot() {
	question "$1" 900 env IMAGE="$router_image" "$router/docker/run.sh" --config "$home/router.json" \
	    --name amap-openshell-verify-router-health -- status ${2:+"$2"}
}
{
	question list 120 "$openshell" sandbox list --all-workspaces --names
	question gateway-info 120 "$openshell" gateway info -o json
	[ -z "$rendered" ] || question drift 120 amap-drift "$work/router.json" "$home/router.json"
	if [ -n "$first" ]; then
		# Refused for three reasons by whoever decides about mounts, and by the driver for the strange key.
		mount="{\"read_only\":false,\"source\":\"$(json "$source")\",\"target\":\"/opt/amap/probe\",\"type\":\"bind\"}"
		question probe-create 120 "$openshell" --workspace "$workspace" sandbox create \
		    --name "amap-verify-${random#????????????????}" --from "$image" \
		    --driver-config-json "{\"docker\":{\"amap_verify_probe\":true,\"mounts\":[$mount]}}" \
		    --detach --no-tty --no-auto-providers -- true
	fi
	question router-ps 120 "$docker" ps --all --filter "name=^$router_container\$" --format '{{.Names}}'
	question router-inspect 120 "$docker" inspect "$router_container"
	if [ "$router" = ours ]; then
		question router-mounts 120 amap-router --config "$home/router.json" mounts
		question router-status 120 amap-router --config "$home/router.json" status --json
		question router-report 120 amap-router --config "$home/router.json" status
	elif [ -r "$router/router/reset.py" ]; then
		# shellcheck disable=SC2016 # the inner shell expands it
		question router-mounts 300 sh -c 'cd "$1" && exec python3 docker/derive-mounts.py "$2"' sh "$router" "$home/router.json"
		one_shot router-status --json
		one_shot router-report ''
	else
		router_problem="$router: not a checkout of the original router"
	fi
} >"$work/whole"
begin "$work/whole" 1		# one at a time: the one-shots of the original share a container's name

# ---- the probes ----

may_be_cut=--list-may-be-cut kind='' profile=$top/examples/providers/amap-claude-code.json
if embedded; then
	may_be_cut='' kind=--embedded profile=''		# no provider, so no way out at all
fi
whole=$work/whole.answers each=$work/each.answers
probe gateway amap-probe-gateway --home "$home" $kind ${gateway_toml:+"$gateway_toml"}
(payload_records) >"$work/files" && end_records "$work/files"
answered
probe install amap-probe-install --home "$home" --payload "$work/files" --members "$work/members" $may_be_cut "$whole"
if [ -n "$rendered" ]; then
	probe router-config amap-probe-drift --home "$home" --selected "$work/selected.json" "$whole"
else
	probe router-config amap-probe-drift --home "$home" --problem "$problem"
fi
probe gateway amap-probe-interceptor --source "$source" "$whole"
program=''
if [ "$router" = ours ] && embedded; then
	program=$(readlink -f "$(command -v amap-router)") || :
	program=${program%/*}
	case $program in /usr/* | /bin) program='' ;; esac
fi
if [ -n "$router_problem" ]; then
	probe router-container amap-probe-router --problem "$router_problem"
else
	probe router-container amap-probe-router --config "$home/router.json" --name "$router_container" \
	    ${program:+--program-dir "$program"} "$whole"
fi
probe router-health amap-probe-health --config "$home/router.json" "$whole"

asking=$about_members about_members=''
answered
[ -z "$first" ] || begin_each each get ps "$docker" ps -q --filter 'label=openshell.ai/sandbox-id={stdout.id}'
probe members amap-probe-identity --members "$work/members" --membership "$home/membership.json" $may_be_cut "$each" "$whole"
answered
[ -z "$first" ] || begin_each ps ps inspect "$docker" inspect '{stdout}'
probe members amap-probe-inside --members "$work/members" "$each"
answered
probe members amap-probe-mounts --members "$work/members" "$each" "$work/ps.answers" "$work/inspect.answers"
judge_policy() {
	probe members amap-probe-policy --members "$work/members" ${profile:+--profile "$profile"} "$each" \
	    "$work/inspect.answers" "$@"
}
judge_policy
if [ "$probed" -eq 1 ] && [ -n "$first" ] && ! embedded; then
	# Right after a sandbox is Ready its gateway may still show an earlier revision.
	sleep 2
	policy_questions >"$work/policies"
	begin "$work/policies" 4
	answered
	again
	judge_policy "$work/policies.answers"
fi

# ---- the report ----

status=0
# shellcheck disable=SC2086 # a list of SECTION=FILE, without a space in any
(cd "$work" && amap-verdict --format "$format" $operands) || status=$?
exit "$status"
