#!/bin/sh
# l1-kit ACTION - the steps of a hand-made first run: prepare a home, record a sandbox, render the provider profile
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='l1-kit prepare --home DIR --fleet FILE --run-as UID:GID --image IMAGE [--restart-policy] [--apply]
       l1-kit record --home DIR NAME ID [--apply]
       l1-kit profile --home DIR --binary PATH... [--apply]'
action=${1-}
case $action in
prepare | record | profile) shift ;;
*) verb_usage 'an action is needed' ;;
esac
label="$prog l1-kit $action"
home='' apply='' name='' id='' given=0
[ "$action" != prepare ] || fleet='' run_as='' image=''
: >"$work/binaries"
while [ $# -gt 0 ]; do
	case $action:$1 in
	*:--apply) apply=--apply ;;
	*:--home) take_value "$@"; home=$value; shift ;;
	prepare:--fleet) take_value "$@"; fleet=$value; shift ;;
	prepare:--run-as) take_value "$@"; run_as=$value; shift ;;
	prepare:--image) take_value "$@"; image=$value; shift ;;
	prepare:--restart-policy) restart_policy=--restart-policy ;;
	profile:--binary) take_value "$@"; printf '%s\0' "$value" >>"$work/binaries"; shift ;;
	*:-*) verb_usage "$1: unexpected" ;;
	record:*)
		given=$((given + 1))
		case $given in
		1) name=$1 ;;
		2) id=$1 ;;
		*) verb_usage "$1: unexpected" ;;
		esac ;;
	*) verb_usage "$1: unexpected" ;;
	esac
	shift
done
[ -n "$home" ] || verb_usage '--home is needed'

prepare() {
	for option in "$fleet" "$run_as" "$image"; do
		[ -n "$option" ] || verb_usage '--fleet, --run-as and --image are needed'
	done
	find_home --new
	lock_home
	must amap-fleet "$fleet" >"$work/plan"
	read_plan
	set_owner
	fleet=$(readlink -f -- "$fleet")
	must amap-lanes --home "$home" "$work/plan" >"$work/members"
	must amap-render-policy --files --run-as "$run_as" "$work/members" >"$work/policies"
	must amap-render-create --files --image "$image" ${restart_policy:+"$restart_policy"} "$work/members" \
	    >"$work/commands"
	must amap-render-gateway --files >"$work/gateway"
	must amap-tree lanes ${owner:+--owner "$owner"} "$work/members" >"$work/lanes"
	{
		owned_record . 0755
		payload_records
		owned_record roster 0755
		dir_record policies 0755
		dir_record commands 0755
		file_record fleet.json 0644 "$fleet"
	} >"$work/stream"
	# Each member's policy, then its command: the two streams are of one length.
	sed '$d' "$work/policies" >"$work/policies.records"
	sed '$d' "$work/commands" >"$work/commands.records"
	paste -d '\n' "$work/policies.records" "$work/commands.records" >>"$work/stream"
	end_records "$work/stream"
	cat "$work/lanes" "$work/gateway" >>"$work/stream"
}

record() {
	[ "$given" -eq 2 ] || verb_usage 'NAME and ID are needed'
	find_home
	lock_home
	load_fleet
	need_member "$name"
	# The ID itself, before what is on the host.
	must amap-membership record --workspace "$workspace" --name "$name" --id "$id" "$work/none" >/dev/null
	set_owner
	for lane in inbox/notices inbox/messages peer/notices peer/messages outbox/results outbox/processed; do
		if [ ! -d "$home/instances/$name/$lane" ] || [ -L "$home/instances/$name/$lane" ]; then
			refuse "$home/instances/$name/$lane: not a real directory; run $prog l1-kit prepare first"
		fi
	done
	record_stream "$name" "$id" >"$work/stream"
	end_records "$work/stream"
}

profile() {
	[ -s "$work/binaries" ] || verb_usage '--binary is needed'
	find_home
	lock_home
	must xargs -0 -a "$work/binaries" amap-profile render "$top/examples/providers/amap-claude-code.json" \
	    >"$work/profile.json"
	{
		dir_record providers 0755
		file_record providers/amap-claude-code.json 0644 "$work/profile.json"
		note_record "binaries: $(tr '\0' '\n' <"$work/binaries" | awk '!seen[$0]++' | paste -s -d, | sed 's/,/, /g')"
	} >"$work/stream"
	end_records "$work/stream"
}

"$action"
if [ -n "$apply" ]; then
	put --apply "$work/stream"
else
	put "$work/stream"
	closing_line
fi
