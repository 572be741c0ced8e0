load common
load sandbox

# What create refuses, in the words that scripts look for, and that a refused
# create leaves nothing but the provider that was made before it.

nothing() {
	run -0 find state -mindepth 2 -not -path 'state/etc/*' -not -path 'state/providers/*'
	assert_output ""
}

create() { amap-sandbox sandbox create --detach --no-tty "$@" -- true; }

# gateway TEXT: the embedded gateway file.
gateway() {
	mkdir -p -m 700 state
	cat >state/gateway.toml
}

bind() { printf '{"docker":{"mounts":[{"type":"bind","source":"%s","target":"%s"}]}}' "$1" "$2"; }

@test "names: length, characters, hyphens" {
	refused "code: 'Client specified an invalid argument', message: \"name exceeds maximum length (24 > 19)\"" create --name aaaaaaaaaaaaaaaaaaaaaaaa
	refused "name must contain only lowercase alphanumeric characters or hyphens" create --name Alpha
	refused "name must contain only lowercase alphanumeric characters or hyphens" create --name a.b
	refused "name must not start or end with a hyphen" create --name=-a
	refused "name must not start or end with a hyphen" create --name a-
	refused "name must not contain consecutive hyphens" create --name a--b
	refused "name is required" create --name ""
	nothing
	run -0 create --name aaaaaaaaaaaaaaaaaaa
	run -0 amap-sandbox sandbox create --detach --no-tty -- true
	assert_output --regexp '^Created sandbox: [a-z0-9-]+$'
}

@test "an error is wrapped at 80 columns, its message quoted and escaped" {
	run -1 create --name "a\"b\\c"
	run -1 --separate-stderr create --name aaaaaaaaaaaaaaaaaaaaaaaa
	assert_output ""
	assert_equal "$stderr" "Error:   × code: 'Client specified an invalid argument', message: \"name exceeds
  │ maximum length (24 > 19)\""
	refused "message: \"workspace 'w\\\"\\\\' not found" amap-sandbox --workspace "w\"\\" sandbox create --name a --detach --no-tty -- true
}

@test "an unknown workspace, where the gateway file lists them" {
	run -0 amap-sandbox --workspace other sandbox create --name a --detach --no-tty -- true
	run -0 amap-sandbox --workspace other sandbox delete a
	printf '[amap.embedded]\nworkspaces = ["default", "team"]\n' | gateway
	refused "code: 'Some requested entity was not found', message: \"workspace 'other' not found\"" \
		amap-sandbox --workspace other sandbox create --name a --detach --no-tty -- true
	nothing
	run -0 amap-sandbox --workspace team sandbox create --name a --detach --no-tty -- true
	run -0 env OPENSHELL_WORKSPACE=team amap-sandbox sandbox get a -o json
	run -1 amap-sandbox sandbox get a -o json
	run -0 amap-sandbox sandbox list --all-workspaces --names
	assert_output "team/a"
	amap-sandbox --workspace team sandbox delete a
}

@test "a policy that is missing, not YAML, of unknown fields, or unsafe" {
	refused "failed to read sandbox policy from absent.yaml" create --name a --policy absent.yaml
	mkfifo fifo
	refused "failed to" create --name a --policy fifo
	refused "failed to read sandbox policy from /dev" create --name a --policy /dev
	cases=0
	while IFS='	' read -r want text; do
		printf '%b' "$text" >bad.yaml
		refused "$want" create --name a --policy bad.yaml || { echo "case: $text"; return 1; }
		cases=$((cases + 1))
	done <"$DATA/sandbox/bad-policies"
	[ "$cases" -gt 30 ]
	nothing
}

@test "a policy for somebody else is refused, naming both" {
	as=
	if [ "$(id -u)" -eq 0 ]; then skip "root becomes anybody"; fi
	printf 'version: 1\nprocess: { run_as_user: "4242", run_as_group: "4242" }\n' >other.yaml
	run -1 create --name a --policy other.yaml
	assert_output "amap-sandbox: sandbox a: the policy runs as 4242:4242, but you are $run_as: render it with --run-as $run_as"
	nothing
}

@test "driver config: JSON, an object, known keys, before anything is stored" {
	fleet a
	refused "--driver-config-json must be valid JSON" create --name a --driver-config-json '{'
	refused "--driver-config-json must be valid JSON" create --name a --driver-config-json '{"a":1,"a":2}'
	refused "--driver-config-json must be a JSON object keyed by driver name" create --name a --driver-config-json '[]'
	# without admission the driver itself says no
	printf '[openshell.drivers.docker]\nallow_driver_config = true\nenable_bind_mounts = true\n' | gateway
	refused "gateway interceptor 'amap-openshell-mounts' failed closed: gateway.toml: names no home" create --name a --driver-config-json '{}'
	nothing
}

