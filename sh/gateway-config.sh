#!/bin/sh
# gateway-config - print what gateway.toml must say, and whether it does; changes nothing
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='gateway-config'
[ $# -eq 0 ] || verb_usage "$1: unexpected"
if home=$(amap-home --new ${home:+--home "$home"} 2>/dev/null); then
	if embedded; then
		embedded_gateway "$home"
	else
		must amap-render-gateway --home "$home"
	fi
else
	must amap-render-gateway
fi
printf '\ngateway.toml: %s\n' "${gateway_toml:-not located}"
status=0
amap-probe-gateway --rows ${gateway_toml:+"$gateway_toml"} 2>"$work/err" || status=$?
relabel
exit "$status"
