#!/bin/sh
# claude.sh - the agent that asks Claude Code once for each turn
#
# amap-session runs it without arguments: the text on standard input, AMAP_TURN_*
# in the environment (amap-session(1)). `claude -p` does the work, in one
# conversation that goes on from turn to turn; what it prints is the reply.
# Needs in the sandbox: claude, and ANTHROPIC_API_KEY.
set -eu
LC_ALL=C; export LC_ALL
prog=claude.sh
self=$(readlink -f -- "$0")
here=${self%/*}
OUTBOX_DIR=$AMAP_OUTBOX_DIR; export OUTBOX_DIR
CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1; export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC

# What the sender wrote is on standard input only: nothing of it is said here.
case $AMAP_TURN_KIND in
peer)
	if [ -n "${AMAP_TURN_IN_REPLY_TO-}" ]; then
		role="This is the answer of $AMAP_TURN_FROM to a message of yours. What you print is read by nobody."
	else
		role="This is a task from $AMAP_TURN_FROM. What you print is sent back as the answer: do not submit one yourself."
	fi ;;
mail) role='Mail has come. Read it with the inbox tools. What you print is read by nobody.' ;;
*)
	printf '%s: a turn of kind %s is none of its business\n' "$prog" "$AMAP_TURN_KIND" >&2
	exit ;;
esac
[ "$AMAP_TURN_TRY" -eq 1 ] || role="$role This is try $AMAP_TURN_TRY: look first what an earlier one has done."

cd "$HOME"
set -- --append-system-prompt "You are ${AMAP_SELF_ADDRESS-an agent}, without anybody at the keyboard. $role"
for conversation in "$HOME"/.claude/projects/*/*.jsonl; do
	[ ! -e "$conversation" ] || set -- --continue "$@"
	break
done
# Nothing that an earlier turn wrote into this home is taken for settings.
answer=$(claude -p --dangerously-skip-permissions --setting-sources "" \
    --strict-mcp-config --mcp-config "$here/mcp-servers.json" "$@")

if [ "$AMAP_TURN_KIND" = peer ] && [ -z "${AMAP_TURN_IN_REPLY_TO-}" ]; then
	printf '%s' "${answer:-(no answer)}" |
	    "$here/bin/inbox-submit" submit --to "$AMAP_TURN_FROM" --subject "re: ${AMAP_TURN_SUBJECT-}" \
	    ${AMAP_TURN_ID:+--reply-to-id "$AMAP_TURN_ID"} >/dev/null
fi
