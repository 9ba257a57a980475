#!/usr/bin/env bash
# What holdup diagnose says of every fixture, beside what the workload was written to do (truth.json).
# "right": the true class, or an alternative that is right too given what that recording can show.
# "open": not-enough-evidence, where the truth is a class. HOLDUP names a built holdup.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${HOLDUP:-}" ]; then
    cargo build --release --quiet
    HOLDUP=${CARGO_TARGET_DIR:-target}/release/holdup
fi
declare -i all=0 right=0 open=0
printf '%-24s %-27s %-27s %s\n' fixture "true class" verdict ""
for truth in fixtures/*/truth.json; do
    dir=$(dirname "$truth")
    class=$(sed -n 's/^ *"true_class": "\(.*\)".*/\1/p' "$truth")
    also=$(sed -n '/"also_right"/,/\]/s/^ *"\([a-z-]*\)",\{0,1\}$/\1/p' "$truth" | tr '\n' ' ')
    verdict=$("$HOLDUP" diagnose --color never "$dir/perf.data" 2>/dev/null | sed -n 's/^VERDICT: \([a-z-]*\).*/\1/p' || true)
    all+=1
    if [ "$verdict" = "$class" ] || [[ " $also" == *" $verdict "* && -n $verdict ]]; then mark=right right+=1
    elif [ "$verdict" = not-enough-evidence ]; then mark=open open+=1
    else mark=WRONG; fi
    printf '%-24s %-27s %-27s %s\n' "$(basename "$dir")" "$class" "${verdict:-none}" "$mark"
done
echo
echo "$right of $all right, $open open, $((all - right - open)) wrong"
