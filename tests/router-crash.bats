# Every point at which the router can die or a call can fail, one after the other.
load common
load router

setup_file() {
	cc -O1 -shared -fPIC -w -D_GNU_SOURCE -o "$BATS_FILE_TMPDIR/fault.so" "$BATS_TEST_DIRNAME/tools/fault.c" -ldl
	cc -O1 -w -D_GNU_SOURCE -o "$BATS_FILE_TMPDIR/point" "$BATS_TEST_DIRNAME/tools/point.c"
}

setup() {
	in_memory
	shopt -s globstar
	export ASAN_OPTIONS=detect_leaks=0	# the router is started thousands of times here
}

none() { [ -z "$(compgen -G "$1")" ]; }

# every WHAT... -- INVARIANT ARGUMENT...: for each call of the router, run with these arguments, to which
# WHAT can happen: the home as prepared, the router with that fault, once more without, then INVARIANT.
every() {
	local whats=() tried=() rc=0
	while [ "$1" != -- ]; do whats+=("$1"); shift; done
	shift
	mv home prepared
	# Each in a directory of its own, at the same time; the paths that are written down follow.
	for what in "${whats[@]}"; do
		mkdir "at-$what"
		cp -a prepared "at-$what"
		sed -i "s|$place/home|$place/at-$what/home|g" "at-$what"/prepared/{router.json,router-state/*/first-seen.json}
		(cd "at-$what" && points "$what" "$@") 3>&- &
		tried+=($!)
	done
	for pid in "${tried[@]}"; do wait "$pid" || rc=1; done
	rm -rf at-*
	return "$rc"
}

points() {
	local what=$1 invariant=$2 last n step=1
	shift 2
	# Starting is what a sanitized router takes longest for: there every third point has to do.
	[ "${AMAP_BUILD_DIR##*/}" != sanitized ] || step=3
	for ((n = 0; n == 0 || n <= last; n += n > 0 ? step : 1)); do
		if ! point "$n" "$what" "$@" || ! $invariant; then
			echo "after $what at call $n of $last:" "$(cut -c1-200 second checked)" >&2
			return 1
		fi
		[ "$n" -gt 0 ] || read -r last <count
	done
	[ "$last" -gt 10 ]
}

point() {
	"$BATS_FILE_TMPDIR/point" "$BATS_FILE_TMPDIR/fault.so" "$1" "$2" "$BIN/amap-router" \
	    "$BIN/amap-router" --config home/router.json "${@:3}"
}

# Without a process for each question: there are thousands.
count() {
	[ -e "$1" ] && n=$# || n=0
}

files() {
	local where sum=0 n
	for where; do
		count home/instances/"$where"/notices/notice-*.json
		sum=$((sum + n))
	done
	placed=$sum
}

said() {
	local text
	verdict=
	[ -e home/instances/"$1"/outbox/results/"$2".json ] && read -r -d '' text <home/instances/"$1"/outbox/results/"$2".json
	[[ $text =~ \"outcome\":\"([a-z_]+)\".*\"reason_code\":\"([a-z_]+)\" ]] || return
	verdict="${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
}

# The result of alpha's request 1 fits the number of notices, and nothing is left half done.
answered() {
	said alpha 1 || return
	[ ! -e home/instances/alpha/outbox/req-1.json ] && [ ! -e home/instances/alpha/outbox/req-1.attachments ] || return
	none 'home/**/.*.tmp' || return
	files ${where:-beta/peer beta/inbox gamma/inbox}
	case $verdict in
	"accepted partial_delivery") [ "$placed" = 1 ] ;;
	accepted*) [ "$placed" = "$wanted" ] ;;
	"queued_for_human delivery_failed") [ "$failing" = yes ] && [ "$placed" = 0 ] ;;
	*) false ;;
	esac
}

setup_tasks() {
	fleet '"peer_senders":{"beta":["alpha"]}' alpha beta
	once 2>/dev/null
	wanted=1
	failing=no
}

# ./home as prepared, and a router that was killed after beta's notice, before the answer.
killed_after_notice() {
	local n
	for ((n = 1; ; n++)); do
		rm -rf home
		cp -a prepared home
		FAULT_AT=$n FAULT_DO=kill LD_PRELOAD=$BATS_FILE_TMPDIR/fault.so "$BIN/amap-router" --config home/router.json once 2>/dev/null || true
		files beta/peer
		[ "$placed" = 0 ] || break
	done
}

@test "B55 killed anywhere in a delegation: afterwards one notice, one answer" {
	setup_tasks
	request alpha 1 beta
	every kill -- answered once
}

@test "any call failing in a delegation: afterwards one notice and its answer, or none and delivery_failed" {
	setup_tasks
	failing=yes
	request alpha 1 beta
	every EIO ENOSPC EMFILE EINTR -- answered once
}

