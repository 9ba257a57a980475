#!/usr/bin/env bash
# Records a program before and after a change in turn, and judges the pairs.
#
#   pairs.sh PAIRS BEFORE AFTER [ARGUMENT OF holdup gate...]
#
# BEFORE and AFTER are commands. What the machine does meanwhile meets both alike; which of the two
# comes first changes with every pair. The recordings stay in holdup-runs/. Ends with the exit code
# of holdup gate: 0 pass, 1 regressed, 4 inconclusive.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pairs=$1 before=$2 after=$3
shift 3

mkdir -p holdup-runs
files=()
for i in $(seq -w 1 "$pairs"); do
    a=holdup-runs/before-$i.data b=holdup-runs/after-$i.data
    if [ $((10#$i % 2)) = 1 ]; then
        "$here/record.sh" "$a" bash -c "$before"
        "$here/record.sh" "$b" bash -c "$after"
    else
        "$here/record.sh" "$b" bash -c "$after"
        "$here/record.sh" "$a" bash -c "$before"
    fi
    files+=("$a" "$b")
done
exec holdup gate "$@" --pair "${files[@]}"
