load common
load sandbox

setup_profile() {
	cat >amap.json <<-END
	{"id":"amap-claude-code","display_name":"Claude Code","category":"agent","inference_capable":true,
	 "credentials":[{"name":"key","env_vars":["ANTHROPIC_API_KEY","OPENSHELL_NOT_THIS"],"required":true,"auth_style":"header"}],
	 "discovery":{"credentials":["key"]},
	 "endpoints":[{"host":"api.anthropic.com","port":443,"protocol":"rest","access":"full","enforcement":"enforce"}],
	 "binaries":["/usr/bin/node"]}
	END
}

@test "a profile is linted, imported once, exported, and updated with its version" {
	setup_profile
	run -0 amap-sandbox provider list-profiles -o json
	assert_output "[]"
	run -0 amap-sandbox provider profile lint -f amap.json
	assert_output "Provider profile lint passed."
	run -0 amap-sandbox provider profile import -f amap.json
	assert_output "Imported 1 provider profile."
	run -1 amap-sandbox provider profile lint -f amap.json
	assert_output "Provider profile diagnostics:
  error amap.json profile=amap-claude-code field=id custom provider profile 'amap-claude-code' already exists
Error:   × provider profile lint failed"
	refused "provider profile import failed" amap-sandbox provider profile import -f amap.json
	run -0 amap-sandbox provider profile export amap-claude-code -o json
	run -0 jq -S 'del(.resource_version)' <<<"$output"
	assert_output "$(jq -S . amap.json)"
	refused "custom provider profile update requires a non-zero resource_version; export the current profile before editing it" \
		amap-sandbox provider profile update amap-claude-code -f amap.json
	jq '.resource_version = 7' amap.json >stale.json
	refused "provider profile was modified concurrently (current resource_version: 1)" \
		amap-sandbox provider profile update amap-claude-code -f stale.json
	jq '.resource_version = 1 | .description = "new"' amap.json >next.json
	run -0 amap-sandbox provider profile update amap-claude-code -f next.json
	assert_output "Updated provider profile."
	run -0 jq -r '.[0].resource_version, .[0].description' <<<"$(amap-sandbox provider list-profiles -o json)"
	assert_output "2
new"
	refused "provider profile 'nobody' not found" amap-sandbox provider profile export nobody -o json
	jq '.id = "nobody" | .resource_version = 1' amap.json >nobody.json
	refused "provider profile 'nobody' not found" amap-sandbox provider profile update nobody -f nobody.json
	refused "is not the profile that is updated" amap-sandbox provider profile update other -f next.json || \
		{ run -1 amap-sandbox provider profile update other -f next.json; assert_output --partial "is not the profile that is updated"; }
}

@test "a profile may be YAML, by its name, and is the same one" {
	setup_profile
	cat >amap.yaml <<-'END'
	id: amap-claude-code
	display_name: 'Claude Code'
	category: agent
	inference_capable: true
	credentials:
	- name: key
	  env_vars: [ANTHROPIC_API_KEY, OPENSHELL_NOT_THIS]
	  required: true
	  auth_style: "header"
	discovery: { credentials: [key] }
	endpoints:
	  - host: api.anthropic.com
	    port: 443
	    protocol: rest
	    access: full
	    enforcement: enforce
	binaries:
	  - /usr/bin/node
	END
	for verb in lint import; do run -0 amap-sandbox provider profile $verb -f amap.yaml; done
	amap-sandbox provider profile export amap-claude-code -o json >exported.json
	assert_equal "$(jq -S 'del(.resource_version)' exported.json)" "$(jq -S . amap.json)"
	# and goes out and in again as YAML: what looks like another type stays text
	jq '.description = "no: 1\n\"x\"" | .annotations = { "a b": ["1", "true", null, 1.5, [], {}, [[1]]] }' exported.json >odd.json
	amap-sandbox provider profile update amap-claude-code -f odd.json
	amap-sandbox provider profile export amap-claude-code -o yaml >odd.yml
	run -1 grep -n '[{][^}]' odd.yml
	amap-sandbox provider profile update amap-claude-code -f odd.yml
	amap-sandbox provider profile export amap-claude-code -o json >again.json
	assert_equal "$(jq -S 'del(.resource_version)' again.json)" "$(jq -S 'del(.resource_version)' odd.json)"
}

