#!/usr/bin/env bash
# Very many processes that live for a moment: what holdup needs for them in time and memory, beside
# perf sched latency on the same file, and beside holdup on perf bench sched messaging, which has few.
# Recording takes a second per thousand processes, and root; needs perf and a C compiler.
#
#   benches/processes.sh [NUMBER...]     how many processes, one recording each (60000 300000)
#
#   HOLDUP_BENCH_DIR  where the recordings are kept (target/bench)
#   ROUNDS            rounds per tool, of which the quickest counts (3)
#   HOLDUP            a built holdup; without it the release build of this tree is made and used
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
. benches/peak.sh

rounds=${ROUNDS:-3}
dir=${HOLDUP_BENCH_DIR:-target/bench}
mkdir -p "$dir"
if [ -z "${HOLDUP:-}" ]; then
    cargo build --release --quiet
    HOLDUP=${CARGO_TARGET_DIR:-target}/release/holdup
fi
[ $# -gt 0 ] || set -- 60000 300000

# record FILE COMMAND...
record() {
    local file=$1
    shift
    [ -s "$file" ] && return
    [ "$(id -u)" = 0 ] || { echo "processes.sh: recording needs root" >&2; exit 1; }
    [ -d /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing
    "$HOLDUP" record -q -o "$file" -- "$@" >/dev/null
}

# CPU seconds of a command, user and kernel: the quickest of the rounds. A recording may be read by
# several threads, and on a machine that has something else to do the clock says little.
cpu() {
    local best="" took TIMEFORMAT='%U %S' status
    for ((i = 0; i < rounds; i++)); do
        took=$({ time "$@" >/dev/null 2>&1 </dev/null; } 2>&1 | awk '{ print $1 + $2 }')
        best=$(awk -v a="${best:-$took}" -v b="$took" 'BEGIN { print a < b ? a : b }')
    done
    echo "$best"
}

# row NAME EVENTS PROCESSES COMMAND...
row() {
    local name=$1 events=$2 processes=$3 took anon
    shift 3
    took=$(cpu "$@")
    read -r anon _ < <("$@" >/dev/null 2>&1 </dev/null & peak $! 0.005 || true)
    awk -v name="$name" -v events="$events" -v processes="$processes" -v took="$took" -v anon="$anon" 'BEGIN {
        printf "%-24s %8.2f s %8.0f ns %8d MB", name, took, took * 1e9 / events, anon / 1024
        if (processes > 0) printf " %10.2f KB", anon / processes
        print "" }'
}

table() { # FILE PROCESSES
    local file=$1 processes=$2 events
    events=$("$HOLDUP" info --full "$file" | sed -n '1s/.* \([0-9]*\) events.*/\1/p')
    cat "$file" >/dev/null
    printf '%s: %d MB, %d events\n' "$(basename "$file")" $(($(stat -L -c %s "$file") / 1000000)) "$events"
    printf '%-24s %10s %11s %11s' "" "CPU time" "an event" "anonymous"
    if [ "$processes" -gt 0 ]; then printf ' %13s' "a process"; fi
    echo
    row "perf sched latency" "$events" "$processes" perf sched latency -i "$file"
    for verb in diagnose ledger waits switches summary; do
        row "holdup $verb" "$events" "$processes" "$HOLDUP" "$verb" "$file"
    done
    echo
}

printf '%s, %s; %s CPUs\n\n' "$(perf --version)" "$("$HOLDUP" --version)" "$(nproc)"
record "$dir/few.perf.data" perf bench sched messaging -g 20 -l 160
table "$dir/few.perf.data" 0
cc -O2 -o "$dir/processes" benches/processes.c
for number in "$@"; do
    file=$dir/processes-$number.perf.data
    record "$file" "$dir/processes" 3 "$number" /bin/true
    table "$file" "$number"
done
