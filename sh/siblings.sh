#!/bin/sh
# siblings - check out the originals that siblings.json pins beside this tree, or say what would be done
# shellcheck disable=SC2034,SC2154 # variables are shared with amap-openshell and lib.sh
synopsis='siblings [--apply]'
read_apply "$@"
command -v git >/dev/null || refuse 'git: not found; install the package git'
beside=$(dirname "$top")
must amap-field --only --each siblings name url commit <"$top/examples/siblings.json" >"$work/siblings"
[ -s "$work/siblings" ] || refuse "$top/examples/siblings.json: names nothing"
cut -f 1 "$work/siblings" | sort | uniq -d >"$work/twice"
[ ! -s "$work/twice" ] || refuse "$top/examples/siblings.json: $(join "$work/twice"): named twice"

# Forty hexadecimal digits, or nothing: not pinned.
is_commit() {
	case ${#1}:$1 in 0: | 40:*) ;; *) return 1 ;; esac
	case $1 in *[!0-9a-f]*) return 1 ;; esac
}
is_sibling() { case $1 in [!a-z0-9]* | *[!a-z0-9-]*) return 1 ;; esac; }

run_git() { GIT_TERMINAL_PROMPT=0 timeout --foreground -k 10 600 git "$@" </dev/null >"$work/git" 2>&1; }
read_git() { GIT_TERMINAL_PROMPT=0 timeout --foreground -k 10 600 git --no-optional-locks -C "$@" </dev/null 2>/dev/null; }

# Every checkout is read before the first one is touched, and every fault is told.
: >"$work/plan"
faulty=''
fault() { warn "$@"; faulty=yes; }
while IFS='	' read -r name url commit; do
	if ! is_sibling "$name" || ! is_commit "$commit" || [ "${url#https://}" = "$url" ]; then
		fault "siblings.json: $name: not a sound name, https:// URL and commit"
		continue
	fi
	dir=$beside/$name
	if [ ! -e "$dir" ] && [ ! -L "$dir" ]; then
		printf 'clone\t%s\t%s\t%s\n' "$name" "$url" "$commit" >>"$work/plan"
		continue
	fi
	if [ "$(read_git "$dir" rev-parse --show-toplevel)" != "$(readlink -f "$dir")" ]; then
		fault "$dir: not a checkout of its own; move it away"
	elif [ -n "$(read_git "$dir" status --porcelain --untracked-files=normal)" ]; then
		fault "$dir: has local changes; commit or remove them"
	elif [ -z "$commit" ]; then
		printf 'pull\t%s\t%s\t\n' "$name" "$url" >>"$work/plan"
	elif [ "$(read_git "$dir" rev-parse HEAD)" != "$commit" ]; then
		printf 'move\t%s\t%s\t%s\n' "$name" "$url" "$commit" >>"$work/plan"
	else
		printf 'keep\t%s\t%s\t%s\n' "$name" "$url" "$commit" >>"$work/plan"
	fi
done <"$work/siblings"
[ -z "$faulty" ] || exit 1

act() {
	if [ -n "$apply" ]; then
		printf '+ git %s\n' "$*"
		run_git "$@" || refuse "git $1: $(head -n 1 "$work/git" | tr -c '[:print:]\n' '?')"
	else
		printf 'would run: git %s\n' "$*"
	fi
}
while IFS='	' read -r what name url commit; do
	dir=$beside/$name
	case $what in
	keep) printf 'present %s at %s\n' "$name" "$commit"; continue ;;
	clone) act clone --quiet "$url" "$dir" ;;
	move) act -C "$dir" fetch --quiet origin ;;
	pull) act -C "$dir" pull --ff-only --quiet ;;
	esac
	[ -n "$commit" ] || continue
	act -C "$dir" checkout --quiet --detach "$commit"
	if [ -n "$apply" ] && [ "$(read_git "$dir" rev-parse HEAD)" != "$commit" ]; then
		refuse "$dir: its HEAD is not $commit after the checkout"
	fi
done <"$work/plan"
[ -n "$apply" ] || printf 'DRY RUN: nothing changed. Run again with --apply.\n'