@test "killed anywhere in a delegation with attachments" {
	setup_tasks
	mkdir home/instances/alpha/outbox/req-1.attachments
	printf hello >home/instances/alpha/outbox/req-1.attachments/0
	request alpha 1 beta ".draft.attachments = [{filename: \"f\", media_type: \"m\", size_bytes: 5, sha256: \"$(printf hello | sha256sum | cut -d' ' -f1)\"}]"
	every kill -- answered once
}

@test "killed anywhere, or any call failing, in a reply" {
	fleet '"peer_senders":{"alpha":["gamma"]}' alpha gamma
	once 2>/dev/null
	request gamma 9 alpha
	once
	wanted=1
	failing=yes
	where=gamma/peer
	request alpha 1 gamma ".in_reply_to = \"$(jq -r .message_id home/instances/gamma/outbox/results/9.json)\""
	every kill EIO ENOSPC EMFILE EINTR -- answered once
}

@test "killed anywhere in a mail to two: both get it, once" {
	fleet '"mail_graph":"all"' alpha beta gamma
	once 2>/dev/null
	request alpha 1 beta,gamma
	wanted=2
	failing=no
	every kill -- answered once
}

@test "any call failing in a mail to two: no one gets it twice, and the answer says who did" {
	fleet '"mail_graph":"all"' alpha beta gamma
	once 2>/dev/null
	request alpha 1 beta,gamma
	wanted=2
	failing=yes
	every EIO ENOSPC EMFILE EINTR -- answered once
}

@test "killed anywhere while a request is held, and while it is released: delivered once, told once" {
	fleet '"peer_senders":{"alpha":["beta"]}' alpha beta
	once 2>/dev/null
	request alpha 1 beta
	held_once() {
		said alpha 1
		[ "$verdict" = "queued_for_human recipient_not_allowlisted" ] &&
		    cmp -s home/router-state/alpha/held/req-1.json home/instances/alpha/outbox/processed/req-1.json
	}
	every kill EIO ENOSPC -- held_once once

	rm -rf home && mv prepared home && once
	mkdir -p home/router-state/.decisions
	jq -nc --arg d "$(sha256sum <home/router-state/alpha/held/req-1.json | cut -d' ' -f1)" \
	    '{schema: 1, instance: "alpha", req_id: "1", decision: "release", as: "task", digest: $d}' >'home/router-state/.decisions/alpha~1.json'
	released_once() {
		files beta/peer && [ "$placed" = 1 ] && files alpha/inbox && [ "$placed" = 1 ] || return
		none 'home/router-state/alpha/held/*' && none 'home/router-state/.decisions/*~*' &&
		    grep -q '"decision":"release"' home/router-state/alpha/decided/req-1.json
	}
	every kill -- released_once once
}

@test "killed anywhere, or any call failing, in a reset: run again it ends as never seen" {
	setup_tasks
	request alpha 1 beta
	request alpha 2 omega
	once
	request alpha 3 beta
	echo x >home/instances/alpha/inbox/notices/foreign
	never_seen() {
		[ "$(find home/router-state/alpha -mindepth 1 | sort | xargs)" = "home/router-state/alpha/audit home/router-state/alpha/audit/log.jsonl" ] &&
		    [ "$(find home/instances/alpha -type f)" = "" ] && [ -d home/instances/alpha/outbox/processed ] &&
		    [ "$(notices beta peer)" = 1 ]
	}
	every kill EIO ENOSPC EMFILE EINTR -- never_seen reset alpha --yes
}

@test "killed anywhere in an outcome: recorded once, the file is gone, the sender is told at most once" {
	setup_tasks
	request alpha 1 beta
	once
	id=$(jq -r .message_id home/instances/alpha/outbox/results/1.json)
	mkdir -p home/instances/beta/outbox/ext/claude-code/outcomes
	jq -nc --arg id "$id" '{outcome: "denied", ts: "t", tree: "peer", notice_id: $id}' >home/instances/beta/outbox/ext/claude-code/outcomes/peer-"$id".json
	recorded() {
		files alpha/inbox
		none 'home/instances/beta/outbox/ext/claude-code/outcomes/*' && [ "$placed" -le 1 ] &&
		    [ -s home/router-state/beta/outcomes/peer-"$id".denied.json ]
	}
	every kill EIO ENOSPC -- recorded once
}

