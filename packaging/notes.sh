#!/usr/bin/env bash
# Prints what CHANGELOG.md says of a version.
#
#   packaging/notes.sh VERSION
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.."
notes=$(awk -v head="## [$1]" 'index($0, head) == 1 { on = 1; next } /^## / { on = 0 } on' CHANGELOG.md)
[ -n "$notes" ] || { echo "notes: CHANGELOG.md has no section for $1" >&2; exit 1; }
printf '%s\n' "$notes" | sed '/./,$!d'
