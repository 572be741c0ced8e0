#!/bin/sh
# router-start.sh - start the router in a container, or run one of its commands in one
#
# usage: router-start.sh --config FILE [--detach] [--interval SECONDS] [--user UID:GID] [--image IMAGE]
#                        [--name NAME] [--docker PROGRAM] [-- COMMAND [ARGUMENT]...]
#
# The one place that knows how docker is called for the router; see amap-router(1).
set -eu
LC_ALL=C; export LC_ALL
umask 022
prog=${0##*/}
top=$(dirname "$(dirname "$(readlink -f "$0")")")
programs=${AMAP_BUILD_DIR:-$top/build}
[ -d "$programs/bin" ] || programs=$top
PATH=$programs/bin:$PATH
usage="usage: $prog --config FILE [--detach] [--interval SECONDS] [--user UID:GID] [--image IMAGE]
                       [--name NAME] [--docker PROGRAM] [-- COMMAND [ARGUMENT]...]"

die() {
	printf '%s: %s\n' "$prog" "$1" >&2
	exit 2
}
bad_usage() {
	printf '%s: %s\n%s\n' "$prog" "$1" "$usage" >&2
	exit 2
}

config='' detach='' interval=${ROUTER_INTERVAL:-5} user=$(id -u):$(id -g) docker=docker
image=${IMAGE:-amap-router-local} name=${CONTAINER:-}
while [ $# -gt 0 ]; do
	case $1 in
	--config | --interval | --user | --image | --name | --docker)
		[ $# -gt 1 ] || bad_usage "$1: a value must follow"
		case $1 in
		--config) config=$2 ;;
		--interval) interval=$2 ;;
		--user) user=$2 ;;
		--image) image=$2 ;;
		--name) name=$2 ;;
		--docker) docker=$2 ;;
		esac
		shift 2 ;;
	--detach | -d) detach=yes; shift ;;
	--help) printf '%s\n' "$usage"; exit 0 ;;
	--) shift; break ;;
	*) bad_usage "$1: unexpected" ;;
	esac
done
[ -n "$config" ] || bad_usage '--config: needed'
config=$(readlink -f -- "$config") || config=
if [ ! -f "$config" ] || [ ! -r "$config" ]; then die '--config: not a file that can be read'; fi
case $config in *:*) die "$config: docker takes no path with a colon" ;; esac
case $user in
*[!0-9:]* | :* | *: | *:*:*) bad_usage "--user $user: not UID:GID" ;;
0:* | 00*) die '--user: needed; the router does not run as root' ;;
*:*) ;;
*) bad_usage "--user $user: not UID:GID" ;;
esac
case ${1-run} in
run | once | status | peers | matrix | console | provision | mounts | check-config | check) ;;
*) bad_usage "$1: not a command for a container" ;;
esac
if [ -z "$name" ] && { [ -n "$detach" ] || [ "${1-run}" = run ]; }; then
	name=amap-router-local
fi

work=$(mktemp -d) || die 'no scratch directory; is TMPDIR writable?'
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM

# A file and no pipe: who prints the list says by its exit status whether it is whole.
amap-router --config "$config" mounts >"$work/mounts" || exit 2

# ---- the image: of this very program and these very libraries ----

program=$(command -v amap-router) || die 'amap-router: not found; build this tree with make'
recipe=$top/image/router.Dockerfile
mkdir "$work/context"
cp -L "$program" "$work/context/amap-router"
ldd "$program" >"$work/libraries" || die "$program: its libraries cannot be told"
sed -n 's,^[^/]*\(/.*\) (0x[0-9a-f]*)$,\1,p' "$work/libraries" | while IFS= read -r library; do
	mkdir -p "$work/context${library%/*}"
	cp -L "$library" "$work/context$library"
done
find "$work/context" -type f -exec chmod 0755 {} +
digest=$(cd "$work/context" && find . -type f -exec sha256sum {} + | sort | cat - "$recipe" | sha256sum)
digest=${digest%% *}
built=$("$docker" image inspect --format '{{index .Config.Labels "amap-openshell.router"}}' "$image" 2>/dev/null) || built=
if [ "$built" != "$digest" ]; then
	"$docker" build --label "amap-openshell.router=$digest" -t "$image" -f "$recipe" "$work/context" >"$work/said" 2>&1 ||
		{ cat "$work/said" >&2; die "$image: docker could not build it"; }
fi

# ---- the container: no network, no authority, and only what it needs to see ----

covered='' tab=$(printf '\t')
set -- "$image" "$@"
sed '1!G;h;$!d' "$work/mounts" >"$work/last-first"		# each goes before the words that are there
while IFS=$tab read -r path access; do
	case $path in *:*) die "$path: docker takes no path with a colon" ;; esac
	case $config in "${path%/}"/*) covered=yes ;; esac
	set -- --volume "$path:$path:$access" "$@"
done <"$work/last-first"
# By itself only where it must be: a file that is mounted alone goes on showing the old one after a rename.
[ -n "$covered" ] || set -- --volume "$config:$config:ro" "$@"
set -- --network none --user "$user" --read-only --cap-drop ALL --security-opt no-new-privileges \
    --env "ROUTER_CONFIG=$config" --env "ROUTER_INTERVAL=$interval" "$@"
[ -z "$name" ] || set -- --name "$name" "$@"
if [ -n "$detach" ]; then
	set -- --detach --restart unless-stopped "$@"
else
	# With a terminal on one side only, messages would stand in the middle of a document.
	[ ! -t 0 ] || [ ! -t 1 ] || set -- --tty "$@"
	set -- --rm --interactive "$@"
fi
rm -rf "$work"
exec "$docker" run "$@"
