load common
load router

router() {
	amap-router --config home/router.json "$@"
}

# Markup and worse in everything that an agent can write.
hostile='</pre></article><script>alert(1)</script><img src=x onerror=\"alert(2)\">&lt;\u0000\u001b[31m\u202egnp.exe\u0085'

@test "console: members, what waits, what was said and the latest messages, each text escaped" {
	fleet '"peer_senders":{"beta":["alpha"],"ghost":[]},"peers":{"alpha":["gamma"],"gamma":["alpha"]}' alpha beta gamma
	start_router 60
	request alpha 1 beta ".draft.subject = \"one $hostile\" | .draft.subject |= gsub(\"[\\u0000-\\u001f\\u007f]\"; \"\") | .draft.body_text = \"first line\\nsecond $hostile\""
	request alpha 2 gamma ".draft.body_text = \"mail $hostile\""
	request gamma 3 beta ".draft.body_text = \"held $hostile\""
	eventually test -s home/instances/gamma/outbox/results/3.json
	eventually test -s home/instances/alpha/outbox/results/2.json
	mkdir -p home/instances/beta/outbox/ext/claude-code/outcomes
	id=$(jq -r .message_id home/instances/alpha/outbox/results/1.json)
	jq -nc --arg id "$id" '{outcome: "refused", ts: "t", tree: "peer", notice_id: $id, detail: "<b>"}' >o
	mv o home/instances/beta/outbox/ext/claude-code/outcomes/peer-"$id".json
	eventually test -s home/router-state/beta/outcomes/peer-"$id".refused.json
	kill -HUP "$router"
	eventually status_is .polls 2
	jq -nc --arg x "$(printf '<i>"%s"' "kernel")" '{kernel: $x, "<u>": {load: [0.5, 1]}}' >facts.json
	run -0 router console --html page.html --host-facts facts.json
	assert_output ""
	assert_equal "$(stat -c %a page.html)" 600

	# The only tags are our own, and nothing is fetched or run.
	assert_equal "$(grep -oE '<[^>]*>' page.html | sed -E 's/^<\/?([a-z!0-9]+).*/\1/' | sort -u | xargs)" \
	    "!doctype article body dd dl dt h1 h2 head html meta p pre style table td th title tr"
	run -1 grep -iE '<(script|img|iframe|link|a|form|b|i|u)[ >]|javascript:|onerror=["a-z]|https?:' page.html
	run -1 grep -P '[\x00-\x09\x0b-\x1f\x7f]|\xe2\x80\xae|\xc2\x85' page.html
	grep -qF "default-src 'none'" page.html
	grep -qF 'second &#60;/pre&#62;&#60;/article&#62;&#60;script&#62;alert(1)&#60;/script&#62;&#60;img src=x onerror=&#34;alert(2)&#34;&#62;&#38;lt;\u0000\u001b[31m\u202egnp.exe\u0085' page.html

	# What it says.
	grep -qF '<p>healthy: the last poll was' page.html
	grep -qF '<tr><th>alpha</th><td>alpha@fleet.example</td><td></td><td>gamma</td><td>2</td><td>2</td><td>0</td><td>0</td>' page.html
	grep -qF '<tr><th>gamma</th><td>gamma@fleet.example</td><td></td><td>alpha</td><td>1</td><td>0</td><td>0</td><td>1</td><td>0</td><td>0</td><td>1</td>' page.html
	grep -qF "<td>refused</td><td>$id</td><td>alpha</td><td>beta</td>" page.html
	grep -qF '<dt>from</dt><dd>gamma</dd><dt>request</dt><dd>3</dd><dt>to</dt><dd>[&#34;beta@fleet.example&#34;]</dd>' page.html
	grep -qF '** INERT EDGE  ghost' page.html
	grep -qF '<tr><th>kernel</th><td>&#60;i&#62;&#34;kernel&#34;</td></tr>' page.html
	grep -qF '<tr><th>&#60;u&#62;</th><td>{&#34;load&#34;:[0.5,1]}</td></tr>' page.html
	assert_equal "$(grep -c '<article>' page.html)" 4		# one waits; a task, a mail, and the router's own notice
}

@test "console: hostile lanes, no status, many messages; it changes nothing and needs no lock" {
	fleet '"task_graph":"all"' alpha beta
	run -0 router console --html -
	assert_line --partial 'unhealthy: no status document'
	start_router 60
	for i in $(seq -w 60); do put alpha "$i" "{\"contract_version\":\"2\",\"req_id\":\"$i\",\"draft\":{\"to\":[\"beta@fleet.example\"],\"subject\":\"\",\"body_text\":\"text $i\"}}"; done
	eventually test -s home/instances/alpha/outbox/results/60.json
	long=$(jq -r .message_id home/instances/alpha/outbox/results/60.json)
	messages=home/instances/beta/peer/messages
	jq -c '.body_text = "x" * 100000' $messages/notice-"$long".json >m && mv m $messages/notice-"$long".json
	set -- $(for i in 55 56 57 58; do jq -r .message_id home/instances/alpha/outbox/results/$i.json; done)
	rm $messages/notice-"$1".json && mkfifo $messages/notice-"$1".json
	ln -sf ../../../../router.json $messages/notice-"$2".json
	truncate -s 10G $messages/notice-"$3".json
	printf '{"body_text":7,"subject":["<b>"]}' >$messages/notice-"$4".json
	find home -type f -printf '%p %s %T@\n' | sort >before
	run -0 --separate-stderr router console --html -
	[ -z "$stderr" ]
	assert_equal "$(grep -c '<article>' <<<"$output")" 50
	assert_line '<p>and 10 more</p>'
	assert_line --partial '[96000 bytes more]'
	refute_output --partial state_dir
	assert_line --partial '[&#34;&#60;b&#62;&#34;]'
	[ "${#output}" -lt 100000 ]
	find home -type f -printf '%p %s %T@\n' | sort | diff before -
}

@test "console: usage, facts that are none, a page that cannot be written" {
	fleet '' alpha
	run -2 router console
	run -2 router console --html page.html more
	printf '[]' >facts.json
	run -2 --separate-stderr router console --html page.html --host-facts facts.json
	assert_equal "$stderr" 'amap-router: facts.json: not an object'
	run -2 --separate-stderr router console --html page.html --host-facts absent.json
	assert_equal "$stderr" 'amap-router: absent.json: No such file or directory'
	run -2 --separate-stderr router console --html none/page.html
	assert_equal "$stderr" 'amap-router: none/page.html: No such file or directory'
	run -2 --separate-stderr router console --html "$place"
	run -2 sh -c 'amap-router --config home/router.json console --html - >/dev/full'
	[ ! -e page.html ]
}

@test "a page takes the place of the last one whole; what is no file is left alone" {
	fleet '"task_graph":"all"' alpha beta
	mkfifo fifo
	for page in "peers --html" "console --html"; do
		echo last >page.html
		ln page.html kept
		run -0 --separate-stderr router $page page.html
		assert_equal "$(cat kept)" last
		grep -q '</html>' page.html
		run -2 --separate-stderr timeout 10 amap-router --config home/router.json $page fifo
		assert_equal "$stderr" "amap-router: fifo: File exists"
		[ -p fifo ]
		rm kept
	done
}