@test "lint names everything that is wrong with a profile" {
	echo '{"id":"A b","category":"odd","credentials":[{}],"nonsense":1}' >bad.json
	run -1 amap-sandbox provider profile lint -f bad.json
	assert_output "Provider profile diagnostics:
  error bad.json profile=A b field=id must match ^[a-z0-9]+(-[a-z0-9]+)*\$
  error bad.json profile=A b field=display_name is required
  error bad.json profile=A b field=nonsense unknown field
  error bad.json profile=A b field=category unknown category
  error bad.json profile=A b field=credentials.name is required
Error:   × provider profile lint failed"
	for text in '' '[]' '{' '{"id":"a","id":"a"}'; do
		printf '%s' "$text" >bad.json
		run -1 amap-sandbox provider profile import -f bad.json
	done
	run -1 amap-sandbox provider profile import -f absent.json
	cp bad.json bad.text
	run -1 amap-sandbox provider profile import -f bad.text
	assert_output --partial "error bad.text profile=- field=- its name must end in .json, .yaml or .yml"
	# YAML is as strict
	for text in '' '[]' 'id: a' '{"id":"a","id":"a"}' 'id: &a x' 'id: 1' "$(printf 'id: a\n---\nid: b')"; do
		printf '%s' "$text" >bad.yaml
		run -1 amap-sandbox provider profile lint -f bad.yaml
		assert_line --regexp '^  error bad.yaml profile='
	done
	run -2 amap-sandbox provider profile import
	run -2 amap-sandbox provider
}

@test "a provider is a record: created, or refused, and no value is kept" {
	setup_profile
	refused "unsupported provider type or profile: amap-claude-code" \
		amap-sandbox provider create --name key --type amap-claude-code --credential ANTHROPIC_API_KEY=sk-secret
	amap-sandbox provider profile import -f amap.json
	run -0 amap-sandbox provider create --name key --type amap-claude-code --credential ANTHROPIC_API_KEY=sk-secret
	assert_output "✓ Created provider key"
	refused "provider 'key' already exists" amap-sandbox provider create --name key --type amap-claude-code --from-existing
	run -1 grep -r sk-secret state
	run -0 box one --provider key
	run -0 inside one env
	assert_line "ANTHROPIC_API_KEY=openshell:resolve:env:ANTHROPIC_API_KEY"
	refute_output --partial "OPENSHELL_NOT_THIS"
	run -0 jq -c .providers state/sandboxes/default--one/record.json
	assert_output '["key"]'
}

@test "a missing provider: refused, made, or done without" {
	refused "missing required provider 'p'. Create it first with" box one --provider p
	run -0 box two --provider p --no-auto-providers
	assert_output "! Provider p is missing: the sandbox is made without it
Created sandbox: two"
	run -0 box one --provider p --auto-providers
	assert_output "Missing provider: p
✓ Created provider p (p) as a record: an embedded sandbox has no network
Created sandbox: one"
	run -0 box three --provider p
	assert_output "Created sandbox: three"
	refused "provider name must match" box four --provider ../x --auto-providers
}

@test "status and gateway info tell of the embedded gateway" {
	fleet a
	run -0 amap-sandbox status
	assert_output --partial "Status: Connected"
	run -0 amap-sandbox status -o json
	run -0 jq -r '.gateway, .status, .authentication.status' <<<"$output"
	assert_output "embedded
connected
not_required"
	run -0 amap-sandbox gateway info -o json
	run -0 jq -c '.status, [.extensions[] | .kind, .configured_name]' <<<"$output"
	assert_output '"connected"
["gateway-interceptor","amap-openshell-mounts"]'
	sed -i '/home/d' state/gateway.toml
	run -0 amap-sandbox gateway info -o json
	run -0 jq -c '.extensions' <<<"$output"
	assert_output '[]'
	run -2 amap-sandbox gateway add x
	run -1 amap-sandbox -g other status
	assert_output "amap-sandbox: gateway other: unknown: this program is the gateway embedded"
}

@test "every answer fails on a full device, and nothing hangs without standard streams" {
	box one
	for words in status "status -o json" "gateway info -o json" "sandbox list" "sandbox list --names" "sandbox get one -o json" \
		"sandbox get one --policy-only" "logs one" "ps" "inspect $(amap-sandbox ps -q)" "provider list-profiles -o json"; do
		run -2 --separate-stderr sh -c "amap-sandbox $words >/dev/full"
		assert_equal "$stderr" "amap-sandbox: standard output: No space left on device"
	done
	run -2 sh -c 'amap-sandbox sandbox create --name two --detach --no-tty -- sleep 600 <&- >&- 2>&-'
	run -0 sh -c 'amap-sandbox sandbox exec --name two --no-tty --no-login-shell -- true <&- >&- 2>&-'
	run -2 sh -c 'amap-sandbox sandbox delete two <&- >&- 2>&-'
	run -0 amap-sandbox sandbox list --names
	assert_output "one"
}
