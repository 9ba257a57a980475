#!/usr/bin/env bash
# The forms that are not perf.data, and holdup events, against the tools they belong to: same file, same
# machine, warm page cache, all output to /dev/null.
#
#   benches/formats.sh [--check]
#
#   --check       exit 1 unless: summary of a trace.dat is 20 times as fast as trace-cmd report, text is read at
#                 300 MB/s and per core, and 10 times as fast as perf script writes it, events beats perf script
#
#   TRACE_DAT         a trace.dat; without it one of >= 300 MB is recorded: trace-cmd, root, the scheduler's,
#                     system calls', interrupts' and locks' events of `perf bench sched messaging`. Where ftrace
#                     may not be used, benches/lengthen.py makes a long one of a short one from elsewhere
#   BENCH_FILE        a perf.data, for perf script (default: what benches/compare.sh made)
#   HOLDUP_BENCH_DIR  where recordings are kept (target/bench)
#   ROUNDS            rounds of holdup (5); the slow tools run once
#   HOLDUP            a built holdup; without it the release build of this tree is made and used
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
check=0
case ${1:-} in
--check) check=1 ;;
-h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
"") ;;
*) echo "formats.sh: unknown option $1" >&2; exit 2 ;;
esac
dir=${HOLDUP_BENCH_DIR:-target/bench}
rounds=${ROUNDS:-5}
mkdir -p "$dir"
if [ -z "${HOLDUP:-}" ]; then
    cargo build --release --quiet
    HOLDUP=${CARGO_TARGET_DIR:-target}/release/holdup
fi
perf_data=${BENCH_FILE:-$dir/messaging.perf.data}
[ -f "$perf_data" ] || { echo "formats.sh: no $perf_data; run benches/compare.sh first or set BENCH_FILE" >&2; exit 1; }

dat=${TRACE_DAT:-$dir/messaging.trace.dat}
loops=120
while [ ! -f "$dat" ] || [ "$(stat -c %s "$dat")" -lt 300000000 ]; do
    [ -z "${TRACE_DAT:-}" ] && [ "$loops" -le 2000 ] || { echo "formats.sh: $dat is too small" >&2; exit 1; }
    enable=()
    for event in sched raw_syscalls irq lock:contention_begin lock:contention_end; do enable+=(-e "$event"); done
    trace-cmd record -o "$dat" -b 400000 --file-version 7 --compression none "${enable[@]}" \
        perf bench sched messaging -g 20 -l "$loops" >"$dir/trace-cmd.log" 2>&1 || { tail -5 "$dir/trace-cmd.log" >&2; exit 1; }
    loops=$((loops * 3 / 2))
done

# Microseconds of the fastest of N runs.
best() {
    local n=$1 least=0 i start end
    shift
    for ((i = 0; i < n; i++)); do
        start=${EPOCHREALTIME/./}
        "$@" >/dev/null 2>&1 || [ $? = 4 ]
        end=${EPOCHREALTIME/./}
        if [ "$least" = 0 ] || [ $((end - start)) -lt "$least" ]; then least=$((end - start)); fi
    done
    echo "$least"
}
# Processor time of the cheapest of N runs, in microseconds: what one core needs, whoever else uses it.
cheapest() {
    local n=$1 i out
    shift
    for ((i = 0; i < n; i++)); do
        out=$( { TIMEFORMAT='%U %S'; time "$@" >/dev/null 2>&1; } 2>&1 ) || true
        echo "$out"
    done | awk '{ us = ($1 + $2) * 1e6; if (NR == 1 || us < least) least = us } END { printf "%d\n", least }'
}
seconds() { awk -v us="$1" 'BEGIN { printf "%.2f s", us / 1e6 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a / b }'; }
rate() { awk -v bytes="$1" -v us="$2" 'BEGIN { printf "%.0f", bytes / us }'; }
failed=0
demand() { # what, figure, at least
    local verdict=ok
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a >= b) }' || { verdict="MISSED"; failed=1; }
    printf '  %-58s %8s  (at least %s: %s)\n' "$1" "$2" "$3" "$verdict"
}

text=$dir/script.txt
cat "$perf_data" "$dat" >/dev/null
echo "trace.dat: $(stat -c %s "$dat") bytes; perf.data: $(stat -c %s "$perf_data") bytes"
report=$(best 1 trace-cmd report -i "$dat")
summary=$(best "$rounds" "$HOLDUP" summary "$dat")
events_dat=$(best "$rounds" "$HOLDUP" events "$dat")
start=${EPOCHREALTIME/./}
perf script -i "$perf_data" >"$text" 2>/dev/null
script=$((${EPOCHREALTIME/./} - start))
bytes=$(stat -c %s "$text")
cat "$text" >/dev/null
events=$(best "$rounds" "$HOLDUP" events "$perf_data")
read_text=$(best "$rounds" "$HOLDUP" summary "$text")
one_core=$(cheapest "$rounds" "$HOLDUP" summary "$text")

printf '%-34s %10s\n' "trace-cmd report" "$(seconds "$report")" "holdup summary, the same file" "$(seconds "$summary")" \
    "holdup events, the same file" "$(seconds "$events_dat")" "perf script" "$(seconds "$script")" \
    "holdup events, the same file" "$(seconds "$events")" "holdup summary of perf script's text" "$(seconds "$read_text")" \
    "  time of all its cores together" "$(seconds "$one_core")"
echo
demand "trace.dat: times faster than trace-cmd report" "$(ratio "$report" "$summary")" 20
demand "text: MB/s per core, decoding and summary" "$(rate "$bytes" "$one_core")" 300
demand "text: times faster than perf script writes it" "$(ratio "$script" "$read_text")" 10
demand "events: times faster than perf script" "$(ratio "$script" "$events")" 1
[ "$check" = 0 ] || exit "$failed"
