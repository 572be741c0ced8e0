#!/bin/sh
# lib.sh - what two verbs need. Sourced by amap-openshell, which has set
# $prog, $label, $verb, $top, $sh_dir and the host-wide options.
#
# A verb ends with one of: 0 done; 1 a refusal, a drift, an UNKNOWN; 2 usage,
# no home, a failed system call. Its report goes to standard output, what it
# refuses to standard error as `amap-openshell VERB: ...`.
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh

# The programs: of the build in this tree, or of the house where they are installed.
programs=${AMAP_BUILD_DIR:-$top/build}
[ -d "$programs/bin" ] || programs=$top
PATH=$programs/bin:$PATH:/usr/local/bin:/usr/bin:/bin
export PATH

# The provider key is in no child's environment but that of `sandbox create`.
provider_key=${ANTHROPIC_API_KEY-}
unset ANTHROPIC_API_KEY OPENSHELL_SANDBOX_POLICY

# A report that nobody gets is not a yes: what cannot be written ends the verb.
unheard() {
	command printf '%s: standard output: cannot be written\n' "$label" >&2 || :
	exit 2
}
printf() { command printf "$@" 2>/dev/null || unheard; }
show() { cat "$@" 2>/dev/null || unheard; }

warn() {
	last_words=$*
	printf '%s: %s\n' "$label" "$*" >&2
}
refuse() { warn "$@"; exit 1; }
die() { warn "$@"; exit 2; }