@test "bind mounts are off until the gateway file allows them" {
	fleet a
	refused "failed closed" env AMAP_SANDBOX_DIR="$PWD/other" amap-sandbox sandbox create --name a --detach --no-tty --driver-config-json "$(driver a)" -- true
	sed -i /allow_driver_config/d state/gateway.toml
	refused "code: 'The system is not in a state required for the operation's execution', message: \"caller driver config is disabled; a gateway administrator must enable allow_driver_config\"" \
		create --name a --driver-config-json "$(driver a)"
	printf '[openshell.drivers.docker]\nallow_driver_config = true\n[amap.embedded]\nhome = "%s"\n' "$home" | gateway
	refused "docker bind mounts require enable_bind_mounts = true in [openshell.drivers.docker]" create --name a --driver-config-json "$(driver a)"
	nothing
}

@test "mounts that only the driver can judge" {
	fleet a
	row=$(driver a | jq -c '.docker.mounts[0]')
	try() { refused "$1" create --name a --driver-config-json "{\"docker\":{\"mounts\":$2}}"; }
	for root in /opt/openshell /etc/openshell/x /run/netns /.openshell /.amap /proc/x /dev /sys; do
		try "mount target '$root' conflicts with reserved OpenShell path" "[$(jq -c --arg t $root '.target = $t' <<<"$row")]"
	done
	try "mount target '/sandbox' is reserved for the OpenShell workspace" "[$(jq -c '.target = "/sandbox"' <<<"$row")]"
	try "duplicate docker driver_config mount target '/opt/amap/payload'" "[$row,$row]"
	try "mount target '/opt/amap/payload/x' lies below mount target '/opt/amap/payload'" "[$row,$(jq -c '.target += "/x"' <<<"$row")]"
	try "/bin: a mount target leads through this link of the image" "[$(jq -c '.target = "/bin/x"' <<<"$row")]" || \
		{ run -1 create --name a --driver-config-json "{\"docker\":{\"mounts\":[$(jq -c '.target = "/bin/x"' <<<"$row")]}}"
		assert_output --partial "leads through this link of the image"; }
	rmdir "$home/payload"
	try "bind source path does not exist: $home/payload" "[$row]"
	nothing
}

@test "a target below the home and one inside a directory of the image are made" {
	fleet a
	echo secret >"$home/instances/a/peer/file"
	one=$(driver a | jq -c '.docker.mounts[2] | .target = "/sandbox/mail/inbox"')
	two=$(driver a | jq -c '.docker.mounts[3] | .target = "/usr/local/amap-peer"')
	printf 'version: 1\nfilesystem_policy: { read_only: [/usr, /bin, /lib, /lib64, /etc], read_write: [/sandbox] }\nprocess: { run_as_user: "%s", run_as_group: "%s" }\n' "${run_as%:*}" "${run_as#*:}" >p.yaml
	amap-sandbox sandbox create --name a --detach --no-tty --policy p.yaml --driver-config-json "{\"docker\":{\"mounts\":[$one,$two]}}" -- sleep 600
	run -0 inside a sh -c 'cat /sandbox/mail/inbox/file /usr/local/amap-peer/file; ls /usr/local | grep -c share; touch /sandbox/mail/other'
	assert_output "secret
secret
1"
	# an agent's link where a target stands is not followed at the next start
	inside a sh -c 'mv /sandbox/mail /sandbox/was; ln -s /etc /sandbox/mail' || :
	amap-sandbox sandbox stop a
	rm -rf state/sandboxes/default--a/home/mail
	ln -s /tmp state/sandboxes/default--a/home/mail
	run -1 amap-sandbox sandbox start a
	assert_output "amap-sandbox: sandbox a: /sandbox/mail/inbox: not a directory that can be reached without a link"
	[ ! -e /tmp/inbox ]
}

@test "environment and labels within their limits" {
	refused "spec.environment key must match" create --name a --env 1A=x
	refused "spec.environment key must match" create --name a --env A-B=x
	refused "not start with OPENSHELL_" create --name a --env OPENSHELL_X=x
	refused "spec.environment value exceeds maximum length (8192)" create --name a --env "A=$(printf 'x%.0s' $(seq 8193))"
	set --
	for i in $(seq 129); do set -- "$@" --env "A$i=x"; done
	refused "spec.environment exceeds maximum entries (128)" create --name a "$@"
	refused "label keys and values must be at most 63 characters" create --name a --label "a=$(printf 'x%.0s' $(seq 64))"
	run -2 create --name a --env NOEQUALS
	nothing
}

