#!/bin/sh
# router-config - compare router.json and selected.json with the policy, or write them
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='router-config [--apply]'
read_apply "$@"
find_home
lock_home
load_fleet
set_owner
[ -e "$home/membership.json" ] || [ -L "$home/membership.json" ] ||
	refuse "$home/membership.json: absent, so no member is recorded; run $prog provision for each"
members_who pending "$home/membership.json"
[ ! -s "$work/pending" ] ||
	refuse "$(join "$work/pending"): not recorded yet; the router's files are written when every member is"
router_records "$home/membership.json" >"$work/stream"
router_notes >>"$work/stream"
end_records "$work/stream"
if [ -n "$apply" ]; then
	put --apply "$work/stream"
	exit 0
fi
put "$work/stream" >"$work/report"
status=0
amap-drift "$work/router.json" "$home/router.json" >"$work/drift" 2>"$work/err" || status=$?
relabel
[ "$status" -le 1 ] || exit "$status"
if grep '^would ' "$work/report" >"$work/would"; then
	show "$work/drift" "$work/would"
	printf 'drift: what stands here is not what the policy renders; router-config --apply writes it\n'
	exit 1
fi
printf 'in sync\n'
