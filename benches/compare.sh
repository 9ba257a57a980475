#!/usr/bin/env bash
# holdup against perf (and trace-cmd) on one large recording: same file, same machine, warm page cache,
# interleaved rounds, all output to /dev/null. Needs perf; recording needs root.
#
#   benches/compare.sh [--check] [--no-script]
#
#   --check       exit 1 unless `holdup summary` is at least CHECK_RATIO (2) times as fast as the quickest
#                 perf analysis (minimum against minimum)
#   --no-script   leave out `perf script` and `trace-cmd report`, which are slow
#
#   BENCH_FILE        the recording; without it one is made: >= 500 MB, >= 5 million events, none lost
#   TRACE_DAT         a trace.dat to compare with trace-cmd report
#   HOLDUP_BENCH_DIR  where the recording is kept (target/bench)
#   ROUNDS            rounds per tool (7)
#   HOLDUP            a built holdup; without it the release build of this tree is made and used
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
. benches/peak.sh

check=0 script=1
for argument in "$@"; do
    case $argument in
    --check) check=1 ;;
    --no-script) script=0 ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "compare.sh: unknown option $argument" >&2; exit 2 ;;
    esac
done

rounds=${ROUNDS:-7}
check_ratio=${CHECK_RATIO:-2}
dir=${HOLDUP_BENCH_DIR:-target/bench}
mkdir -p "$dir"
command -v perf >/dev/null || { echo "compare.sh: perf not found" >&2; exit 1; }

if [ -z "${HOLDUP:-}" ]; then
    cargo build --release --quiet
    HOLDUP=${CARGO_TARGET_DIR:-target}/release/holdup
fi

# ---- the recording --------------------------------------------------------------------------------------

# "EVENTS LOST" of a perf.data, from perf's own statistics.
count_events() {
    perf report --stats -i "$1" 2>/dev/null | awk '
        /Aggregated stats/ { on = 1; next }
        on && / stats:$/ { exit }
        on && $1 == "SAMPLE" { samples = $3 }
        on && ($1 == "LOST" || $1 == "LOST_SAMPLES") { lost += $3 }
        END { print samples + 0, lost + 0 }'
}

record() {
    local out=$1 loops=$2 buffer=$3 list="" event tracing=/sys/kernel/tracing
    [ "$(id -u)" = 0 ] || { echo "compare.sh: recording needs root; or set BENCH_FILE" >&2; exit 1; }
    [ -d $tracing/events ] || mount -t tracefs nodev $tracing || { echo "compare.sh: no tracefs" >&2; exit 1; }
    for event in sched/sched_switch sched/sched_wakeup sched/sched_waking sched/sched_wakeup_new \
        sched/sched_migrate_task sched/sched_process_fork sched/sched_process_exec sched/sched_process_exit \
        raw_syscalls/sys_enter raw_syscalls/sys_exit lock/contention_begin lock/contention_end \
        irq/irq_handler_entry irq/irq_handler_exit irq/softirq_entry irq/softirq_exit irq/softirq_raise; do
        [ -d "$tracing/events/$event" ] && list+=",${event/\//:}"
    done
    perf record -a -m "${buffer}M" -o "$out" -e "${list#,}" -- perf bench sched messaging -g 20 -l "$loops" >/dev/null 2>"$dir/record.log" ||
        { cat "$dir/record.log" >&2; exit 1; }
}

if [ -n "${BENCH_FILE:-}" ]; then
    file=$BENCH_FILE
else
    file=$dir/messaging.perf.data
    loops=160 buffer=256
    while :; do
        if [ -f "$file" ]; then
            read -r events lost < <(count_events "$file")
            size=$(stat -c %s "$file")
            if [ "$size" -ge 500000000 ] && [ "$events" -ge 5000000 ] && [ "$lost" = 0 ]; then break; fi
            echo "compare.sh: recorded $size bytes, $events events, lost records $lost; again" >&2
            if [ "$size" -lt 500000000 ] || [ "$events" -lt 5000000 ]; then loops=$((loops * 5 / 4)); fi
        fi
        # A busy machine does not let perf write in time: all of it must fit into the buffers then.
        if [ "${lost:-0}" != 0 ]; then buffer=$((buffer * 2)); fi
        [ "$loops" -le 2000 ] && [ "$buffer" -le 1024 ] || { echo "compare.sh: could not make the recording" >&2; exit 1; }
        record "$file" "$loops" "$buffer"
        rm -f "$file.old"
    done
fi
size=$(stat -c %s "$file")
read -r events lost < <(count_events "$file")

# ---- timing ---------------------------------------------------------------------------------------------

names=() commands=()
add() { names+=("$1"); shift; commands+=("$(printf '%q ' "$@")"); }
add "perf sched latency" perf sched latency -i "$file"
add "perf lock contention" perf lock contention -i "$file"
add "perf trace -s" perf trace -s -i "$file"
add "holdup summary" "$HOLDUP" summary "$file"
if "$HOLDUP" diagnose --help >/dev/null 2>&1; then add "holdup diagnose" "$HOLDUP" diagnose "$file"; fi
add "holdup info" "$HOLDUP" info "$file"

