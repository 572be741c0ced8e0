#!/bin/sh
# teardown - remove what install and the router made; the policy, the record and the lanes stay
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='teardown [--apply]'
read_apply "$@"
find_home
lock_home
must amap-tree teardown --home "$home" >"$work/stream"
if [ -e "$home/membership.json" ] || [ -L "$home/membership.json" ]; then
	must amap-membership list "$home/membership.json" >"$work/recorded"
	cut -d ' ' -f 1 "$work/recorded" >"$work/names"
	[ ! -s "$work/names" ] || {
		before_record "membership.json still records $(join "$work/names"): the record and the sandboxes stay as they are"
		printf '{"end":1}\n'
	} >>"$work/stream"
fi

put "$work/stream" >"$work/report"	# what is refused is refused before anything is done
# Nobody but us ends an embedded router; it would go on in directories that are gone.
if embedded && "$openshell" inspect amap-router </dev/null >"$work/router" 2>/dev/null &&
    grep -qF " $home/router-state " "$work/router"; then
	if [ -n "$apply" ]; then
		ask service stop amap-router
		[ "$asked" -eq 0 ] || refuse "the router could not be stopped: $(first_words)"
		printf 'stopped the router\n'
	else
		printf 'would stop the router\n'
	fi
fi
put ${apply:+--apply} "$work/stream"

# The home record goes when it names this home; one that cannot be used is left alone.
if record=$(amap-home --record 2>/dev/null) && [ -f "$record" ] && [ ! -L "$record" ] &&
    named=$(env -u AMAP_OPENSHELL_HOME amap-home 2>/dev/null) && [ "$named" = "$home" ]; then
	if [ -n "$apply" ]; then
		rm -f "$record" || die "$record: cannot be removed"
		printf 'removed the home record %s\n' "$record"
	else
		printf 'would remove the home record %s\n' "$record"
	fi
fi
[ -n "$apply" ] || closing_line
