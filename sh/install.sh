#!/bin/sh
# install - make the home: directories, payload, and the policy when it is new
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='install [--fleet-domain-base DOMAIN] [--agent FILE] [--apply]'
apply='' base='' agent=''
while [ $# -gt 0 ]; do
	case $1 in
	--apply) apply=--apply ;;
	--fleet-domain-base) take_value "$@"; base=$value; shift ;;
	--agent)
		take_value "$@"
		agent=$(readlink -f -- "$value") || refuse "$value: no such file"
		case $agent in *[[:cntrl:]]*) refuse '--agent: a control character in the path' ;; esac
		shift ;;
	*) verb_usage "$1: unexpected" ;;
	esac
	shift
done
find_home --new --real
lock_home
set_owner
if [ -e "$home/fleet.json" ] || [ -L "$home/fleet.json" ]; then
	load_fleet
	new=''
else
	must amap-fleet "$fleet" >"$work/plan"
	must amap-render-fleet --host "$(uname -n)" ${base:+--base "$base"} "$fleet" >"$work/fleet.json"
	must amap-fleet "$work/fleet.json" >"$work/plan"
	read_plan
	new=yes
fi
stream=$work/stream
{
	owned_record . 0755
	payload_records
	owned_record roster 0755
	owned_record instances 0755
	dir_record policies 0755
	dir_record commands 0755
} >"$stream"

# What is recorded decides whether the router's files are part of the plan.
note='' pending=''
if [ -e "$home/membership.json" ] || [ -L "$home/membership.json" ]; then
	members_who pending "$home/membership.json"
	if [ -s "$work/pending" ]; then
		must amap-membership list "$home/membership.json" >"$work/recorded"
		[ -s "$work/recorded" ] || note='membership.json lists no member; the router starts when all are recorded'
	fi
else
	cp "$work/names" "$work/pending"
	note='membership.json is absent (nothing was ever recorded in this home)'
fi
[ -s "$work/pending" ] || router_records "$home/membership.json" >>"$stream"
{
	if [ -n "$new" ]; then
		file_record fleet.json 0644 "$work/fleet.json"
		domain=$(amap-field domain <"$work/plan")
		note_record "new fleet.json: fleet_domain '$domain' is this host's; change it now or never"
	else
		note_record 'present fleet.json (yours to edit; it is left as it is)'
		[ -z "$base" ] || note_record "note: --fleet-domain-base $base changes nothing, the policy is already there"
	fi
	[ -z "$note" ] || note_record "$note"
	if [ -s "$work/pending" ]; then
		note_record "still to provision: $(join "$work/pending"); run $prog provision NAME --apply for each"
	else
		router_notes
	fi
} >>"$stream"
end_records "$stream"

record=$(amap-home --record 2>/dev/null) || record=''	# nowhere to keep one
printf '%s\n' "$home" >"$work/home"
# What would refuse the record refuses the verb before its first write.
[ -z "$record" ] || [ ! -d "$(dirname "$record")" ] || must amap-put "$record" <"$work/home" >/dev/null
if [ -z "$apply" ]; then
	put "$stream"
else
	put --apply "$stream"
fi
if [ -n "$record" ]; then
	if [ -n "$apply" ]; then
		mkdir -p "$(dirname "$record")" || die "$record: the directory cannot be made"
		must amap-put --apply "$record" <"$work/home" >/dev/null
		printf 'recorded home %s in %s\n' "$home" "$record"
	else
		printf 'would record home %s in %s\n' "$home" "$record"
	fi
fi
[ -n "$apply" ] || closing_line