@test "what the option parser does not know is a usage error" {
	for words in "--no-such" "--image x" "--detach --no-keep" "--restart-policy sometimes" "--memory lots" "--processes 0"; do
		run -2 amap-sandbox sandbox create --name a $words -- true
	done
	run -2 amap-sandbox sandbox
	run -2 amap-sandbox sandbox nothing
	run -2 amap-sandbox sandbox get
	run -2 amap-sandbox sandbox get a b
	run -2 amap-sandbox sandbox get a --policy-only -o json
	run -2 amap-sandbox sandbox list x
	run -2 amap-sandbox inspect
	run -2 amap-sandbox ps --filter name=x
	[ ! -e state/sandboxes/default--a ]
}

@test "images: the host, a tree, the deployment's own name; others are refused" {
	run -0 create --name a --from host
	run -0 create --name b --from amap-openshell-agent
	run -0 create --name c --from amap-openshell-agent:latest
	refused "image 'ubuntu:22.04' is not known here" create --name d --from ubuntu:22.04
	refused "image 'ghcr.io/x/y:z' is not known here" create --name d --from ghcr.io/x/y:z
	refused "image './absent': No such file or directory" create --name d --from ./absent
	refused "image '/etc/passwd': must be a directory" create --name d --from /etc/passwd
	refused "must be a directory, and not the root of this host" create --name d --from /
}

@test "--from DIR is the root file system, read-only, with our proc, dev, tmp and home" {
	not_sanitized "a sanitized amap-confine is not static, so it cannot start in a foreign root"
	for d in bin etc usr/share opt/there tmp proc; do mkdir -p "tree/$d"; done
	cc -static -o tree/bin/hello -x c - <<-'END'
	#include <stdio.h>
	#include <unistd.h>
	int main(int argc, char *argv[])
	{
		if (argc > 1) { pause(); }
		printf("%s %d %d\n", access("/usr/bin/env", F_OK) == 0 ? "host" : "tree", access("/opt/there", F_OK), access("/proc/self", F_OK));
		return 0;
	}
	END
	printf 'version: 1\nfilesystem_policy: { read_only: [/bin, /usr, /opt, /proc], read_write: [/sandbox] }\nprocess: { run_as_user: "%s", run_as_group: "%s" }\n' "${run_as%:*}" "${run_as#*:}" >p.yaml
	chmod 755 . tree
	run -0 amap-sandbox sandbox create --name a --from ./tree --policy p.yaml --detach --no-tty -- /bin/hello wait
	run -0 inside a /bin/hello
	assert_output "tree 0 0"
	run -127 inside a sh
}

@test "a create that is denied leaves the provider that was made before it, and no sandbox" {
	fleet a
	refused "Missing provider: amap-claude-code
✓ Created provider amap-claude-code (amap-claude-code) as a record: an embedded sandbox has no network
Error: code: 'The caller does not have permission to execute the specified operation', message: \"amap-openshell interceptor: name: stranger is not a member of the fleet; mounts[0].source: $home/payload is not" \
		amap-sandbox sandbox create --name stranger --provider amap-claude-code --auto-providers --detach --no-tty --driver-config-json "$(driver a)" -- true
	[ -e state/providers/amap-claude-code.json ]
	nothing_but=$(find state/sandboxes state/trash -mindepth 1)
	assert_equal "$nothing_but" ""
}