# With embedded sandboxes amap-sandbox stands for the gateway and for docker, and
# keeps all it knows in one directory, which is named here so that nobody who is
# started from here has another opinion.
embedded() { [ "${openshell##*/}" = amap-sandbox ]; }
if embedded; then
	if [ -z "${AMAP_SANDBOX_DIR-}" ]; then
		case $(id -u):${XDG_STATE_HOME-}:${HOME-} in
		*:/*:*) AMAP_SANDBOX_DIR=$XDG_STATE_HOME/amap-sandbox ;;
		0:*) AMAP_SANDBOX_DIR=/var/lib/amap-sandbox ;;
		*:/*) AMAP_SANDBOX_DIR=$HOME/.local/state/amap-sandbox ;;
		*) die 'the state of embedded sandboxes: set AMAP_SANDBOX_DIR, XDG_STATE_HOME or HOME' ;;
		esac
		export AMAP_SANDBOX_DIR
	fi
	docker=${docker:-$openshell}
	gateway_toml=${gateway_toml:-$AMAP_SANDBOX_DIR/gateway.toml}
elif [ -z "$gateway_toml" ]; then
	if [ -n "${XDG_CONFIG_HOME-}" ]; then
		gateway_toml=$XDG_CONFIG_HOME/openshell/gateway.toml
	elif [ -n "${HOME-}" ]; then
		gateway_toml=$HOME/.config/openshell/gateway.toml
	fi
fi
docker=${docker:-docker}

work=$(mktemp -d) || die 'no scratch directory; is TMPDIR writable?'
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM

# A checkout is named so that it is the same one from everywhere.
case $router in ours | /*) ;; *) router=$PWD/$router ;; esac
case $connector in ours | /*) ;; *) connector=$PWD/$connector ;; esac

case $top$work$home$connector$router in
*[[:cntrl:]]*) die 'a control character in the path of this tree, of TMPDIR, or of the home' ;;
esac

# must COMMAND...: its messages become the verb's; when it fails the verb is refused.
must() {
	status=0
	"$@" 2>"$work/err" || status=$?
	relabel
	[ "$status" -eq 0 ] || exit 1
}

# What a program said, as the verb's own words.
relabel() {
	while IFS= read -r line; do
		case $line in
		amap-*': '*) warn "${line#amap-*: }" ;;
		*) warn "$line" ;;
		esac
	done <"$work/err"
}

# take_value OPTION VALUE...: sets $value to the second word; for options with a value.
take_value() {
	[ $# -gt 1 ] || verb_usage "$1: a value must follow"
	value=$2
}

verb_usage() {
	warn "$1"
	printf 'usage: %s [HOST-WIDE OPTION]... %s\n' "$prog" "$synopsis" >&2
	exit 2
}

# read_apply ARGUMENT...: sets $apply, for the verbs that take [--apply].
read_apply() {
	apply=''
	while [ $# -gt 0 ]; do
		[ "$1" = --apply ] || verb_usage "$1: unexpected"
		apply=--apply
		shift
	done
}

# read_member_arguments ARGUMENT...: sets $name and $apply, for the verbs that take NAME [--apply].
read_member_arguments() {
	apply='' name='' named=''		# an empty word is no member, but it is a word
	while [ $# -gt 0 ]; do
		case $1 in
		--apply) apply=--apply ;;
		-*) verb_usage "$1: unexpected" ;;
		*) [ -z "$named" ] || verb_usage "$1: unexpected"; name=$1 named=yes ;;
		esac
		shift
	done
	[ -n "$named" ] || verb_usage 'a member must be named'
}

# ---- the home ----

# find_home [--new] [--real]: sets $home. The places it must stay away from are
# this tree and those of the originals, when they are used.
find_home() {
	set -- "$@" --home "$home" --outside "$top"
	[ "$router" = ours ] || set -- "$@" --outside "$router"
	[ "$connector" = ours ] || set -- "$@" --outside "$connector"
	status=0
	home=$(amap-home "$@" 2>"$work/err") || status=$?
	relabel
	[ "$status" -eq 0 ] || exit "$status"
}

# Held from here to the end of the process: one verb at a time changes a home, and
# decides on nothing that another is about to change. A dry run holds nothing, and a
# home that is not there yet cannot be held. A verb that bring-up runs has the lock on
# descriptor 9 already; programs that outlive a verb must not, so whatever may start one
# gets 9<&-.
lock_home() {
	[ -n "$apply" ] && [ -d "$home" ] || return 0
	[ "$(readlink /proc/self/fd/9 2>/dev/null)" = "$(readlink -f -- "$home")" ] || exec 9<"$home"
	flock -n 9 || refuse "$home: another $prog is changing this home; wait until it has ended"
}

# ---- the policy ----

load_fleet() {
	[ -e "$home/fleet.json" ] || [ -L "$home/fleet.json" ] ||
		refuse "$home/fleet.json: there is no policy in this home; run $prog install --apply first"
	must amap-fleet --no-follow "$home/fleet.json" >"$work/plan"
	read_plan
}

read_plan() {
	must amap-field workspace <"$work/plan" >"$work/workspace"
	IFS= read -r workspace <"$work/workspace"
	must amap-field --each members name <"$work/plan" >"$work/names"
}

# is_line WORD FILE (to grep a word of two lines would be two words)
is_line() {
	case $1 in *"
"*) return 1 ;; esac
	grep -qxF -e "$1" "$2"
}

need_member() {
	is_line "$1" "$work/names" || refuse "$1: not a member of the fleet in $home/fleet.json"
}

# Who the agents are, and whom root gives the lanes to.
default_run_as() {
	run_as=${run_as:-$(id -u):$(id -g)}
	if embedded && [ "$(id -u)" -ne 0 ] && [ "$run_as" != "$(id -u):$(id -g)" ]; then
		refuse "--run-as $run_as: only root can run embedded sandboxes as somebody else; leave the option out"
	fi
}

# owner: the option for amap-tree, and the key for directories that the agents' user must own.
set_owner() {
	owner=''
	case $run_as in
	'' | *[!0-9:]* | :* | *: | *:*:* | 0:* | *:0) ;;
	*:*) [ "$(id -u)" -ne 0 ] || owner=$run_as ;;
	esac
}

# ---- files records; json TEXT prints it fit for a JSON string ----

json() {
	case $1 in
	*[\\\"]*) printf '%s' "$1" | sed 's/[\\"]/\\&/g' ;;
	*) printf '%s' "$1" ;;
	esac
}

dir_record() { printf '{"path":"%s","mode":"%s","directory":true}\n' "$1" "$2"; }
owned_record() { printf '{"path":"%s","mode":"%s","directory":true%s}\n' "$1" "$2" "${owner:+,\"owner\":\"$owner\"}"; }
file_record() { printf '{"path":"%s","mode":"%s","source":"%s"}\n' "$1" "$2" "$(json "$3")"; }
note_record() { printf '{"note":"%s"}\n' "$(json "$1")"; }
before_record() { printf '{"before":"%s"}\n' "$(json "$1")"; }

# end_records FILE: closes a stream that the functions above wrote.
end_records() { printf '{"end":%d}\n' "$(wc -l <"$1")" >>"$1"; }

# The payload, as payload.list has it: MODE, PATH, SOURCE with tabs between them.
payload_records() {
	dir_record payload 0755
	dir_record payload/bin 0755
	payload_list=$top/payload/payload-originals.list
	if [ "$connector" = ours ]; then
		dir_record payload/lib 0755
		payload_list=$top/payload/payload.list
	fi
	while IFS='	' read -r mode path source; do
		case $source in
		bin/* | inside/*) source=$programs/$source ;;
		connector/*) source=$connector/${source#connector/} ;;
		*) source=$top/$source ;;
		esac
		file_record "payload/$path" "$mode" "$source"
	done <"$payload_list" || die "$payload_list: cannot be read"
	# The operator's own agent, this time's or the one given before.
	[ -n "$agent" ] || [ ! -f "$home/agent-source" ] || IFS= read -r agent <"$home/agent-source" || :
	[ -n "$agent" ] || return 0
	file_record payload/agent 0755 "$agent"
	printf '{"path":"agent-source","mode":"0644","content":"%s\\n"}\n' "$(json "$agent")"
}

# put [--apply] STREAM: the report to standard output; a refusal ends the verb.
put() {
	status=0
	amap-put --home "$home" "$@" 2>"$work/err" || status=$?
	relabel
	[ "$status" -eq 0 ] || exit "$status"
}

closing_line() {
	printf 'dry run: nothing was written; add --apply to write\n'
}

# ---- the router's files, once every member is recorded ----

# router_records MEMBERSHIP [NEW]: what the router takes from the record
# MEMBERSHIP, and the record itself when it is NEW; leaves $work/router-plan
# for router_notes.
router_records() {
	must amap-fleet --no-follow --membership "$1" "$home/fleet.json" >"$work/router-plan"
	must amap-render-router --home "$home" "$work/router-plan" >"$work/router.json"
	must amap-router --config "$work/router.json" check-config >"$work/sound"
	must amap-membership selected "$1" >"$work/selected.json"
	owned_record router-state 0700
	[ -z "${2-}" ] || file_record membership.json 0644 "$2"
	file_record router.json 0644 "$work/router.json"
	file_record selected.json 0644 "$work/selected.json"
}

router_notes() {
	amap-field --each warnings kind from to name <"$work/router-plan" |
	while IFS='	' read -r kind from to; do		# an absent field is passed over
		case $kind in
		one-sided) note_record "warning: $from lists $to for mail, but $to does not list $from: no mail passes between them" ;;
		not-in-policy) note_record "warning: $from is recorded, but the policy does not name it any more; deprovision it" ;;
		esac
	done
}

# members_who pending|stray MEMBERSHIP: their names, one a line, in $work/pending or $work/stray.
members_who() {
	status=0
	amap-membership "$1" --fleet "$home/fleet.json" "$2" >"$work/$1" 2>"$work/err" || status=$?
	relabel
	[ "$status" -eq 0 ] || [ -s "$work/$1" ] || exit 1
}

# join FILE: its lines with ", " between them.
join() { paste -s -d, "$1" | sed 's/,/, /g'; }

# record_stream NAME ID: prints the stream that records a member.
record_stream() {
	members_who stray "$home/membership.json"
	[ ! -s "$work/stray" ] ||
		refuse "$(join "$work/stray"): recorded, but not in the fleet any more; run $prog deprovision first"
	must amap-membership record --workspace "$workspace" --name "$1" --id "$2" "$home/membership.json" \
	    >"$work/membership.json"
	members_who pending "$work/membership.json"
	must amap-membership list "$work/membership.json" >"$work/recorded"
	cut -d ' ' -f 1 "$work/recorded" >"$work/recorded-names"
	if [ -s "$work/pending" ]; then
		file_record membership.json 0644 "$work/membership.json"
		note_record "recorded $(join "$work/recorded-names")"
		note_record "still to record: $(join "$work/pending"); the router's files are written with the last one"
		[ ! -e "$home/selected.json" ] ||
			note_record 'warning: selected.json is there, but not every member is recorded; the router goes on with the old one'
	else
		router_records "$work/membership.json" "$work/membership.json"
		note_record "recorded $(join "$work/recorded-names")"
		router_notes
	fi
}

# ---- OpenShell ----

# ask ARGUMENT...: runs the program; $work/out and $work/err hold what it said.
ask() {
	asked=0 asked_program=$openshell
	timeout --foreground -k 10 120 "$openshell" "$@" </dev/null 9<&- >"$work/out" 2>"$work/err" || asked=$?
}

# The first line that says something, made fit for a terminal. (The notice of some
# versions of docker that they are old says nothing.)
first_words() {
	words=$(sed -n '/^DEPRECATED:/,/^[[:space:]]*$/d; /[^[:space:]]/{p;q;}' "$work/err" | tr -c '[:print:]\n' '?' | cut -c 1-200)
	if [ -z "$words" ]; then
		case $asked in
		124) words='no answer within the time allowed' ;;
		126 | 127) words="$asked_program cannot be started" ;;
		*) words="exit status $asked" ;;
		esac
	fi
	printf '%s' "$words"
}

# find_sandbox NAME: sets $state to present (with $id, $phase), absent, unknown or unfit
# (with $why). Exit status 1 alone never tells absent from unreachable: the list does.
find_sandbox() {
	id='' phase='' why=''
	ask --workspace "$workspace" sandbox get "$1" --output json
	if [ "$asked" -eq 0 ]; then
		state=present
		asked=0
		amap-field name workspace id phase <"$work/out" >"$work/found" 2>"$work/err" || asked=$?
		case $asked in
		0) read_identity "$1" ;;
		1) state=unfit why="the answer of \`sandbox get $1\` has an unfit name, workspace or id" ;;
		*) state=unknown why="\`sandbox get $1\` did not print a JSON object" ;;
		esac
		return 0
	fi
	words=$(first_words)
	list_sandboxes
	if [ -n "$why" ]; then
		why="\`sandbox get $1\` failed ($words) and the list could not confirm it: $why"
		state=unknown
	elif is_line "$workspace/$1" "$work/listed"; then
		why="$1 is listed but \`sandbox get\` failed: $words"
		state=unknown
	else
		state=absent
	fi
}

read_identity() {
	# Not by read with a tab in IFS: that would pass over an empty field.
	IFS= read -r line <"$work/found"
	got_name=${line%%"$tab"*} line=${line#*"$tab"}
	got_workspace=${line%%"$tab"*} line=${line#*"$tab"}
	id=${line%%"$tab"*} phase=${line#*"$tab"}
	if [ "$got_name" != "$1" ] || [ "$got_workspace" != "$workspace" ]; then
		state=unfit why="\`sandbox get $1\` answered for another sandbox ($got_workspace/$got_name)"
	fi
	case $id in '' | *[[:space:]]*) state=unfit why="\`sandbox get $1\` answered without a fit ID" ;; esac
}

tab='	'

# list_sandboxes: $work/listed has a WORKSPACE/NAME a line, or $why says why not.
list_sandboxes() {
	ask sandbox list --all-workspaces --names
	if [ "$asked" -eq 0 ]; then
		mv "$work/out" "$work/listed"
	else
		why="\`sandbox list\` failed: $(first_words)"
	fi
}

# id_of NAME: its ID in $work/recorded. (Not by awk -v, which reads backslashes its own way.)
id_of() { NAME=$1 awk '$1 == ENVIRON["NAME"] { print $2 }' "$work/recorded"; }

recorded_id() {
	recorded=''
	[ -e "$home/membership.json" ] || [ -L "$home/membership.json" ] || return 0
	must amap-membership list "$home/membership.json" >"$work/recorded"
	recorded=$(id_of "$1")
}

# embedded_gateway HOME: what the embedded gateway's file says for this home, in
# the form of TOML that it reads.
embedded_gateway() {
	case $1 in
	*[\"\\]*) refuse "$1: a home of embedded sandboxes holds no quote and no backslash" ;;
	esac
	must amap-render-gateway >"$work/fragment"
	grep -v '^#' "$work/fragment"
	printf '[amap.embedded]\nhome = "%s"\n' "$1"
}
