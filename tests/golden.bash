# Loaded by the tests that follow recorded runs of the original deployment
# ($AMAP_GOLDEN_DIR, see its README). Its home, its configuration directory and
# the domain of its host are replaced by ours; the payload is the original's
# eleven files, the connector's from stand-ins.

golden_setup() {
	local file
	[ -n "${AMAP_GOLDEN_DIR-}" ] || skip "AMAP_GOLDEN_DIR is not set"
	G=$AMAP_GOLDEN_DIR
	H=$BATS_TEST_TMPDIR/home
	CFG=$BATS_TEST_TMPDIR/cfg
	DOMAIN=$(echo '{}' | amap-render-fleet --host "$(uname -n)" | amap-field fleet_domain)
	mkdir -p connector/bin/bin
	for file in inbox-delivery _inboxlib.py inbox-mcp-vol inbox-submit; do
		echo "stand-in $file" >connector/bin/$file
	done
	fake_gateway
	touch "$FAKE_OPENSHELL/ids"
	export XDG_CONFIG_HOME=$CFG AMAP_CONNECTOR_REPO=$PWD/connector
}

fake_gateway() {
	export FAKE_OPENSHELL=$BATS_TEST_TMPDIR/fake
	mkdir "$FAKE_OPENSHELL"
	: >"$FAKE_OPENSHELL/calls"
}

# example_setup: a home to be for the example fleet, with the stand-in for the gateway.
example_setup() {
	H=$BATS_TEST_TMPDIR/home
	CFG=$BATS_TEST_TMPDIR/cfg
	DOMAIN=$(echo '{}' | amap-render-fleet --host "$(uname -n)" | amap-field fleet_domain)
	export XDG_CONFIG_HOME=$CFG
	fake_gateway
	touch "$FAKE_OPENSHELL/ids"
	amap() { sh "$TOP/sh/amap-openshell" --openshell openshell --home "$H" --run-as 1000:1000 "$@"; }
}

key() { ANTHROPIC_API_KEY=sk-secret "$@"; }

# fleet_up: the example fleet, installed and both of its members provisioned.
fleet_up() {
	amap install --apply >/dev/null
	key amap provision alpha --apply >/dev/null
	key amap provision beta --apply >/dev/null
}

our_names() { printf 's|/srv/amap|%s|g;s|/srv/cfg|%s|g;s|openshell\\.host-1\\.internal|%s|g' "$H" "$CFG" "$DOMAIN"; }

# ours FILE: recorded text with our names in it.
ours() {
	sed "$(our_names)" "$1"
}

# ours_all DIRECTORY COPY: the same for all that is below a directory.
ours_all() {
	cp -R "$1" "$2"
	chmod -R u+w "$2"
	find "$2" -type f -exec sed -i "$(our_names)" {} +
}

# amap ARGUMENT...: the operator's command with the stand-in for the gateway.
amap() {
	sh "$TOP/sh/amap-openshell" --openshell openshell "$@"
}

tree_of() {
	[ -d "$1" ] || return 0
	find "$1" -printf '%04m %y %P\n' | sed -e 's/ d / dir  /' -e 's/ f / file /' -e 's/ $/ ./' | sort -b -k 3
}

# All that a home is: names, modes, bytes.
state_of() {
	tree_of "$H"
	[ ! -d "$H" ] || find "$H" -type f -exec cksum {} + | sort -k 3
}

# The values in drift lines are free; the sign, the key and the name are not.
plain_drift() {
	sed -E 's/^([-+~] [a-z_]+(\[[a-z]+\])?)[: ].*/\1/' "$1" >"$1.plain"
	mv "$1.plain" "$1"
}

# same_text WHAT EXPECTED ACTUAL: line by line; <text> stands for any end of a
# line, and a one-sided warning for any words with both names.
same_text() {
	local n=0 want have words
	while IFS= read -r want <&3 || [ -n "$want" ]; do
		n=$((n + 1))
		IFS= read -r have <&4 || have="<no line>"
		case $want in
		"$have") ;;
		*'<text>'*) [ "${have#"${want%%<text>*}"}" != "$have" ] ;;
		'warning: one-sided '*)
			words=${want#warning: one-sided }
			[[ $have == "warning: ${words% *} "*"${words#* }"* ]] ;;
		*) false ;;
		esac || {
			printf '%s, line %d\nexpected: %s\nactual:   %s\n' "$1" "$n" "$want" "$have"
			return 1
		}
	done 3<"$2" 4<"$3"
	if [ "$(wc -l <"$3")" -gt "$n" ]; then
		printf '%s: more lines than expected:\n' "$1"
		tail -n +$((n + 1)) "$3"
		return 1
	fi
}

# same_file WHAT RECORDED FILE
same_file() {
	ours "$2" | cmp - "$3" || { printf '%s: %s differs\n' "$1" "$3"; return 1; }
}

# fail_step WHAT: ends a test with what was seen.
fail_step() {
	printf '%s\n--- standard output\n' "$1"
	cat out
	printf -- '--- standard error\n'
	cat err
	return 1
}