@test "without amap-admit, or with one that says nothing, every mount is refused" {
	fleet a
	mkdir bin
	cp "$BIN/amap-sandbox" "$BIN/amap-confine" bin/
	refused "failed closed: $PWD/bin/amap-admit: No such file or directory" bin/amap-sandbox sandbox create --name a --detach --no-tty --driver-config-json "$(driver a)" -- true
	for body in 'exit 1' 'kill -9 $$' 'echo not json; exit 1' 'echo "{\"allowed\":true,\"reasons\":[]}"; exit 1' 'exit 2'; do
		printf '#!/bin/sh\n%s\n' "$body" >bin/amap-admit
		chmod 755 bin/amap-admit
		refused "failed closed: amap-admit" bin/amap-sandbox sandbox create --name a --detach --no-tty --driver-config-json "$(driver a)" -- true
	done
	nothing
	# it is told all of the request
	printf '#!/bin/sh\ncat >%s/request\nexit 0\n' "$PWD" >bin/amap-admit
	amap-render-policy --member a --run-as "$run_as" <members >a.yaml
	run -0 bin/amap-sandbox sandbox create --name a --provider p --auto-providers --policy a.yaml --env K=V --detach --tty --driver-config-json "$(driver a)" -- sleep 5
	run -0 jq -c '.name, .workspaceScope, .spec.environment, .spec.command, .spec.tty, .spec.providers, .spec.template.driverConfig, (.spec.policy | keys)' request
	assert_output "\"a\"
{\"workspace\":\"default\"}
{\"K\":\"V\"}
[\"sleep\",\"5\"]
true
[\"p\"]
$(driver a)
[\"filesystem\",\"landlock\",\"process\",\"version\"]"
}

@test "a gateway file that cannot be read stops everything, by its line" {
	printf '[amap.embedded]\nhoem = "/x"\n' | gateway
	run -1 create --name a
	assert_output "amap-sandbox: $PWD/state/gateway.toml: [amap.embedded]: hoem: unknown, or of another type than it must be"
	printf '[amap.embedded]\nhome = 1\n' | gateway
	run -1 create --name a
	printf 'x = \n' | gateway
	run -1 create --name a
	assert_output --partial "amap-sandbox: $PWD/state/gateway.toml: line 1"
}

@test "limits are in force, for the main process and for commands" {
	not_sanitized "the sanitizers reserve more memory than the limit leaves"
	amap-sandbox sandbox create --name a --memory 64Mi --processes 20 --files 50 --time 100 --detach --no-tty -- sh -c 'ulimit -d -u -n -t >/sandbox/limits; sleep 600'
	run -0 inside a sh -c 'echo $(ulimit -d) $(ulimit -n) $(ulimit -t); grep "Max processes" /proc/self/limits | tr -s " " | cut -d" " -f3'
	assert_output "65536 50 100
20"
	run ! inside a sh -c 'for i in $(seq 40); do sleep 3 & done; wait'
	assert_output --partial "Cannot fork"
	run -0 amap-sandbox sandbox get a -o json
	run -0 jq -c '.limits | del(.by)' <<<"$output"
	assert_output '{"memory":67108864,"processes":20,"files":50,"time":100}'
	# which means are used, and said alike in both places
	by=$(amap-sandbox sandbox get a -o json | jq -r .limits.by)
	run -0 amap-sandbox logs a -n 1000
	case $by in
	rlimit) assert_line --regexp 'limits memory=67108864 processes=20 files=50 time=100 by setrlimit alone: .*cgroup' ;;
	cgroup) assert_line --regexp 'limits memory=67108864 processes=20 files=50 time=100 by the cgroup /' ;;
	*) return 1 ;;
	esac
}

@test "limits have defaults, which none lifts" {
	box a
	run -0 amap-sandbox sandbox get a -o json
	run -0 jq -c '.limits | del(.by)' <<<"$output"
	assert_output '{"memory":null,"processes":512,"files":4096,"time":null}'
	run -0 inside a sh -c 'ulimit -n; grep "Max processes" /proc/self/limits | tr -s " " | cut -d" " -f3'
	assert_output "4096
512"
	box b --processes none --files none
	run -0 amap-sandbox sandbox get b -o json
	run -0 jq -c '.limits | del(.by)' <<<"$output"
	assert_output '{"memory":null,"processes":null,"files":null,"time":null}'
	for bad in 0 -1 1x 1Gi none1 "" 99999999999999999999; do
		run -2 create --name c --processes "$bad"
		assert_output "amap-sandbox: --processes: not a number above 0, nor none: $bad (--help says more)"
	done
	run -0 amap-confine --limit processes=7 --limit memory=8 --print
	run -0 jq -c .limits <<<"$output"
	assert_output '{"memory":8,"processes":7,"files":null,"time":null}'
}

@test "a fork bomb without any option ends at the limit, and the host goes on" {
	not_sanitized "every process of the bomb would be ten times as large"
	amap-sandbox sandbox create --name a --detach --no-tty -- sh -c 'f() { f | f & }; f; sleep 600'
	eventually sh -c 'amap-sandbox logs a | grep -q "Cannot fork"'
	# one of ours starts, and the sandbox ends, while it still goes on
	run -0 timeout 60 true
	run -0 timeout 60 amap-sandbox sandbox delete a
	run -0 find state -mindepth 2 -not -path 'state/etc/*'
	assert_output ""
}

@test "who takes more memory than the limit ends, and nobody else" {
	not_sanitized "the sanitizers reserve more memory than the limit leaves"
	box a --memory 64Mi
	run ! inside a sh -c 'yes | tr -d "\n" | head -c 200000000 | tail -n 1 >/dev/null'
	assert_output --regexp "(memory exhausted|Cannot allocate|Killed)"
	run ! inside a sh -c 'yes | head -c 100000000 >/tmp/x'
	assert_output --partial "No space left on device"
	run -0 inside a stat -f -c '%b %S' /tmp /dev/shm
	while read -r blocks size; do
		assert_equal $((blocks * size)) $((64 << 20))
	done <<<"$output"
	run -0 inside a true
	run -0 amap-sandbox sandbox get a -o json
	run -0 jq -r .phase <<<"$output"
	assert_output Ready
	# and when the host itself runs out, they go first
	run -0 inside a cat /proc/self/oom_score_adj /proc/2/oom_score_adj
	assert_output "500
500"
	[ "$(cat /proc/self/oom_score_adj)" -lt 500 ]
}
