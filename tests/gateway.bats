load common

# verdicts FILE: the three words' first letters, and what is said about UNKNOWN.
verdicts() {
	rc=0
	amap-probe-gateway --rows "$1" >rows 2>err || rc=$?
	[ ! -s err ] || return
	got=$(cut -c1 rows | tr -d '\n')
	[ "$rc" -eq "$([ "$got" = PPP ] && echo 0 || echo 1)" ] || return
	[ "$got" != UUU ] || got="UUU $(sed -n '1s/.* (\(.*\))$/\1/p' rows)"
	printf '%s\n' "$got"
}

@test "the programs answer the usual options" {
	usage_is_sound amap-probe-gateway
	usage_is_sound amap-render-gateway
}

@test "every recorded gateway.toml is judged as recorded" {
	[ -n "${AMAP_GOLDEN_DIR-}" ] || skip "AMAP_GOLDEN_DIR is not set"
	jq -r '.cases[] | "\(.case) \(.file // "-") \(.exit)", (.rows[] | "\(.[0]) \(.[1])")' \
	    "$AMAP_GOLDEN_DIR/gateway-config/cases.json" >cases
	n=0
	awk 'NR % 4 == 1' cases >heads
	while read -r case file exit <&9; do
		echo "case $case"
		n=$((n + 1))
		sed -n "$((4 * n - 2)),$((4 * n))p" cases | while read -r verdict setting; do
			printf '%-8s %s\n' "$verdict" "$setting"
		done >want
		case $case in
		nowhere) set -- ;;
		*) set -- "$AMAP_GOLDEN_DIR/gateway-config/$file" ;;
		esac
		run "-$exit" amap-probe-gateway --rows "$@"
		printf '%s\n' "$output" | sed 's/ (.*//' | cmp - want
	done 9<heads
	[ "$n" -eq 10 ]
}

@test "the fragments have the recorded settings, line by line" {
	[ -n "${AMAP_GOLDEN_DIR-}" ] || skip "AMAP_GOLDEN_DIR is not set"
	jq -r '.fragment_lines_printed_first[]' "$AMAP_GOLDEN_DIR/gateway-config/cases.json" >want
	amap-render-gateway --home /srv/amap | grep -v -e '^#' -e '^$' | cmp - want
}

@test "what the renderer prints is what the probe wants, whatever the home is called" {
	for home in /srv/amap '/srv/a"b\c' /srv/café; do
		amap-render-gateway --home "$home" >gateway.toml
		run -0 amap-probe-gateway --home "$home" gateway.toml
		assert_equal "$(printf '%s\n' "$output" | grep -c '"outcome":"PASS"')" 4
		assert_line '{"end":4}'
	done
	run -1 amap-probe-gateway --home /srv/other gateway.toml
	assert_line --partial '"outcome":"FAIL","expected":[],"actual":["grpc_endpoint = \"unix:///srv/other/run/interceptor.sock\""]'
}

@test "B58 a home too deep for its interceptor's socket is refused with both lengths" {
	home=/srv/$(printf 'd%.0s' $(seq 81))
	run -0 amap-render-gateway --home "$home"	# 107 bytes
	run -2 amap-render-gateway --home "${home}d"
	assert_output "amap-render-gateway: ${home}d/run/interceptor.sock: the path of a socket has at most 107 bytes, this one has 108: choose a shorter --home"
	run -0 amap-render-gateway --files
}

@test "our own files are judged by what TOML means, and UNKNOWN names the line" {
	awk '/^=== /{ if (out) close(out); out = sprintf("%03d.toml", ++n); print substr($0, 5) >"titles"; printf "" >out; next }
	    { print >out }' "$DATA/gateway/cases.txt"
	n=0
	while read -r want rest <&9; do
		n=$((n + 1))
		[ "$want" != UUU ] || want="UUU $rest"
		echo "case $n: $rest"
		assert_equal "$(verdicts "$(printf '%03d.toml' "$n")")" "$want"
	done 9<titles
	[ "$n" -eq "$(grep -c "^=== " "$DATA/gateway/cases.txt")" ]
}

@test "a byte order mark and lines that end in CR LF are TOML" {
	printf '\357\273\277[openshell.drivers.docker]\r\nallow_driver_config = true\r\nenable_bind_mounts = true # x\r\nresource_admission.enabled = false' >a.toml
	assert_equal "$(verdicts a.toml)" PPP
}

