#!/bin/sh
# list - one line for each sandbox of the workspace and each recorded member; changes nothing
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='list'
[ $# -eq 0 ] || verb_usage "$1: unexpected"
find_home
load_fleet
why=''
list_sandboxes
if [ -n "$why" ]; then
	printf 'UNKNOWN: %s\n' "$why"
	exit 1
fi
sed -n "s|^$workspace/||p" "$work/listed" >"$work/here"
clean=yes
if [ -e "$home/membership.json" ] || [ -L "$home/membership.json" ]; then
	must amap-membership list "$home/membership.json" >"$work/recorded"
else
	printf 'membership.json is absent (nothing was ever recorded in this home)\n'
	: >"$work/recorded"
	clean=''
fi

# row NAME RECORDED-ID: the line, and whether it is clean.
row() {
	if [ -z "$2" ]; then
		printf '%s: not a member (no record in membership.json)\n' "$1"
	elif ! is_line "$1" "$work/here"; then
		printf '%s: recorded but absent (recorded ID %s)\n' "$1" "$2"
	else
		find_sandbox "$1"
		case $state in
		present)
			if [ "$id" = "$2" ]; then
				printf '%s: member (%s)\n' "$1" "$id"
				return 0
			fi
			printf '%s: ID MISMATCH (recorded %s, sandbox has %s)\n' "$1" "$2" "$id" ;;
		absent) printf '%s: recorded but absent (recorded ID %s)\n' "$1" "$2" ;;
		*) printf '%s: UNKNOWN (%s)\n' "$1" "$why" ;;
		esac
	fi
	clean=''
}

{ tr -c '[:print:]\n' '?' <"$work/here"; cut -d ' ' -f 1 "$work/recorded"; } | sort -u >"$work/rows"
while IFS= read -r name; do
	row "$name" "$(id_of "$name")"
done <"$work/rows"
[ -n "$clean" ]
