#!/usr/bin/env bash
# A recording of over 5 GB and 50 million events, with a start-up, two kinds of work and a tail: what
# holdup needs for it in time and memory. Recording takes two minutes, root, perf, python3 and 8 GB of disk.
#
#   benches/big.sh
#
#   BIG_FILE   the recording; made if it is not there (target/bench/big.perf.data)
#   HOLDUP     a built holdup; without it the release build of this tree is made and used
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
. benches/peak.sh
peaks=$(mktemp)
trap 'rm -f "$peaks"' EXIT

file=${BIG_FILE:-target/bench/big.perf.data}
if [ -z "${HOLDUP:-}" ]; then
    cargo build --release --quiet
    HOLDUP=${CARGO_TARGET_DIR:-target}/release/holdup
fi

# One process alone, 160 processes that send each other messages, two that share a pipe, one alone.
work() {
    local alone='import sys, time
end = time.time() + int(sys.argv[1])
while time.time() < end: sum(range(10000))'
    python3 -c "$alone" 8
    for _ in 1 2 3 4; do perf bench sched messaging -g 4 -l 2500; done
    perf bench sched pipe -l 300000
    python3 -c "$alone" 5
}

if [ ! -f "$file" ]; then
    tracing=/sys/kernel/tracing
    [ "$(id -u)" = 0 ] || { echo "big.sh: recording needs root; or set BIG_FILE" >&2; exit 1; }
    [ -d $tracing/events ] || mount -t tracefs nodev $tracing
    mkdir -p "$(dirname "$file")"
    export -f work
    # The recorder goes first (-r): where the load does, it cannot write in time and loses events.
    perf record -a -r 1 -m 256M -o "$file" \
        -e sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_waking \
        -e sched:sched_migrate_task,sched:sched_process_fork,sched:sched_process_exec \
        -e sched:sched_process_exit,irq:irq_handler_entry,irq:irq_handler_exit \
        -e irq:softirq_entry,irq:softirq_exit,raw_syscalls:sys_enter,raw_syscalls:sys_exit \
        -e lock:contention_begin,lock:contention_end --exclude-perf \
        -- chrt -o 0 bash -c work >/dev/null 2>"$file.log" || { cat "$file.log" >&2; exit 1; }
fi

# Seconds, then the peaks of anonymous and of all resident memory in MB, by polling.
measure() {
    local anon all start=${EPOCHREALTIME/./} took
    "$@" >/dev/null 2>&1 </dev/null &
    peak $! 0.01 >"$peaks" || [ $? = 4 ] # 4 is a verdict: not enough evidence
    read -r anon all <"$peaks"
    took=$((${EPOCHREALTIME/./} - start))
    printf '%8d.%d s %8d MB %8d MB\n' $((took / 1000000)) $((took / 100000 % 10)) \
        $((anon / 1024)) $((all / 1024))
}

"$HOLDUP" info "$file" | head -n 1
printf '%-16s %10s %11s %11s\n' "" time anonymous resident
for verb in summary diagnose phases; do
    printf 'holdup %-9s' $verb
    measure "$HOLDUP" $verb "$file"
done