now_us() { echo "${EPOCHREALTIME/./}"; }

# Runs a command line; prints its time in microseconds. Exit code 4 of holdup is a verdict, not a failure.
timed() {
    local start end rc=0
    start=$(now_us)
    eval "$1" >/dev/null 2>&1 </dev/null || rc=$?
    end=$(now_us)
    [ "$rc" = 0 ] || [ "$rc" = 4 ] || { echo "compare.sh: exit code $rc: $1" >&2; return 1; }
    echo $((end - start))
}

# Largest anonymous and largest total resident memory of a command, in kB, by polling.
peak_memory() {
    eval "$1 >/dev/null 2>&1 </dev/null &"
    peak $! 0.002 || true
}

cat "$file" >/dev/null
declare -A times
for ((round = 1; round <= rounds; round++)); do
    for i in "${!names[@]}"; do
        times[$i]+="$(timed "${commands[$i]}") "
    done
done

sorted() { tr ' ' '\n' <<<"$1" | sed '/^$/d' | sort -n; }
minimum() { sorted "$1" | head -n 1; }
median() { sorted "$1" | awk '{ v[NR] = $1 } END { m = int((NR + 1) / 2); print NR % 2 ? v[m] : int((v[m] + v[m + 1]) / 2) }'; }

fastest_min="" fastest_median=""
for i in "${!names[@]}"; do
    case ${names[$i]} in
    perf*)
        m=$(minimum "${times[$i]}") d=$(median "${times[$i]}")
        if [ -z "$fastest_min" ] || [ "$m" -lt "$fastest_min" ]; then fastest_min=$m; fi
        if [ -z "$fastest_median" ] || [ "$d" -lt "$fastest_median" ]; then fastest_median=$d; fi
        ;;
    esac
done

printf '%s: %d.%d MB, %d events, lost records %d; %s CPUs; %d rounds\n' "$(basename "$file")" $((size / 1000000)) \
    $((size / 100000 % 10)) "$events" "$lost" "$(nproc)" "$rounds"
printf '%s, %s\n\n' "$(perf --version)" "$("$HOLDUP" --version)"
printf '%-24s %8s %8s %11s %8s %10s %10s\n' "" "min s" "median s" "events/s" "MB/s" "x (min)" "x (median)"
row() { # name, minimum, median
    awk -v name="$1" -v m="$2" -v d="$3" -v e="$events" -v s="$size" -v fm="$fastest_min" -v fd="$fastest_median" 'BEGIN {
        printf "%-24s %8.3f %8.3f %10.2fM %8.0f %10.2f %10.2f\n", name, m / 1e6, d / 1e6, e / m, s / m, fm / m, fd / d }'
}
ratio_min=0
for i in "${!names[@]}"; do
    m=$(minimum "${times[$i]}")
    row "${names[$i]}" "$m" "$(median "${times[$i]}")"
    if [ "${names[$i]}" = "holdup summary" ]; then ratio_min=$(awk -v a="$fastest_min" -v b="$m" 'BEGIN { printf "%.3f", a / b }'); fi
done
if [ "$script" = 1 ]; then
    t=$(timed "perf script -i $(printf %q "$file")")
    row "perf script (once)" "$t" "$t"
fi
echo
echo "x: how many times as fast as the quickest perf analysis."

for i in "${!names[@]}"; do
    case ${names[$i]} in
    "holdup summary" | "holdup diagnose")
        read -r anon hwm < <(peak_memory "${commands[$i]}")
        printf '%s: peak anonymous memory %d MB, peak resident with file pages %d MB\n' "${names[$i]}" $((anon / 1024)) $((hwm / 1024))
        ;;
    esac
done

if [ -n "${TRACE_DAT:-}" ] && [ "$script" = 1 ]; then
    cat "$TRACE_DAT" >/dev/null
    report=$(timed "trace-cmd report -i $(printf %q "$TRACE_DAT")")
    list=""
    for ((round = 1; round <= rounds; round++)); do list+="$(timed "$(printf %q "$HOLDUP") summary $(printf %q "$TRACE_DAT")") "; done
    awk -v name="$(basename "$TRACE_DAT")" -v r="$report" -v h="$(minimum "$list")" 'BEGIN {
        printf "\n%s: trace-cmd report %.3f s, holdup summary %.3f s: %.1f times as fast\n", name, r / 1e6, h / 1e6, r / h }'
fi

if [ "$check" = 1 ]; then
    if awk -v r="$ratio_min" -v want="$check_ratio" 'BEGIN { exit !(r < want) }'; then
        echo "check: FAILED, holdup summary is $ratio_min times as fast as the quickest perf analysis; $check_ratio wanted"
        exit 1
    fi
    echo "check: ok, $ratio_min >= $check_ratio"
fi
