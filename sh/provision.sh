#!/bin/sh
# provision NAME - make a member's lanes, policy and sandbox, and record it
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='provision NAME [--apply]'
read_member_arguments "$@"
find_home
lock_home
load_fleet
need_member "$name"
for dir in payload roster; do
	if [ ! -d "$home/$dir" ] || [ -L "$home/$dir" ]; then
		refuse "$home/$dir: not a real directory; run $prog install --apply first"
	fi
done
default_run_as
set_owner

must amap-lanes --home "$home" "$work/plan" >"$work/members"
must amap-render-policy --member "$name" --run-as "$run_as" "$work/members" >"$work/policy.yaml"
must amap-render-create --member "$name" --image "$image" ${restart_policy:+"$restart_policy"} "$work/members" >"$work/create.sh"
{
	dir_record policies 0755
	dir_record commands 0755
	file_record "policies/$name.yaml" 0644 "$work/policy.yaml"
	file_record "commands/create-$name.sh" 0644 "$work/create.sh"
} >"$work/stream"
end_records "$work/stream"
must amap-tree lanes --member "$name" ${owner:+--owner "$owner"} "$work/members" >>"$work/stream"
put "$work/stream" >"$work/report"

find_sandbox "$name"
recorded_id "$name"
case $state in
unfit) refuse "$name: $why" ;;
unknown)
	printf 'UNKNOWN: %s\n' "$why"
	exit 1 ;;
present)
	if [ -n "$recorded" ] && [ "$recorded" != "$id" ]; then
		refuse "$name: recorded with the ID $recorded, but the sandbox has $id; run $prog deprovision $name first"
	fi ;;
absent)
	[ -z "$recorded" ] ||
		refuse "$name: recorded with the ID $recorded, but that sandbox is gone and its ID cannot come back; run $prog deprovision $name first"
	if [ -n "$apply" ] && [ -z "$provider_key" ] && ! embedded; then
		refuse "$name: the sandbox must be created, and ANTHROPIC_API_KEY is not set; nothing was written"
	fi ;;
esac

# What would refuse the record refuses the verb before its first write, and before a
# sandbox is made. The ID of one that is still to be made stands in the record alone.
record_stream "$name" "${id:-not-made-yet}" >"$work/record"
end_records "$work/record"
put "$work/record" >"$work/record-report"

if [ -z "$apply" ]; then
	show "$work/report"
	if [ "$state" = absent ]; then
		printf 'would create sandbox %s: ' "$name"
		show "$work/create.sh"
		printf 'would record %s in membership.json with the ID that the new sandbox gets\n' "$name"
		[ -n "$provider_key" ] || embedded ||
			printf 'note: ANTHROPIC_API_KEY is not set; --apply needs it to create the sandbox\n'
	else
		printf 'present sandbox %s (%s)\n' "$name" "$id"
		if grep -q '^would create instances' "$work/report"; then
			printf 'would record %s in membership.json with ID %s\n' "$name" "$id"
		else
			show "$work/record-report"
		fi
	fi
	closing_line
	exit 0
fi

put --apply "$work/stream"
if [ "$state" = absent ]; then
	# The vector as the script has it, but for the program. The words are quoted by the renderer.
	eval "set -- $(cat "$work/create.sh")"
	shift
	asked=0 asked_program=$openshell
	if [ -n "$provider_key" ]; then
		ANTHROPIC_API_KEY=$provider_key timeout --foreground -k 10 900 "$openshell" "$@" </dev/null 9<&- >"$work/out" 2>"$work/err" || asked=$?
	else
		timeout --foreground -k 10 900 "$openshell" "$@" </dev/null 9<&- >"$work/out" 2>"$work/err" || asked=$?
	fi
	[ "$asked" -eq 0 ] ||
		refuse "$name: \`sandbox create\` failed: $(first_words); nothing was recorded, a rerun goes on from here"
	printf 'created sandbox %s\n' "$name"
	find_sandbox "$name"
	[ "$state" = present ] ||
		refuse "$name: created, but then not found${why:+ ($why)}; when it is there, run $prog l1-kit record --home $home $name ID --apply"
	record_stream "$name" "$id" >"$work/record"
	end_records "$work/record"
else
	printf 'present sandbox %s (%s)\n' "$name" "$id"
fi
put --apply "$work/record"
