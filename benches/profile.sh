#!/usr/bin/env bash
# Call chains: holdup and perf on one large recording with a chain in every event, and the names and lines of a
# program with much debug information. Same machine, warm page cache, output to /dev/null. Needs perf, root, gcc.
#
#   benches/profile.sh [--check]
#
#   --check           exit 1 unless holdup summary and profile are at least 5 times as fast as perf report, and the
#                     functions and lines of the program with 100 MB of DWARF take less than a second
#
#   BENCH_FILE        a recording with chains; without it one is made: >= 500 MB, of CPU samples and switches
#   HOLDUP_BENCH_DIR  where recordings and programs are kept (target/bench)
#   ROUNDS            rounds of holdup (5); perf runs once
#   HOLDUP            a built holdup; without it the release build of this tree is made and used
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
. benches/peak.sh

check=0
case ${1:-} in
--check) check=1 ;;
-h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
"") ;;
*) echo "profile.sh: unknown option $1" >&2; exit 2 ;;
esac
dir=${HOLDUP_BENCH_DIR:-target/bench}
rounds=${ROUNDS:-5}
mkdir -p "$dir"
command -v perf >/dev/null || { echo "profile.sh: perf not found" >&2; exit 1; }
if [ -z "${HOLDUP:-}" ]; then
    cargo build --release --quiet
    HOLDUP=${CARGO_TARGET_DIR:-target}/release/holdup
fi

# ---- the recording --------------------------------------------------------------------------------------

file=${BENCH_FILE:-$dir/chains.perf.data}
loops=60
while [ -z "${BENCH_FILE:-}" ] && { [ ! -f "$file" ] || [ "$(stat -c %s "$file")" -lt 500000000 ]; }; do
    [ "$loops" -le 2000 ] || { echo "profile.sh: could not make the recording" >&2; exit 1; }
    perf record -a -g -m 64M -q -o "$file" -e cpu-clock -F 20000 -e sched:sched_switch,sched:sched_waking,sched:sched_wakeup \
        -- perf bench sched messaging -g 20 -l "$loops" >"$dir/record.log" 2>&1 || { cat "$dir/record.log" >&2; exit 1; }
    rm -f "$file.old"
    loops=$((loops * 2))
done

# ---- the program ----------------------------------------------------------------------------------------

# Units that all have the same types, as those of a kernel do: little to compile, much to describe.
program() {
    local of=$1 units=170 i j
    mkdir -p "$of"
    {
        for ((i = 0; i < 2500; i++)); do
            echo "struct type_$i { /* no two alike */"
            for ((j = 0; j < 16; j++)); do echo "    unsigned long field_${i}_$j;"; done
            echo "    struct type_$(((i * 7) % (i + 1))) *next; };"
        done
        echo "static inline unsigned long turn(unsigned long x) { return x << 13 ^ x >> 7 ^ x; }"
    } >"$of/types.h"
    for ((i = 0; i < units; i++)); do
        printf '#include "types.h"\nextern volatile unsigned long sink;\n' >"$of/unit_$i.c"
        for ((j = 0; j < 40; j++)); do
            echo "void work_${i}_$j(unsigned long n) { while (n--) sink = turn(sink + $j); }"
        done >>"$of/unit_$i.c"
    done
    {
        echo "volatile unsigned long sink;"
        for ((i = 0; i < units; i++)); do for ((j = 0; j < 40; j++)); do echo "void work_${i}_$j(unsigned long);"; done; done
        echo "int main(void) { for (int k = 0; k < 200; k++) {"
        for ((i = 0; i < units; i++)); do for ((j = 0; j < 40; j++)); do echo "work_${i}_$j(3000);"; done; done
        echo "} return 0; }"
    } >"$of/main.c"
    (cd "$of" && gcc -O2 -g -gno-as-loc-support -fno-eliminate-unused-debug-types -fno-omit-frame-pointer -o large ./*.c)
}
large=$dir/large
[ -x "$large/large" ] || program "$large"
if [ ! -f "$large/perf.data" ]; then
    perf record -q -g -o "$large/perf.data" -e cpu-clock -F 4000 -- "$large/large" >/dev/null 2>&1
fi
dwarf=$(size -A "$large/large" | awk '/^\.debug/ { sum += $2 } END { printf "%d", sum / 1e6 }')

# ---- timing ---------------------------------------------------------------------------------------------

# Microseconds of the fastest of N runs.
best() {
    local n=$1 least=0 i start end
    shift
    for ((i = 0; i < n; i++)); do
        start=${EPOCHREALTIME/./}
        "$@" >/dev/null 2>&1 </dev/null
        end=${EPOCHREALTIME/./}
        if [ "$least" = 0 ] || [ $((end - start)) -lt "$least" ]; then least=$((end - start)); fi
    done
    echo "$least"
}
memory() {
    "$@" >/dev/null 2>&1 </dev/null &
    peak $! 0.002 || true
}
seconds() { awk -v us="$1" 'BEGIN { printf "%.2f s", us / 1e6 }'; }
failed=0
demand() { # what, figure, whether it is good enough
    local verdict=ok
    [ "$3" = 1 ] || { verdict="MISSED"; failed=1; }
    printf '  %-62s %9s  %s\n' "$1" "$2" "$verdict"
}
holds() { awk "BEGIN { print ($1) ? 1 : 0 }"; }

cat "$file" "$large/large" "$large/perf.data" >/dev/null
echo "$(basename "$file"): $(stat -c %s "$file") bytes; program: $dwarf MB of DWARF"
report=$(best 1 perf report --stdio -i "$file")
plain=$(best 1 perf report --stdio -g none --no-children --sort comm,dso,sym -i "$file")
printf '%-44s %10s\n' "perf report --stdio" "$(seconds "$report")" \
    "perf report -g none --sort comm,dso,sym" "$(seconds "$plain")"
for verb in "summary" "profile" "profile --children" "profile --tree top-down" "profile --folded" \
    "profile --pprof -" "profile --firefox -"; do
    # shellcheck disable=SC2086
    time=$(best "$rounds" "$HOLDUP" $verb "$file")
    # shellcheck disable=SC2086
    read -r anon _ < <(memory "$HOLDUP" $verb "$file")
    printf '%-44s %10s   %d MB of anonymous memory\n' "holdup $verb" "$(seconds "$time")" $((anon / 1024))
    case $verb in
    summary | profile)
        ratio=$(awk -v a="$report" -v b="$time" 'BEGIN { printf "%.1f", a / b }')
        demand "times as fast as perf report --stdio (at least 5)" "$ratio" "$(holds "$ratio >= 5")"
        ;;
    esac
done
nothing=$(best "$rounds" "$HOLDUP" profile --no-symbols "$large/perf.data")
for verb in "profile" "profile --by line" "profile --folded"; do
    # shellcheck disable=SC2086
    time=$(best "$rounds" "$HOLDUP" $verb "$large/perf.data")
    names=$((time - nothing))
    demand "$verb: names and lines of the large program (below 1 s)" "$(seconds "$names")" "$(holds "$names < 1000000")"
done
[ "$check" = 0 ] || exit "$failed"
