#!/bin/sh
# files.sh - the agent of the demo: it lists its workspace when asked to
#
# amap-session runs it once for each turn, without arguments: the text on
# standard input, AMAP_TURN_* in the environment (amap-session(1)).
#
# files.sh task ADDRESS TEXT...   submits a task of its own and prints its number
set -eu
LC_ALL=C; export LC_ALL
prog=files.sh
self=$(readlink -f -- "$0")
OUTBOX_DIR=$AMAP_OUTBOX_DIR; export OUTBOX_DIR

# send ADDRESS TEXT [OPTION VALUE]: prints the number of the request.
send() {
	to=$1 text=$2
	shift 2
	answer=$("${self%/*}/bin/inbox-submit" submit --to "$to" --body "$text" "$@")
	printf '%s\n' "$answer" | sed -n 's/^Submitted request \([0-9]*\) .*/\1/p'
}

if [ $# -gt 0 ]; then
	if [ "$1" != task ] || [ $# -lt 3 ]; then
		printf 'usage: %s [task ADDRESS TEXT...]\n' "$prog" >&2
		exit 2
	fi
	shift
	to=$1
	shift
	send "$to" "$*"
	exit
fi

cd "$HOME"
[ -e notes.txt ] || printf 'Written by %s for %s.\n' "$prog" "${AMAP_SELF_ADDRESS-nobody}" >notes.txt
body=$(cat)

case $AMAP_TURN_KIND in
mail)
	printf '%s\n' "$body" >>mail.log
	exit ;;
peer) ;;
*)
	printf '%s: a turn of kind %s is none of its business\n' "$prog" "$AMAP_TURN_KIND" >&2
	exit ;;
esac

if [ -n "${AMAP_TURN_IN_REPLY_TO-}" ]; then
	printf 'from %s, in reply to %s:\n%s\n' "$AMAP_TURN_FROM" "$AMAP_TURN_IN_REPLY_TO" "$body" >>replies.log
	exit
fi

case $(printf '%s' "$body" | tr '[:upper:]' '[:lower:]') in
*list*file*) answer=$(printf 'The files of my workspace:\n'; ls -p) ;;
*) answer='I can list the files of my workspace, and nothing else.' ;;
esac
# A reply names the message that it answers; without its id the router could not place it.
id=${AMAP_TURN_ID-}
if [ -z "$id" ]; then
	echo 'files.sh: a task without an id cannot be answered' >&2
	exit 0
fi
send "$AMAP_TURN_FROM" "$answer" --subject "re: ${AMAP_TURN_SUBJECT-}" --reply-to-id "$id" >/dev/null
