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

# once NAME COMMAND...: one question; once_within SECONDS takes its time with it.
once() { once_within 120 "$@"; }
once_within() {
	seconds=$1 question=$2
	shift 2
	amap-ask --timeout "$seconds" "$question" -- "$@" >"$work/$question" 2>"$work/err" 9<&- || :
	relabel
}

# each STREAM NAME COMMAND...: a question for every record of a stream.
each() {
	from=$1 question=$2
	shift 2
	amap-ask --each "$work/$from" "$question" -- "$@" >"$work/$question" 2>"$work/err" 9<&- || :
	relabel
}

# probe SECTION ANSWER... -- COMMAND...: its checks, with these answers on standard input.
operands=''
part=0
probe() {
	part=$((part + 1))
	operands="$operands $1=checks-$part"
	shift
	: >"$work/answers"
	while [ "$1" != -- ]; do
		[ ! -e "$work/$1" ] || cat "$work/$1" >>"$work/answers"
		shift
	done
	shift
	[ -s "$work/answers" ] || printf '{"end":0}\n' >"$work/answers"
	probed=0
	"$@" <"$work/answers" >"$work/checks-$part" 2>"$work/err" || probed=$?
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

# ---- install ----

once list "$openshell" sandbox list --all-workspaces --names
(payload_records) >"$work/files" && end_records "$work/files"
may_be_cut=--list-may-be-cut
! embedded || may_be_cut=''
probe install list -- amap-probe-install --home "$home" --payload "$work/files" --members "$work/members" $may_be_cut

# ---- router-config ----

if [ -z "$problem" ] && [ ! -e "$home/membership.json" ] && [ ! -L "$home/membership.json" ]; then
	problem='membership.json is absent'
fi
if [ -z "$problem" ] && try amap-fleet --no-follow --membership "$home/membership.json" "$home/fleet.json" >"$work/router-plan" &&
    try amap-render-router --home "$home" "$work/router-plan" >"$work/router.json" &&
    try amap-membership selected "$home/membership.json" >"$work/selected.json"; then
	once drift amap-drift "$work/router.json" "$home/router.json"
	probe router-config drift -- amap-probe-drift --home "$home" --selected "$work/selected.json"
else
	probe router-config -- amap-probe-drift --home "$home" --problem "$problem"
fi

# ---- gateway ----

kind=''
! embedded || kind=--embedded
probe gateway -- amap-probe-gateway --home "$home" $kind ${gateway_toml:+"$gateway_toml"}
once gateway-info "$openshell" gateway info -o json
source=$home/instances/${first-}/outbox
if [ -n "${first-}" ]; then
	# Refused for three reasons by whoever decides about mounts, and by the driver for the strange key.
	mount=$(printf '{"read_only":false,"source":"%s","target":"/opt/amap/probe","type":"bind"}' "$(json "$source")")
	once probe-create "$openshell" --workspace "$workspace" sandbox create --name "amap-verify-$(od -An -N3 -tx1 /dev/urandom | tr -d ' ')" \
	    --from "$image" --driver-config-json "{\"docker\":{\"amap_verify_probe\":true,\"mounts\":[$mount]}}" \
	    --detach --no-tty --no-auto-providers -- true
fi
probe gateway gateway-info probe-create -- amap-probe-interceptor --source "$source"

# ---- members ----

# What runs inside. The originals' payload has no probes, but its image has a shell.
fresh=/opt/amap/lanes/inbox/.amap-verify-$(od -An -N8 -tx1 /dev/urandom | tr -d ' ')
# shellcheck disable=SC2016 # the shell in the sandbox expands it
by_shell_write='# amap-verify: the write probe
set -C; LC_ALL=C; export LC_ALL
said=$( (: >"$1") 2>&1) && { echo OPENED; rm -f "$1"; exit; }
case $said in
*"Read-only file system") echo EROFS ;;
*"Permission denied") echo EACCES ;;
*) printf "%s\n" "${said##*: }" ;;
esac'
# shellcheck disable=SC2016 # the shell in the sandbox expands it
by_shell_delivery='# amap-verify: the delivery probe
n=0
for p in /proc/[0-9]*; do
	{ tr "\000" "\n" <"$p/cmdline"; } 2>/dev/null | sed -n "1,2s,^\(.*/\)*,,p" | grep -qx inbox-delivery && n=$((n + 1))
