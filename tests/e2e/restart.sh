# beta dies, daemon and all, while it works on a task; the task is not given to it again, the next one is.
member beta
task 'Please list your files, first.'
until_true 120 jq -es 'any(.who == "beta" and (.news.text | test("first")))' requests
pkill -KILL -f "$WORK/beta|payload/amap-main|claude|inbox-delivery" || :
until_true 20 sh -c '! pgrep -f "payload/[a]map-main"'
cp requests requests-before
: >requests
member beta
task 'Please list your files, second.'
until_true 120 jq -es 'any(.who == "beta" and (.news.text | test("second")))' requests
until_true 60 grep -rq 'uncertain, so it is not sent again' home/router-state
