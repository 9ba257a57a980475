#!/usr/bin/env bash
# Many traces at once: time with one worker and with two, memory, what a kill costs, and ten thousand small
# traces. The figures of docs/fleet.md.
#
#   benches/fleet.sh [REAL [SMALL]]
#
#   REAL       rounds over the real traces, 1 unless given; 0 leaves them out
#   SMALL      small traces to make, 10000 unless given; 0 leaves them out
#   CORPUS     a folder with more recordings, if it is there (../shared/corpus/vm)
#   HOLDUP     a built holdup; without it the release build of this tree is made and used
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
rounds=${1:-1} small=${2:-10000}
corpus=${CORPUS:-../shared/corpus/vm}
if [ -z "${HOLDUP:-}" ]; then
    cargo build --release --quiet
    HOLDUP=${CARGO_TARGET_DIR:-target}/release/holdup
fi
HOLDUP=$(realpath "$HOLDUP")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Exit code 3 says that some traces could not be read: here they cannot.
fleet() { "$HOLDUP" fleet "$@" >"$work/answer" || [ $? = 3 ]; }
lines() { if [ -f "$1/journal.ndjson" ]; then wc -l <"$1/journal.ndjson"; else echo 0; fi; }
same() { diff -r "$1/tables" "$2/tables" >/dev/null && echo "the same bytes" || { echo "OTHER TABLES"; exit 1; }; }

# Every fifth trace once more without its second half, every seventh with a header of other bytes.
damage() {
    local i=0 trace
    mkdir -p "$work/damaged"
    while IFS= read -r trace; do
        i=$((i + 1))
        if [ $((i % 5)) = 0 ]; then
            head -c $(($(stat -c %s "$trace") / 2)) "$trace" >"$work/damaged/half-$i"
        fi
        if [ $((i % 7)) = 0 ]; then
            { head -c 64 /dev/urandom; tail -c +65 "$trace"; } >"$work/damaged/header-$i"
        fi
    done
}

if [ "$rounds" -gt 0 ]; then
    folders=(fixtures)
    [ -d "$corpus" ] && folders+=("$corpus")
    "$HOLDUP" fleet --list "${folders[@]}" >"$work/list"
    grep -v '\.part$' "$work/list" | while IFS= read -r t; do [ -f "$t" ] && echo "$t"; done | damage
    folders+=("$work/damaged")
    for round in $(seq "$rounds"); do
        for jobs in 1 2; do
            rm -rf "$work/out$jobs"
            echo "real traces, round $round, --jobs $jobs"
            fleet "${folders[@]}" --to "$work/out$jobs" --jobs "$jobs"
        done
    done
    sed -n 1,2p "$work/answer"
    echo "failed: $(grep -c '"outcome": "failed"' "$work/out1/manifest.json")"
    echo "one worker and two: $(same "$work/out1" "$work/out2")"
    du -sh --apparent-size "$work/out1/tables" "$work/out1/journal.ndjson" | sed "s|$work/||"

    echo "killed in the middle"
    all=$(lines "$work/out1")
    "$HOLDUP" fleet "${folders[@]}" --to "$work/killed" --jobs 2 -q >/dev/null &
    while [ "$(lines "$work/killed")" -lt $((all / 2)) ]; do sleep 0.02; done
    kill -9 $!
    wait $! 2>/dev/null || true
    done_before=$(lines "$work/killed")
    fleet "${folders[@]}" --to "$work/killed" --jobs 2
    echo "$done_before records were there before; after the resume: $(same "$work/out1" "$work/killed")"
    repeated=$(grep -o '"hash":"[0-9a-f]*"' "$work/killed/journal.ndjson" | sort | uniq -d | wc -l)
    echo "judged twice: $repeated"
fi

if [ "$small" -gt 0 ]; then
    echo "$small small traces"
    mkdir "$work/small"
    # What stands behind the last section of a perf.data is not read: other bytes, the same events.
    python3 - "$work/small" "$small" <<'PY'
import os, sys
folder, n = sys.argv[1], int(sys.argv[2])
names = ["native_cpu2_switches", "host_falseshare_n2", "neighbour_none_c4", "healthy_polite_c2"]
traces = [open(f"fixtures/{name}/perf.data", "rb").read() for name in names]
for i in range(n):
    path = os.path.join(folder, f"host-{i % 200:03}", f"{i:05}.data")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(traces[i % len(traces)] + b"copy %d" % i)
    day = 1795305600 - i % 7 * 86400
    os.utime(path, (day, day))
PY
    fleet "$work/small" --to "$work/many" --jobs "$(nproc)"
    sed -n 1,2p "$work/answer"
    echo "once more, with nothing to do:"
    fleet "$work/small" --to "$work/many"
    echo "files: $(find "$work/many" -type f | wc -l) in all, for $(lines "$work/many") traces"
    du -sh --apparent-size "$work/many/tables" "$work/many/journal.ndjson" "$work/many/manifest.json" | sed "s|$work/||"
    python3 - "$work/many/tables" 2>/dev/null <<'PY' || echo "(no DuckDB here)"
import sys, time, duckdb
began = time.time()
rows = duckdb.sql(f"""
    select verdict, count(*), count(distinct host) from
    read_parquet('{sys.argv[1]}/trace/**/*.parquet', hive_partitioning = true) group by verdict
""").fetchall()
print(f"DuckDB counts verdicts in {time.time() - began:.3f} s: {sorted(rows)}")
PY
fi
