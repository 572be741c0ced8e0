# beta takes no messages: the task is told to be held, and no turn begins.
SETTINGS=$WORK/refuse.json
jq '.crossSessionInbound = "refuse"' /opt/amap/payload/claude-settings.json >"$SETTINGS"
member beta
task 'Please list your files.'
until_true 120 grep -rq crossSessionInbound home/router-state
