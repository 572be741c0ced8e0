# two sessions run beside one daemon: nothing is sent to either.
CLAUDE_DIR=$WORK/two
mkdir -p "$CLAUDE_DIR"
cat >"$CLAUDE_DIR/claude" <<END
#!/bin/sh
[ "\$1" != --version ] || exec "$CLAUDE_BIN/claude" --version
tail -f /dev/null | script -qefc "$CLAUDE_BIN/claude --dangerously-skip-permissions --settings /opt/amap/payload/claude-settings.json" /dev/null >/dev/null 2>&1 &
exec "$CLAUDE_BIN/claude" "\$@"
END
chmod +x "$CLAUDE_DIR/claude"
member beta
until_true 60 sh -c '[ "$(ls "$WORK"/beta/.claude/sessions/*.key | wc -l)" -eq 2 ]'
task 'Please list your files.'
until_true 120 jq -e '.totals.peer_ambiguous_target == 1' home/router-state/status.json
sleep 4
