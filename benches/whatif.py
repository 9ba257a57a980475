#!/usr/bin/env python3
"""Predicted against done: `holdup whatif` of a program, and the program mended. Needs root, tracepoints, cc,
libsqlite3-dev; sysbench, pigz, xz and zstd for some of the pairs.

    benches/whatif.py HOLDUP [--rounds N] [--only WORD] [--keep FOLDER | --from FOLDER]

Each round records the program as it is, then mended, one after the other, so that both meet the same machine. Done is
the median over the rounds of (rate of the mended) / (rate as it is); predicted is the median of what whatif says of the
recordings of the program as it is. Prints a table in Markdown; the spread is (largest - smallest) / median of the done
ones: what the machine does to a pair. For locks the closed model's answer stands beside: from the demand that `predict`
finds in the same recordings. `--keep` leaves the recordings and rates in a folder, `--from` asks of those.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# Program, what differs when mended (`@` runs it as it is on one CPU; `@@` runs it as it is on one CPU, mended on two),
# the change that says so. A kind of object stands for the one of that kind that was waited for longest.
PAIRS = [
    ("mutex n=2 cs=300 think=300", "cs=150", "--lock mutex=hold*0.5"),
    ("mutex n=4 cs=200 think=200", "cs=100", "--lock mutex=hold*0.5"),
    ("mutex n=2 cs=400 think=50", "cs=200", "--lock mutex=hold*0.5"),
    ("mutex n=2 cs=300 think=100", "private=1", "--lock mutex=none"),
    ("mutex n=4 cs=300 think=100", "private=1", "--lock mutex=none"),
    ("mutex n=4 cs=300 think=300", "locks=4", "--lock mutex=split:4"),
    ("flock n=2 cs=300 think=300", "cs=150", "--lock flock=hold*0.5"),
    ("flock n=3 cs=400 think=200", "cs=200", "--lock flock=hold*0.5"),
    ("semop n=2 cs=300 think=300", "cs=150", "--lock semop=hold*0.5"),
    ("semop n=4 cs=400 think=200", "cs=200", "--lock semop=hold*0.5"),
    ("msgq n=2 cs=300 think=300", "cs=150", "--lock msgq=hold*0.5"),
    ("rwlock n=2 cs=300 think=100 wpct=100", "cs=150", "--lock rwlock=hold*0.5"),
    ("server n=3 cs=600 think=300", "cs=300", "--speed server-0*2"),
    ("server n=2 cs=400 think=800", "cs=200", "--speed server-0*2"),
    ("barrier n=2 cs=1000 heavy=4", "heavy=2", "--speed barrier-0*2"),
    ("barrier n=2 cs=2000 heavy=6", "heavy=3", "--speed barrier-0*2"),
    ("amdahl n=2 ser=20000 cs=10000", "ser=10000 cs=5000", "--speed amdahl-0*2 --speed amdahl-1*2"),
    ("mmap n=2 think=100 pages=64", "proc=1", "--lock kernel-lock=none"),
    ("append n=2 kb=64 think=50", "own=1", "--lock kernel-lock=none"),
    ("cpu n=4 cs=1000 think=0", "@", "--cpus 1"),
    ("mutex n=2 cs=100 think=400", "@", "--cpus 1"),
    ("server n=3 cs=300 think=900", "@", "--cpus 1"),
    ("amdahl n=2 ser=10000 cs=20000", "@", "--cpus 1"),
    ("ring n=2 cs=300 think=0", "@", "--cpus 1"),
    ("messaging n=4", "@", "--cpus 1"),
    ("cpu n=4 cs=1000 think=0", "@@", "--affinity none"),
    ("mutex n=4 cs=100 think=600", "@@", "--affinity none"),
    ("mutex n=8 cs=200 think=400", "@@", "--affinity none"),
    ("flock n=4 cs=200 think=400", "@@", "--affinity none"),
    ("semop n=3 cs=200 think=600", "@@", "--affinity none"),
    ("server n=3 cs=300 think=900", "@@", "--affinity none"),
    ("barrier n=4 cs=1000 heavy=2", "@@", "--affinity none"),
    ("pigz -p 4 -c", "@@", "--affinity none"),
    ("xz -T4 -1 -c --block-size=2MiB", "@@", "--affinity none"),
    ("zstd -T4 -9 -q -c", "@@", "--affinity none"),
    ("sort --parallel=4 -S 1G", "@@", "--affinity none"),
    ("sqlite threads=2 memstatus=1", "memstatus=0", "--lock mutex=none"),
    ("sqlite threads=4 memstatus=1", "memstatus=0", "--lock mutex=none"),
    ("python workers=2 kind=threads", "kind=processes", "--lock condvar=none"),
    ("sysbench threads --threads=4 --thread-yields=0 --thread-locks=1", "--thread-locks=4", "--lock mutex=split:4"),
    ("sysbench mutex --threads=4 --mutex-num=1 --mutex-locks=4000 --mutex-loops=2000", "@", "--cpus 1"),
]

# Programs that read a file of words.
FILTERS = ("pigz", "xz", "zstd", "sort")


def run(holdup, wl, its, program, file, cpu=None):
    """Record a program; how much it did in a second."""
    if program[0] == "sysbench":
        command = ["sysbench", *program[2:], "--time=1" if program[1] == "threads" else "--time=0", program[1], "run"]
    elif program[0] == "sqlite":
        command = [f"{os.path.dirname(wl)}/sqlite", *program[1:], "dur=500"]
    elif program[0] in FILTERS:
        # The recorder's own beginning and end do not count.
        work = f"{' '.join(program)} {os.path.dirname(wl)}/words > /dev/null"
        command = ["sh", "-c", f"date +%s.%N; {work}; date +%s.%N"]
    elif program[0] == "python":
        command = [sys.executable, f"{HERE}/whatif_gil.py", *program[1:], "dur=500"]
    else:
        command = [wl, *program, f"itus={its}", "dur=500"]
    if cpu is not None:
        command = ["taskset", "-c", str(cpu), *command]
    record = [holdup, "record", "-q", "-o", file, "--", *command]
    out = subprocess.run(record, capture_output=True, text=True, check=True).stdout
    if program[0] in FILTERS:
        began, ended = (float(word) for word in out.split())
        return 1 / (ended - began)
    if program[0] == "sysbench":
        seconds = float(re.search(r"total time:\s+([\d.]+)s", out).group(1))
        events = int(re.search(r"total number of events:\s+(\d+)", out).group(1))
        return events / seconds
    done = json.loads(re.search(r"\{.*\}", out, re.S).group(0))
    return done["ops"] / done["wall_us"] * 1e6


def ask(holdup, *argv):
    out = subprocess.run([holdup, *argv], capture_output=True, text=True)
    return json.loads(out.stdout) if out.stdout else sys.exit(out.stderr)


def of_program(program, change):
    """Other programs of the machine have locks too."""
    comms = {"python": ["python"], "sqlite": ["sqlite"], "sysbench": ["sysbench"]}.get(program, ["wl", program])
    return " of " not in change or any(f" of {comm}" in change for comm in comms)


def predicted(holdup, program, file, change):
    words = change.split()
    kind = re.match(r"([a-z-]+)=", words[1]) if words[0] == "--lock" else None
    if kind:
        # The ranking names all objects.
        rows = ask(holdup, "whatif", "-j", "-n", "0", "--rank", file)["rows"]
        begins = f"lock {kind.group(1)} "
        named = [r for r in rows if r["change"].startswith(begins) and of_program(program, r["change"])]
        if not named:
            # Nobody waited for one.
            return 1.0
        name = max(named, key=lambda r: r["wait_ns"] or 0)["change"][len("lock "):].rsplit("=", 1)[0]
        words[1] = name + words[1][kind.end() - 1:]
    return ask(holdup, "whatif", "-j", file, *words)["rows"][-1]["gain"]


def closed(customers, holds, think):
    """Rounds per unit of time: exact mean value analysis of locks with these hold times."""
    queues = [0.0] * len(holds)
    rate = 0.0
    for n in range(1, customers + 1):
        waits = [x * (1 + q) for x, q in zip(holds, queues)]
        rate = n / (think + sum(waits))
        queues = [rate * w for w in waits]
    return rate


def by_the_model(holdup, program, file, change):
    """What the closed model says of the change, from the demand that `predict` finds; None if nothing."""
    lock = re.fullmatch(r"--lock [a-z-]+=(none|hold\*([\d.]+)|split:(\d+))", change)
    cpus = {"--cpus 1": 1, "--affinity none": 2}.get(change)
    if not lock and not cpus or program not in ("mutex", "flock", "semop", "msgq", "rwlock"):
        return None
    rows = ask(holdup, "predict", "-j", "-n", "0", "--cpus", "2", file)["rows"]
    rows = [r for r in rows if r["object"].startswith(program) and r["cpus"] == 2 and r["demand"]]
    if not rows:
        return None
    demand = max(r["demand"] for r in rows)
    customers = min(2, rows[0]["threads"])
    now = closed(customers, [demand], 1 - demand)
    if cpus:
        return 1 / now if cpus == 1 else now
    none, hold, parts = lock.groups()
    if none == "none":
        return customers / now
    if hold:
        return closed(customers, [demand * float(hold)], 1 - demand) / now
    return closed(customers, [demand / int(parts)] * int(parts), 1 - demand) / now


def rounds(args, folder, pair, wl, its):
    """Of each round: the file of the program as it is, and how many times as much the mended one did."""
    program, mended, _ = PAIRS[pair]
    kept = f"{folder}/{pair}.json"
    if args.again:
        gains = json.load(open(kept)) if os.path.exists(kept) else []
        return [(f"{folder}/{pair}-{i}.data", gain) for i, gain in enumerate(gains)]
    as_is = program.split()
    new = [] if mended.startswith("@") else mended.split()
    keys = {word.split("=")[0] for word in new}
    mend = [word for word in as_is if word.split("=")[0] not in keys] + new
    done = []
    for i in range(args.rounds):
        file = f"{folder}/{pair}-{i}.data"
        before = run(args.holdup, wl, its, as_is, file, 0 if mended == "@@" else None)
        after = run(args.holdup, wl, its, mend, f"{folder}/mended.data", 0 if mended == "@" else None)
        done.append((file, after / before))
    json.dump([gain for _, gain in done], open(kept, "w"))
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("holdup")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--from", dest="again")
    args = parser.parse_args()
    args.holdup = os.path.abspath(args.holdup)
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(args.again or args.keep or scratch)
        os.makedirs(folder, exist_ok=True)
        # Some programs write where they are.
        os.chdir(scratch)
        wl, its = f"{scratch}/wl", None
        if not args.again:
            source = f"{HERE}/../fixtures/workload/wl.c"
            subprocess.run(["cc", "-O2", "-o", wl, source, "-lpthread", "-lrt"], check=True)
            sqlite = ["cc", "-O2", "-o", f"{scratch}/sqlite", f"{HERE}/whatif_db.c", "-lsqlite3", "-lpthread"]
            subprocess.run(sqlite, check=True)
            out = subprocess.run([wl, "cpu", "n=1", "dur=500"], capture_output=True, text=True).stdout
            its = json.loads(out)["spin_it_per_us"]
            chance = random.Random(1)
            words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(5000)]
            with open(f"{scratch}/words", "w", encoding="ascii") as file:
                for _ in range(300_000):
                    file.write(" ".join(chance.choices(words, k=8)) + "\n")
        print("| program | changed to | option | replay | closed model | measured | error | error of the model | spread |")
        print("|---|---|---|---|---|---|---|---|---|")
        errors, models = [], []
        for pair, (program, mended, change) in enumerate(PAIRS):
            if args.only not in program:
                continue
            found = rounds(args, folder, pair, wl, its)
            if not found:
                continue
            name = program.split()[0]
            gains = [gain for _, gain in found]
            done = statistics.median(gains)
            said = statistics.median(predicted(args.holdup, name, file, change) for file, _ in found)
            model = [by_the_model(args.holdup, name, file, change) for file, _ in found]
            model = [gain for gain in model if gain is not None]
            error = (said / done - 1) * 100
            spread = (max(gains) - min(gains)) / done * 100
            errors.append(abs(error))
            of_model, model_off = "", ""
            if model:
                models.append((abs(statistics.median(model) / done - 1) * 100, abs(error)))
                of_model = f"{statistics.median(model):.2f}x"
                model_off = f"{(statistics.median(model) / done - 1) * 100:+.0f} %"
            mended = {"@": "one CPU", "@@": "two CPUs for one"}.get(mended, f"`{mended}`")
            print(f"| `{program}` | {mended} | `{change}` | {said:.2f}x | {of_model} | {done:.2f}x | {error:+.0f} % | "
                  f"{model_off} | {spread:.0f} % |", flush=True)
        print(f"\nmedian error {statistics.median(errors):.1f} %, {sum(e > 15 for e in errors)} of {len(errors)} above 15 %")
        if models:
            print(f"locks: closed model {statistics.median(m for m, _ in models):.1f} %, replay "
                  f"{statistics.median(r for _, r in models):.1f} %")


main()
