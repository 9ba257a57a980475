#!/usr/bin/env python3
"""Six locks with slow holders, and the same without what slows them: what `holdup` predicts against what is done. Needs
root, tracepoints, cc, and control groups with a CPU controller.

    benches/holders.py HOLDUP [--rounds N] [--only WORD] [--dir FOLDER] [--keep FOLDER | --from FOLDER]

The program as it is is recorded once, with the default preset; then it and the mended one run untraced, in turn. Done is
the median over the rounds of (rate of the mended) / (rate as it is); the spread is (largest - smallest) / median. Prints
a table in Markdown. `--keep` leaves recordings and rates in a folder, `--from` asks of those. `--dir` is where files are
that are synced and read.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# Name, what holders does, what runs beside it, the change.
PAIRS = [
    ("fsync", "fsync", "", "--lock mutex=awake"),
    ("client", "client", "", "--lock mutex=awake"),
    ("second", "second", "", "--lock mutex=awake"),
    ("fault", "fault", "", "--lock mutex=awake"),
    ("preempted", "compute", "compete", "--lock mutex=first"),
    ("quota", "compute", "quota", "--quota none"),
]

GROUP = "holdup-holders"
# Of a run, in ms.
DURATION = 700


def group_dir():
    """The folder of a control group with a quota of 0.4 CPUs, made."""
    for root in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup"):
        path = f"{root}/{GROUP}"
        if os.path.exists(f"{root}/cpu.cfs_quota_us") or os.path.exists(f"{root}/cgroup.controllers"):
            os.makedirs(path, exist_ok=True)
            quota, text = ("cpu.max", "40000 100000") if os.path.exists(f"{path}/cpu.max") else ("cpu.cfs_quota_us", "40000")
            with open(f"{path}/{quota}", "w") as file:
                file.write(text)
            return path
    sys.exit("no control group with a CPU controller")


def command(program, reason, beside, mended, folder):
    words = [program, reason, f"dur={DURATION}", f"dir={folder}"]
    if mended and beside != "quota":
        words.append("mended")
    if beside == "quota" and not mended:
        return ["sh", "-c", f"echo $$ > {group_dir()}/cgroup.procs; exec {' '.join(words)}"]
    return words


def neighbour(program):
    """The same program by another name: threads are named after the file, and what has one name is one work."""
    other = f"{os.path.dirname(program)}/neighbour"
    if not os.path.exists(other):
        shutil.copy(program, other)
    return other


def rate(words, beside, program):
    """How often the mutex was held in a second."""
    other = subprocess.Popen(["neighbour", "compete"], executable=neighbour(program)) if beside == "compete" else None
    time.sleep(0.05)
    try:
        out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    finally:
        if other:
            other.kill()
            other.wait()
    return json.loads(re.search(r"\{.*\}", out).group(0))["per_s"]


def measure(holdup, program, pair, rounds, folder, keep):
    name, reason, beside, _ = pair
    as_it_is, mended = (command(program, reason, beside, m, folder) for m in (False, True))
    record = [holdup, "record", "-q", "-o", f"{keep}/{name}.data", "--", *as_it_is]
    traced = rate(record, beside, program)
    rates = [(rate(as_it_is, beside, program), rate(mended, beside, program)) for _ in range(rounds)]
    if beside == "quota":
        os.rmdir(group_dir())
    with open(f"{keep}/{name}.json", "w") as file:
        json.dump({"traced": traced, "rates": rates}, file)


def mutex(holdup, trace, change):
    """The change with the address of the mutex that was waited for longest."""
    rows = json.loads(subprocess.run([holdup, "waits", "-j", trace], capture_output=True, text=True, check=True).stdout)
    known = [row for row in rows["rows"] if row["usage"] == "mutex"]
    longest = max(known, key=lambda row: row["wait_total_ns"])
    parts = ", ".join(f"{t['did']} {t['call'] or ''}".strip() + f" {t['pct']:.0f} %" for t in longest["holders_did"][:2])
    return change.replace("mutex", longest["object"]), parts


def told(holdup, pair, folder):
    name, _, _, change = pair
    trace = f"{folder}/{name}.data"
    change, parts = mutex(holdup, trace, change)
    words = [holdup, "whatif", "-j", *change.split(), trace]
    made = subprocess.run(words, capture_output=True, text=True, check=True)
    return parts, json.loads(made.stdout)["rows"][1]["gain"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("holdup")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--dir", default=".")
    parser.add_argument("--keep")
    parser.add_argument("--from", dest="kept")
    parser.add_argument("--no-table", action="store_true", help="only record and run")
    args = parser.parse_args()
    holdup = os.path.abspath(args.holdup)
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.kept or args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        pairs = [pair for pair in PAIRS if args.only in pair[0]]
        if not args.kept:
            program = f"{os.path.abspath(folder)}/holders"
            if not os.path.exists(program):
                subprocess.run(["cc", "-O2", "-pthread", "-o", program, f"{HERE}/holders.c"], check=True)
            if any(pair[1] == "fault" for pair in pairs):
                subprocess.run([program, "prepare", f"dir={os.path.abspath(args.dir)}"], check=True)
            for pair in pairs:
                measure(holdup, program, pair, args.rounds, os.path.abspath(args.dir), folder)
        if args.no_table:
            return
        print("| what a holder does | largest parts | change | predicted | measured | spread |\n|---|---|---|--:|--:|--:|")
        for pair in pairs:
            with open(f"{folder}/{pair[0]}.json") as file:
                rates = json.load(file)["rates"]
            done = [after / before for before, after in rates]
            middle = statistics.median(done)
            spread = (max(done) - min(done)) / middle * 100
            parts, gain = told(holdup, pair, folder)
            print(f"| {pair[0]} | {parts} | `{pair[3]}` | {gain:.2f} | {middle:.2f} | {spread:.0f} % |")


if __name__ == "__main__":
    main()
