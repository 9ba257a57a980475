#!/usr/bin/env python3
"""Predicted against done: `holdup whatif` of a program, and the program mended. Needs root, tracepoints, cc,
libsqlite3-dev; sysbench for two of the pairs.

    benches/whatif.py HOLDUP [--rounds N] [--only WORD]

Each round records the program as it is, then mended, one after the other, so that both meet the same machine. Done is
the median over the rounds of (rate of the mended) / (rate as it is); predicted is the median of what whatif says of the
recordings of the program as it is. Prints a table in Markdown; the spread is (largest - smallest) / median of the done
ones: what the machine does to a pair.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# Program, what differs when mended (`@` runs it as it is on one CPU), the change that says so. A kind of object stands
# for the one of that kind that was waited for longest.
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
    ("sqlite threads=2 memstatus=1", "memstatus=0", "--lock mutex=none"),
    ("sqlite threads=4 memstatus=1", "memstatus=0", "--lock mutex=none"),
    ("python workers=2 kind=threads", "kind=processes", "--lock condvar=none"),
    ("sysbench threads --threads=4 --thread-yields=0 --thread-locks=1", "--thread-locks=4", "--lock mutex=split:4"),
    ("sysbench mutex --threads=4 --mutex-num=1 --mutex-locks=4000 --mutex-loops=2000", "@", "--cpus 1"),
]


def run(holdup, wl, its, program, file, cpu=None):
    """Record a program; how much it did in a second."""
    if program[0] == "sysbench":
        command = ["sysbench", *program[2:], "--time=1" if program[1] == "threads" else "--time=0", program[1], "run"]
    elif program[0] == "sqlite":
        command = [f"{os.path.dirname(wl)}/sqlite", *program[1:], "dur=500"]
    elif program[0] == "python":
        command = [sys.executable, f"{HERE}/whatif_gil.py", *program[1:], "dur=500"]
    else:
        command = [wl, *program, f"itus={its}", "dur=500"]
    if cpu is not None:
        command = ["taskset", "-c", str(cpu), *command]
    record = [holdup, "record", "-q", "-o", file, "--", *command]
    out = subprocess.run(record, capture_output=True, text=True, check=True).stdout
    if program[0] == "sysbench":
        seconds = float(re.search(r"total time:\s+([\d.]+)s", out).group(1))
        events = int(re.search(r"total number of events:\s+(\d+)", out).group(1))
        return events / seconds
    done = json.loads(re.search(r"\{.*\}", out, re.S).group(0))
    return done["ops"] / done["wall_us"] * 1e6


def ask(holdup, *argv):
    out = subprocess.run([holdup, *argv], capture_output=True, text=True)
    return json.loads(out.stdout) if out.stdout else sys.exit(out.stderr)


def predicted(holdup, program, file, change):
    words = change.split()
    kind = re.match(r"([a-z-]+)=", words[1]) if words[0] == "--lock" else None
    if kind:
        # The ranking names all objects.
        rows = ask(holdup, "whatif", "-j", "-n", "0", "--rank", file)["rows"]
        begins = f"lock {kind.group(1)} "
        # Other programs of the machine have locks too.
        of = {"python": "python3", "sqlite": "sqlite", "sysbench": "sysbench"}.get(program, "wl")
        named = [r for r in rows if r["change"].startswith(begins) and f" of {of}" in r["change"]]
        named = named or [r for r in rows if r["change"].startswith(begins) and " of " not in r["change"]]
        if not named:
            return 1.0
        name = max(named, key=lambda r: r["wait_ns"] or 0)["change"][len("lock "):].rsplit("=", 1)[0]
        words[1] = name + words[1][kind.end() - 1:]
    return ask(holdup, "whatif", "-j", file, *words)["rows"][-1]["gain"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("holdup")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        wl, file, other = f"{folder}/wl", f"{folder}/a.data", f"{folder}/b.data"
        subprocess.run(["cc", "-O2", "-o", wl, f"{HERE}/../fixtures/workload/wl.c", "-lpthread", "-lrt"], check=True)
        sqlite = ["cc", "-O2", "-o", f"{folder}/sqlite", f"{HERE}/whatif_db.c", "-lsqlite3", "-lpthread"]
        subprocess.run(sqlite, check=True)
        its = json.loads(subprocess.run([wl, "cpu", "n=1", "dur=500"], capture_output=True, text=True).stdout)
        its = its["spin_it_per_us"]
        print("| program | mended | change | predicted | done | error | spread |\n|---|---|---|---|---|---|---|")
        errors = []
        for program, mended, change in PAIRS:
            if args.only not in program:
                continue
            as_is = program.split()
            new = [] if mended == "@" else mended.split()
            keys = {word.split("=")[0] for word in new}
            mend = [word for word in as_is if word.split("=")[0] not in keys] + new
            gains, foretold = [], []
            for _ in range(args.rounds):
                before = run(args.holdup, wl, its, as_is, file)
                after = run(args.holdup, wl, its, mend, other, 0 if mended == "@" else None)
                gains.append(after / before)
                foretold.append(predicted(args.holdup, as_is[0], file, change))
            done, said = statistics.median(gains), statistics.median(foretold)
            error = (said / done - 1) * 100
            spread = (max(gains) - min(gains)) / done * 100
            errors.append(abs(error))
            mended = "one CPU" if mended == "@" else f"`{mended}`"
            print(f"| `{program}` | {mended} | `{change}` | {said:.2f}x | {done:.2f}x | {error:+.0f} % | {spread:.0f} % |",
                  flush=True)
        print(f"\nmedian error {statistics.median(errors):.1f} %, {sum(e > 15 for e in errors)} of {len(errors)} above 15 %")


main()
