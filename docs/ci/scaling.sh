#!/usr/bin/env bash
# Records a program before and after a change on several numbers of CPUs in turn, and judges how it
# scales.
#
#   scaling.sh ROUNDS CPUS BEFORE AFTER [ARGUMENT OF holdup gate...]
#
# CPUS is a list such as "1 2 4"; BEFORE and AFTER are commands. In each round both run on each
# number of CPUs, one right after the other, which of the two first changes with every round. The
# recordings stay in holdup-runs/. Ends with the exit code of holdup gate: 0 pass, 1 regressed,
# 4 inconclusive.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rounds=$1 cpus=$2 before=$3 after=$4
shift 4

mkdir -p holdup-runs
files=()
for i in $(seq -w 1 "$rounds"); do
    for n in $cpus; do
        a=holdup-runs/before-$n-$i.data b=holdup-runs/after-$n-$i.data
        export CPUS=0-$((n - 1))
        if [ $((10#$i % 2)) = 1 ]; then
            "$here/record.sh" "$a" bash -c "$before"
            "$here/record.sh" "$b" bash -c "$after"
        else
            "$here/record.sh" "$b" bash -c "$after"
            "$here/record.sh" "$a" bash -c "$before"
        fi
        files+=("$n=$a" "$n=$b")
    done
done
exec holdup gate "$@" --scaling --pair "${files[@]}"