@test "what is said is durable first: file, name, and only then the next step" {
	setup_tasks
	request alpha 1 beta
	FAULT_TRACE=$PWD/trace LD_PRELOAD=$BATS_FILE_TMPDIR/fault.so "$BIN/amap-router" --config home/router.json once
	# A file is flushed before it gets its name; what an earlier step says, and its name, before the next begins.
	awk -v home="$PWD/home/" 'function durable(what, i) {
		for (i in dirty) { print "not flushed before " what ": " i; bad = 1 }
		delete dirty }
	    $1 == "fsync" { flushed[$2] = 1; delete dirty[$2] }
	    $1 == "write" || $1 == "pwrite" { delete flushed[$2]; if ($2 ~ /log.jsonl$/) dirty[$2] }
	    $1 == "pwrite" && $2 ~ /intent$/ { dirty[$2] }
	    $1 == "create" && ($2 ~ /state\/alpha\/results|outbox\/results/) { durable($2) }
	    $1 == "rename" {
		if ($3 ~ /peer/) { if (home "router-state/.intent" in dirty) { print "intent not flushed before " $3; bad = 1 } }
		if ($3 ~ /processed/) { durable($3); next }
		if (!flushed[$2]) { print "renamed unflushed: " $0; bad = 1 }
		dir = $3; sub("/[^/]*$", "", dir); dirty[dir]; n++ }
	    END { exit bad || n != 5 }' trace
	steps=$(grep -oE '^rename .*|^fsync .*/\.intent$|^write .*/log\.jsonl$' trace | sed -E 's/^rename [^ ]* //; s/^(fsync|write) //' |
	    sed -E "s|$PWD/home/||; s/notice-[0-9a-f]{32}/N/" | xargs -n1)
	assert_equal "$steps" "router-state/.intent
instances/beta/peer/messages/N.json
router-state/beta/delivered/N.json
router-state/beta/audit/log.jsonl
instances/beta/peer/notices/N.json
router-state/alpha/results/1.json
instances/alpha/outbox/results/1.json
instances/alpha/outbox/processed/req-1.json"
}

@test "a loss of power that kept the notice and not what came before it: all of it is written again, under its id" {
	setup_tasks
	request alpha 1 beta
	mv home prepared
	for lost in home/instances/beta/peer/messages/notice-N.json home/router-state/beta/delivered/notice-N.json \
	    home/router-state/beta/audit/log.jsonl; do
		killed_after_notice
		id=$(basename home/instances/beta/peer/notices/notice-*.json .json)
		[ ! -e home/router-state/alpha/results/1.json ]
		rm "${lost/notice-N/$id}"
		once 2>/dev/null
		answered
		assert_equal "$(ls home/instances/beta/peer/notices home/instances/beta/peer/messages home/router-state/beta/delivered | grep -c "$id")" 3
		assert_equal "$(jq -r .notice_id home/router-state/beta/audit/log.jsonl | sort -u)" "${id#notice-}"
		assert_equal "$(jq -r .message_id home/instances/alpha/outbox/results/1.json)" "${id#notice-}"
		run -0 amap-router check home/router-state
	done
}

@test "a look at a file that fails at first sight: what was staged is quarantined all the same" {
	fleet '"peer_senders":{"beta":["alpha"]}' alpha beta
	request alpha 1 beta
	mv home prepared
	export FAULT_ON=stat
	last=1
	for ((n = 1; n <= last; n++)); do
		point "$n" EIO once
		read -r last <count
		assert_equal "$n $(verdict alpha 1)" "$n rejected quarantined_pre_approval"
		files beta/peer
		assert_equal "$placed" 0
	done
	[ "$last" -gt 3 ]
}

@test "what is in hand and cannot be read now is not decided afresh: one notice, whatever fails to open" {
	setup_tasks
	request alpha 1 beta
	mv home prepared
	killed_after_notice
	cp -a home half
	FAULT_TRACE=$PWD/trace FAULT_ON=open LD_PRELOAD=$BATS_FILE_TMPDIR/fault.so "$BIN/amap-router" --config home/router.json once 2>/dev/null
	at=$(grep '^open ' trace | grep -n -m 1 'router-state/\.intent$' | cut -d: -f1)
	for what in EMFILE EIO; do
		rm -rf home
		cp -a half home
		run -2 --separate-stderr env FAULT_ON=open FAULT_AT="$at" FAULT_DO="$what" LD_PRELOAD="$BATS_FILE_TMPDIR/fault.so" \
		    "$BIN/amap-router" --config home/router.json once
		[[ $stderr == *"amap-router: $PWD/home/router-state/.intent: "* ]]
		once 2>/dev/null
		answered
	done
	head -c 100 /dev/zero >home/router-state/.intent	# what a loss of power may leave
	run -0 --separate-stderr once
}

@test "a flush that fails is not tried again and then believed: the answer waits" {
	setup_tasks
	request alpha 1 beta
	mv home prepared
	export FAULT_ON=fsync
	doubts=0
	last=1
	for ((n = 1; n <= last; n++)); do
		rm -rf home
		cp -a prepared home
		FAULT_AT=$n FAULT_DO=EIO FAULT_COUNT=count LD_PRELOAD=$BATS_FILE_TMPDIR/fault.so \
		    "$BIN/amap-router" --config home/router.json once 2>log
		[ "$n" -gt 1 ] || read -r last <count
		grep -q 'the notice is visible, tried again later' log || continue
		doubts=$((doubts + 1))
		[ ! -e home/router-state/alpha/results/1.json ]
		once 2>/dev/null
		answered
	done
	assert_equal "$doubts" 4	# messages, ledger, log, notices
}