@test "bytes that are no text, a NUL and a bare CR are UNKNOWN with their line" {
	printf 'a = 1\nb = "\300\200"\n' >a.toml
	assert_equal "$(verdicts a.toml)" "UUU line 2: not UTF-8"
	printf 'a = 1\n\0\n' >a.toml
	assert_equal "$(verdicts a.toml)" "UUU line 2: a NUL byte"
	printf 'a = 1\rb = 2\n' >a.toml
	assert_equal "$(verdicts a.toml)" "UUU line 1: more text where the line should end"
	printf 'a = 1 # \001\n' >a.toml
	assert_equal "$(verdicts a.toml)" "UUU line 1: a control character in a comment"
	printf 'a = "\177"\n' >a.toml
	assert_equal "$(verdicts a.toml)" "UUU line 1: a control character in a string"
}

@test "deep nesting, many keys and a large file are UNKNOWN, at once" {
	printf 'a = %s\n' "$(printf '[%.0s' $(seq 65))" >a.toml
	assert_equal "$(verdicts a.toml)" "UUU line 1: nested too deep"
	printf 'a%s = 1\n' "$(printf '.a%.0s' $(seq 65))" >a.toml
	assert_equal "$(verdicts a.toml)" "UUU line 1: nested too deep"
	seq -f 'k%.0f = 1' 16385 >a.toml
	assert_equal "$(verdicts a.toml)" "UUU line 16385: too many keys"
	head -c 1048577 /dev/zero | tr '\0' '#' >a.toml
	assert_equal "$(verdicts a.toml)" "UUU File too large"
}

@test "what is no file is UNKNOWN, what is not there is ABSENT" {
	mkfifo fifo
	assert_equal "$(verdicts fifo)" "UUU not a regular file"
	mkdir dir
	assert_equal "$(verdicts dir)" "UUU not a regular file"
	assert_equal "$(verdicts dir/none)" AAA
	ln -s none link
	assert_equal "$(verdicts link)" AAA
	run -1 amap-probe-gateway --rows
	assert_line --index 0 "UNKNOWN  allow_driver_config = true (nobody knows where it is)"
}

# The registration with one line changed by sed, then the rows that are not met.
unmet() {
	amap-render-gateway --home /srv/amap | sed "$@" >gateway.toml
	amap-probe-gateway --home /srv/amap gateway.toml | grep '"id":"V1"' | sed 's/.*"actual":\(\[.*\]\|null\),"prov.*/\1/'
}

@test "each fault of the registration is a row that is not met" {
	assert_equal "$(unmet -e '')" '[]'
	assert_equal "$(unmet -e 's/exact/dynamic/')" '["binding_policy = \"exact\""]'
	assert_equal "$(unmet -e "s/\"2s\"/'2s'/" -e 's/^timeout *=/timeout=/')" '[]'
	assert_equal "$(unmet -e 's/fail_closed/fail_open/')" '["failure_policy = \"fail_closed\"","not fail_open"]'
	assert_equal "$(unmet -e 's/^rpc/disabled = true\n&/')" '["not disabled"]'
	assert_equal "$(unmet -e 's/^rpc/failure_policy = "fail_open"\n&/')" '["not fail_open"]'
	assert_equal "$(unmet -e 's/"validate"/"validate", "x"/')" '["phases = [\"validate\"]"]'
	assert_equal "$(unmet -e 's/^name.*/name = "other"/' | tr ',' '\n' | grep -c .)" 12
	assert_equal "$(unmet -e '$ a [[openshell.gateway.interceptors]]\nname = "amap-openshell-mounts"' | tr ',' '\n' | grep -c .)" 12
	assert_equal "$(unmet -e '$ a [[openshell.gateway.interceptors]]\nname = "another"')" '[]'
	assert_equal "$(unmet -e '$ a [[openshell.gateway.interceptors.bindings]]' | tr ',' '\n' | grep -c .)" 3
	assert_equal "$(unmet -e '/bindings]]/d' -e '/^rpc/d' -e 's/^phases.*/bindings = [{rpc = "openshell.v1.OpenShell\/CreateSandbox", phases = ["validate"]}]/' | tr ',' '\n' | grep -c .)" 3
	assert_equal "$(unmet -e 's/^timeout.*/x = [/')" null
}

@test "the files stream carries the driver's settings alone" {
	amap-render-gateway --files >files
	assert_equal "$(wc -l <files)" 2
	head -n 1 files | jq -r 'select(.path == "gateway-fragment.toml" and .mode == "0644") | .content' >fragment
	amap-render-gateway | head -n "$(wc -l <fragment)" | cmp - fragment
	assert_equal "$(verdicts fragment)" PPP
}
