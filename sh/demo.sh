#!/bin/sh
# demo.sh - a fleet of two sandboxed agents, from nothing to a verified report
#
# usage: demo.sh [--keep]
#   --keep  leave everything running at the end and say how to look at it
#
# Installs the Debian packages it lacks, builds, and in a new home brings up
# examples/fleet.json (alpha may task beta; beta may not task alpha) in embedded
# sandboxes. All of the fleet runs as one ordinary user: the caller, or, when
# that is root, a user and group id that nobody here has.
#
# Exit status: 0 every step was seen and every check of verify is PASS; 1 not
# so; 2 the demo could not be set up.
set -eu
LC_ALL=C; export LC_ALL
umask 022
prog=${0##*/}
top=$(cd "$(dirname "$0")/.." && pwd)
die() { printf '%s: %s\n' "$prog" "$*" >&2; exit 2; }

keep=
case $#${1-} in
0) ;;
1--keep) keep=yes ;;
1--help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
*) printf 'usage: %s [--keep]\n' "$prog" >&2; exit 2 ;;
esac

now() { date +%s%3N; }
began=$(now)
step() { printf '%6d ms  %s\n' $(($(now) - began)) "$*"; }

sh "$top/sh/setup.sh" run
[ -x "$top/build/bin/amap-router" ] || printf '%s: building; this takes about a minute\n' "$prog" >&2
build() { make -s -C "$top" ${AMAP_BUILD_DIR:+BUILD="${AMAP_BUILD_DIR#"$top/"}"} "$@" >&2; }
build -j"$(nproc)" all || die 'the build failed: see above'

# ---- whose fleet it is, and where ----

uid=$(id -u) gid=$(id -g) as=
if [ "$uid" -eq 0 ]; then
	uid=64000
	while getent passwd "$uid" >/dev/null || getent group "$uid" >/dev/null; do
		uid=$((uid + 1))
	done
	gid=$uid as="setpriv --reuid $uid --regid $gid --clear-groups"
fi

# The directory is the caller's; below fleet/ is what the fleet's user may write.
work=$(mktemp -d "${TMPDIR:-/tmp}/amap-demo.XXXXXX") || die 'no scratch directory; is TMPDIR writable?'
house=$work/house home=$work/fleet/home boxes=$work/fleet/boxes
chmod 0711 "$work"

# COMMAND... as the fleet's user, in the environment of somebody who has nothing.
cat >"$work/as-fleet" <<EOF
#!/bin/sh
exec $as env -i PATH="$house/bin:/usr/local/bin:/usr/bin:/bin" HOME="$work/fleet" LC_ALL=C \\
	AMAP_SANDBOX_DIR="$boxes" AMAP_OPENSHELL_HOME="$home" "\$@"
EOF
cat >"$work/tear-down" <<EOF
#!/bin/sh
[ "\$(id -u)" -eq $(id -u) ] || { echo "tear-down: only user id $(id -u) can do this" >&2; exit 2; }
"$work/as-fleet" amap-sandbox service stop amap-router
"$work/as-fleet" amap-sandbox --workspace default sandbox delete --all
rm -rf "$work"
EOF
chmod +x "$work/as-fleet" "$work/tear-down"
fleet() { "$work/as-fleet" "$@"; }

# Sandboxes outlive the shell that made them, as they should. These must not
# outlive the demo, however it ends: the guardian waits for that, kill -9 included,
# and first ends what the demo had started, so that nothing is made again behind it.
cat >"$work/guardian" <<EOF
trap '' INT TERM HUP
tail --pid=$$ -s 0.1 -f /dev/null
[ ! -e "$work/kept" ] && [ -d "$work" ] || exit 0
for round in 1 2 3; do
	kill -s KILL \$(grep -lsF "$work/" /proc/[0-9]*/environ /proc/[0-9]*/cmdline | cut -d / -f 3 | sort -u | grep -vx \$\$)
	sleep 0.05
done
sh "$work/tear-down"
EOF
setsid sh "$work/guardian" </dev/null >/dev/null 2>&1 &
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM

mkdir "$work/fleet"
chown "$uid:$gid" "$work/fleet"
fleet test -w "$work/fleet" || die "$work: user id $uid cannot get there; set TMPDIR to a directory that everybody can enter"
build PREFIX="$house" install || die 'the installation failed: see above'

# ---- telling what is seen ----

fail() {
	printf '%s: %s\n' "$prog" "$*" >&2
	exit 1
}

