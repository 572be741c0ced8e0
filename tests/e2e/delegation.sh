# alpha is told to task beta, which does the work and replies; alpha gets the reply as a turn.
member beta
until_true 60 sh -c 'ls "$WORK"/beta/.claude/sessions/*.key'
member alpha "'TASK beta@fleet.example: Please list your files.'"
until_true 120 sh -c '[ "$(ls home/instances/alpha/peer/notices | grep -c "^notice-")" -eq 1 ]'
until_true 60 jq -es 'any(.who == "alpha" and (.news.text | test("My files:")))' requests
until_true 60 sh -c 'ls home/instances/beta/outbox/results/*.json'
