#!/bin/sh
# setup.sh run|test - install the Debian packages that are lacking
#
# run: what it takes to build and to run the embedded fleet; test: what the
# tests take besides. Installs as root or by sudo; where neither can be had,
# prints the one line to run and exits 2.
set -eu
LC_ALL=C; export LC_ALL
prog=${0##*/}

run='gcc libc6-dev make bubblewrap libjq-dev libyaml-dev libbsd-dev libmd-dev libseccomp-dev'
test='bats bats-assert bats-support bats-file parallel shellcheck mandoc valgrind clang libclang-rt-14-dev
	strace jq procps util-linux busybox-static musl'

case ${1-} in
run) wanted=$run ;;
test) wanted="$run $test" ;;
*) printf 'usage: %s run|test\n' "$prog" >&2; exit 2 ;;
esac

# The end-to-end tests take a client from npm; who has an npm of another origin keeps it.
if [ "$1" = test ] && ! command -v npm >/dev/null 2>&1; then
	wanted="$wanted nodejs npm"
fi
# Some tests start a Docker engine of their own, which only root can.
if [ "$1" = test ] && [ "$(id -u)" -eq 0 ] && ! command -v dockerd >/dev/null 2>&1; then
	wanted="$wanted docker.io"
fi

missing=
for package in $wanted; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=absent
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

# install [sudo]. Word splitting is meant: package names hold no white space.
install() {
	printf '%s: installing%s\n' "$prog" "$missing" >&2
	# shellcheck disable=SC2086
	if "$@" apt-get -qq update >&2 && "$@" env DEBIAN_FRONTEND=noninteractive \
	    apt-get -qq install -y --no-install-recommends $missing >&2; then
		exit 0
	fi
	printf '%s: apt-get could not install%s: see its messages above\n' "$prog" "$missing" >&2
	exit 2
}

if [ "$(id -u)" -eq 0 ]; then
	install
elif command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
	install sudo
fi
printf '%s: packages are lacking and sudo cannot be had here; run this line as root, then start again:\n' "$prog" >&2
printf 'apt-get update && apt-get install -y --no-install-recommends%s\n' "$missing"
exit 2