done
echo "$n"'
if [ -n "${workspace-}" ]; then
	inside() {
		from=$1 question=$2
		shift 2
		each "$from" "$question" "$openshell" --workspace "$workspace" sandbox exec --name '{subject}' --no-tty \
		    --no-login-shell --timeout 60 -- "$@"
	}
	each members get "$openshell" --workspace "$workspace" sandbox get '{name}' --output json
	each get policy "$openshell" --workspace "$workspace" sandbox get '{subject}' --policy-only
	each get ps "$docker" ps -q --filter 'label=openshell.ai/sandbox-id={stdout.id}'
	each ps inspect "$docker" inspect '{stdout}'
	if [ "$connector" = ours ]; then
		inside get write /opt/amap/payload/bin/amap-probe-write "$fresh"
		inside get delivery /opt/amap/payload/bin/amap-probe-running inbox-delivery
	else
		inside get write sh -c "$by_shell_write" sh "$fresh"
		inside get delivery sh -c "$by_shell_delivery"
	fi
fi
profile=$top/examples/providers/amap-claude-code.json
! embedded || profile=''		# embedded sandboxes have no provider, so no way out at all
probe members get list -- amap-probe-identity --members "$work/members" --membership "$home/membership.json" $may_be_cut
judge_policy() {
	probe members get policy inspect -- amap-probe-policy --members "$work/members" ${profile:+--profile "$profile"}
}
judge_policy
if [ "$probed" -eq 1 ] && [ -n "${workspace-}" ] && ! embedded; then
	# Right after a sandbox is Ready its gateway may still show an earlier revision.
	sleep 2
	each get policy "$openshell" --workspace "$workspace" sandbox get '{subject}' --policy-only
	again
	judge_policy
fi
probe members get ps inspect -- amap-probe-mounts --members "$work/members"
probe members get write delivery -- amap-probe-inside --members "$work/members"

# ---- router-container, router-health ----

once router-ps "$docker" ps --all --filter "name=^$router_container\$" --format '{{.Names}}'
once router-inspect "$docker" inspect "$router_container"
program=''
if [ "$router" = ours ]; then
	once router-mounts amap-router --config "$home/router.json" mounts
	once router-status amap-router --config "$home/router.json" status --json
	once router-report amap-router --config "$home/router.json" status
	if embedded; then
		program=$(readlink -f "$(command -v amap-router)") || :
		program=${program%/*}
		case $program in /usr/* | /bin) program='' ;; esac
	fi
else
	one_shot() {
		once_within 900 "$1" env IMAGE="$router_image" "$router/docker/run.sh" --config "$home/router.json" \
		    --name amap-openshell-verify-router-health -- status ${2:+"$2"}
	}
	# shellcheck disable=SC2016 # the inner shell expands it
	once_within 300 router-mounts sh -c 'cd "$1" && exec python3 docker/derive-mounts.py "$2"' sh "$router" "$home/router.json"
	one_shot router-status --json
	one_shot router-report ''
fi
if [ "$router" = ours ] || [ -r "$router/router/reset.py" ]; then
	probe router-container router-ps router-inspect router-mounts router-status -- amap-probe-router \
	    --config "$home/router.json" --name "$router_container" ${program:+--program-dir "$program"}
else
	probe router-container -- amap-probe-router --problem "$router: not a checkout of the original router"
fi
probe router-health router-status router-report -- amap-probe-health --config "$home/router.json"

# ---- the report ----

status=0
# shellcheck disable=SC2086 # a list of SECTION=FILE, without a space in any
(cd "$work" && amap-verdict --format "$format" $operands) || status=$?
exit "$status"
