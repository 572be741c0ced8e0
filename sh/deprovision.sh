#!/bin/sh
# deprovision NAME - delete a member's sandbox, its router state, the contents of its lanes, and its record
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='deprovision NAME [--apply]'
read_member_arguments "$@"

# The record is gone: nothing is left to do, but for selected.json when an
# earlier run was stopped just before it wrote that.
finish_or_refuse() {
	if [ ! -e "$home/membership.json" ] || [ ! -f "$home/selected.json" ] || [ -L "$home/selected.json" ] ||
	    ! amap-field --each selected slug <"$home/selected.json" >"$work/selected" 2>/dev/null ||
	    ! is_line "$name" "$work/selected"; then
		refuse "$name: not recorded in $home/membership.json; there is nothing to take away"
	fi
	must amap-membership selected "$home/membership.json" >"$work/selected.json"
	file_record selected.json 0644 "$work/selected.json" >"$work/stream"
	end_records "$work/stream"
	put ${apply:+--apply} "$work/stream"
	[ -n "$apply" ] || closing_line
	exit 0
}

find_home
lock_home
recorded_id "$name"
[ -n "$recorded" ] || finish_or_refuse
# Where its sandbox is says the record: the policy may have changed since, or be broken.
must amap-field --each members workspace <"$home/membership.json" >"$work/workspaces"
IFS= read -r workspace <"$work/workspaces"
find_sandbox "$name"
case $state in
unfit) refuse "$name: $why" ;;
unknown)
	printf 'UNKNOWN: %s\n' "$why"
	exit 1 ;;
esac

# The record goes last: until then a rerun takes up where this one was stopped.
must amap-membership remove "$name" "$home/membership.json" >"$work/membership.json"
file_record membership.json 0644 "$work/membership.json" >"$work/own"
if [ -e "$home/selected.json" ] || [ -L "$home/selected.json" ]; then
	must amap-membership selected "$work/membership.json" >"$work/selected.json"
	file_record selected.json 0644 "$work/selected.json" >>"$work/own"
fi
[ ! -e "$home/router.json" ] ||
	note_record "note: router.json still names $name; edit fleet.json, then run $prog router-config --apply" >>"$work/own"
end_records "$work/own"
must amap-tree clear --home "$home" "$name" >"$work/stream"
cat "$work/own" >>"$work/stream"
put "$work/stream" >"$work/report"

if [ "$state" = absent ]; then
	line="absent sandbox $name"
elif [ "$id" != "$recorded" ]; then
	line="left sandbox $name alone: it has the ID $id and not the recorded $recorded, so it is another one"
elif [ -z "$apply" ]; then
	line="would delete sandbox $name ($id)"
else
	line="deleting sandbox $name ($id)"
	ask --workspace "$workspace" sandbox delete "$name"
	[ "$asked" -eq 0 ] || refuse "$name: \`sandbox delete\` failed: $(first_words); nothing was changed"
fi
printf '%s\n' "$line"
if [ -z "$apply" ]; then
	show "$work/report"
	closing_line
else
	put --apply "$work/stream"
fi
