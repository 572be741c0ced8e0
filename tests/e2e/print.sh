# beta is a command that asks claude once for a turn: two tasks, one conversation.
member beta
for task in first second; do
	task "Please list your files, $task."
	n=$((${n:-0} + 1))
	export n
	until_true 120 sh -c '[ "$(ls home/instances/alpha/peer/notices | grep -c "^notice-")" -eq "$n" ]'
done
# The answer to a request is written after what it delivers.
until_true 60 sh -c '[ "$(ls home/instances/beta/outbox/results/*.json | wc -l)" -eq 2 ]'