# eventually WHAT COMMAND...: until the command succeeds, 60 s at most.
eventually() {
	what=$1
	shift
	until=$(($(now) + 60000))
	until "$@" >/dev/null 2>&1; do
		[ "$(now)" -lt "$until" ] || fail "$what: not seen within 60 s"
		sleep 0.02
	done
}

inside() {
	name=$1
	shift
	fleet amap-sandbox --workspace default sandbox exec --name "$name" --no-tty -- "$@" </dev/null
}

# verdict MEMBER REQUEST: outcome and reason, once the router has answered.
verdict() { fleet amap-field outcome reason_code <"$home/instances/$1/outbox/results/$2.json" | tr '\t' ' '; }

# task MEMBER ADDRESS TEXT: has the member's agent submit it; sets $id to the request's.
task() {
	inside "$1" /opt/amap/payload/agent task "$2" "$3" >"$work/asked" || fail "the agent in $1 could not submit a task"
	id=$(tail -n 1 "$work/asked")
	eventually "the verdict on request $id of $1" test -s "$home/instances/$1/outbox/results/$id.json"
}

# ---- the fleet ----

step "a fleet for user id $uid in $home"
fleet amap-openshell install --agent "$house/lib/amap-openshell/examples/agents/files.sh" --apply >"$work/install" || fail 'install refused: see above'
mkfifo "$work/stages"
fleet amap-openshell bring-up --apply >"$work/stages" &
bring_up=$!
while IFS= read -r line; do
	printf '%s\n' "$line" >>"$work/bring-up"
	case $line in
	'stage '*': done' | 'stage '*': skipped'*) step "bring-up, ${line#stage }" ;;
	esac
done <"$work/stages"
wait "$bring_up" || { cat "$work/bring-up"; fail 'bring-up did not come to its end'; }
domain=$(fleet amap-fleet "$home/fleet.json" | fleet amap-field domain)

# ---- a delegation, there and back ----

task alpha "beta@$domain" 'list the files of your workspace'
step "alpha's agent submitted a task to beta, \"list the files of your workspace\": request $id"
step "the router's verdict: $(verdict alpha "$id")"
turned() { fleet amap-sandbox --workspace default logs beta | grep -q " turn "; }
eventually "the task as a turn of beta's agent" turned
step "the task reached beta's agent as a turn"
eventually "beta's reply as a turn of alpha's agent" inside alpha test -s /sandbox/replies.log
step "beta's reply reached alpha's agent as a turn:"
inside alpha cat /sandbox/replies.log | sed 's/^/              | /'

# ---- what must not be ----

task beta "alpha@$domain" 'do something for me'
step "beta's own new task to alpha: $(verdict beta "$id")"
[ "$(verdict beta "$id")" = 'queued_for_human recipient_not_allowlisted' ] || fail 'that task should have been held'

probe=$(inside alpha /opt/amap/payload/bin/amap-probe-write /opt/amap/lanes/inbox/from-inside)
step "a write to alpha's inbox lane from inside: $probe"
[ "$probe" = EROFS ] || fail 'that write should have failed with EROFS'

# shellcheck disable=SC2016 # the inner shell expands it
connect='exec 3<>/dev/tcp/$0/443'
for address in 192.0.2.1 127.0.0.1; do
	if answer=$(inside alpha bash -c "$connect" "$address" 2>&1); then
		fail "a connection from inside to $address was made"
	fi
	step "a connection from inside to $address: $(printf '%s\n' "$answer" | sed -n '1s/.*: //p')"
done

sed -e 's/^openshell /amap-sandbox /' -e 's,instances/alpha/outbox,instances/beta/outbox,' \
    "$home/commands/create-alpha.sh" >"$work/thief.sh"
if fleet sh "$work/thief.sh" </dev/null >"$work/thief" 2>&1; then
	fail "a sandbox with beta's outbox was created"
fi
step "a create that asks for beta's outbox:"
sed 's/^/              | /' "$work/thief"

# ---- the report ----

step 'verify:'
rc=0
fleet amap-openshell verify || rc=$?
if [ "$rc" -ne 0 ]; then
	fail "verify found what is not so: see above"
fi
echo 'AMAP is up'
if [ -n "$keep" ]; then
	: >"$work/kept"
	cat <<EOF

All of it is still running:
  look      $work/as-fleet amap-sandbox sandbox list --all-workspaces
  logs      $work/as-fleet amap-sandbox logs amap-router
  attach    $work/as-fleet amap-sandbox --workspace default sandbox connect alpha   (Ctrl-P Ctrl-Q leaves)
  verify    $work/as-fleet amap-openshell verify
  end it    $work/tear-down
EOF
else
	sh "$work/tear-down" >/dev/null 2>&1
fi
