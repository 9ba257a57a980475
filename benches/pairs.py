#!/usr/bin/env python3
"""Pairs of real programs: held up and mended, predicted and done. Needs root, tracepoints and what pairs.tsv names.

    benches/pairs.py measure FOLDER --holdup HOLDUP [--only WORD] [--prefix CMD]
    benches/pairs.py judge   FOLDER --holdup HOLDUP [--half 1|2]
    benches/pairs.py try     FOLDER [--only WORD]

pairs.tsv has a pair on each line: its name, the program, the class if mending gains, a command that makes ready, the
program held up, the program mended, and what runs beside the one that is held up. Commands are of a shell that has
`lib.sh`. A program is as fast as it takes little time.

measure  records the program held up with the default preset, then runs both three times in turn without any tracing.
         Time that the hypervisor took from CPUs is taken off what a run took, divided by the CPUs that were busy. The
         label is written now: the class of the table where mending gains `MATTERS` or more, else healthy.
judge    asks `diagnose` for its class and what the first finding is worth, and prints a table in Markdown.
try      runs both once, to see that they work.

Pairs are cut in two halves by a hash of the program's name. `--prefix` is a command that keeps others quiet.
"""
import argparse
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
MATTERS = 1.15
# A verdict with this confidence is meant to be right nearly always.
SURE = 0.9
# So many times each is run.
TURNS = 3


def table():
    with open(f"{HERE}/pairs.tsv", encoding="utf-8") as file:
        names = ("name", "program", "class", "setup", "held", "mended", "beside")
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row and row[0][:1] != "#"]
        return [dict(zip(names, row + [""] * len(names))) for row in rows]


def half(pair):
    return zlib.crc32(pair["program"].encode()) % 2 + 1


def shell(command):
    return ["bash", "-c", f". {HERE}/pairs/lib.sh; {command}"]


def ticks():
    """CPU time that was busy, and that the hypervisor took, in seconds."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, softirq, steal = [int(n) for n in file.readline().split()[1:9]]
    hz = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / hz, steal / hz


def once(command):
    """Seconds that the work takes, less what the hypervisor took, and the part of it that this was."""
    before, began = ticks(), time.monotonic()
    done = subprocess.run(shell(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    took, after = time.monotonic() - began, ticks()
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}")
    busy, stolen = after[0] - before[0], after[1] - before[1]
    lost = min(stolen / max((busy + stolen) / took, 1), took / 2)
    return took - lost, lost / took


def with_neighbour(pair, command):
    """The program beside its neighbour, if it has one."""
    if not pair["beside"]:
        return once(command)
    beside = subprocess.Popen(shell(pair["beside"]), start_new_session=True, stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    try:
        return once(command)
    finally:
        os.killpg(beside.pid, 9)
        beside.wait()


def measure(pair, holdup, file):
    """One step: records, or runs both once, in the folder where the program works."""
    if not os.path.exists(f"{file}.perf.data"):
        script = " ".join(f"'{word}'" for word in shell(pair["held"].replace("'", "'\\''")))
        with_neighbour(pair, f"{holdup} record -q -o {file}.new -- {script} > /dev/null")
        return os.replace(f"{file}.new", f"{file}.perf.data")
    turns = []
    if os.path.exists(f"{file}.turns"):
        with open(f"{file}.turns", encoding="utf-8") as text:
            turns = json.load(text)
    turns.append([with_neighbour(pair, pair["held"]), once(pair["mended"])])
    with open(f"{file}.turns", "w", encoding="utf-8") as out:
        json.dump(turns, out)
    if len(turns) < TURNS:
        return None
    done = statistics.median(held[0] / mended[0] for held, mended in turns)
    label = pair["class"] if done >= MATTERS else "healthy"
    with open(f"{file}.json", "w", encoding="utf-8") as out:
        json.dump({"turns": turns, "done": done, "label": label}, out)
    return None


def ask(holdup, file):
    out = subprocess.run([holdup, "diagnose", "-j", file], capture_output=True, text=True, check=False)
    if not out.stdout:
        return "failed", 0, None, None, ""
    said = json.loads(out.stdout)
    verdict = said["verdict"]
    found = next((f for f in said["findings"] if f["class"] == verdict["class"]), None)
    if not found:
        return verdict["class"], verdict["confidence"], None, None, ""
    worth = found["worth"]
    return verdict["class"], verdict["confidence"], worth["times"], found["demand"], worth["basis"]


def figures(name, errors):
    """How far off an estimator is."""
    part = [f"{sum(off <= most for off in errors)} within {most} %" for most in (5, 10, 15)]
    return f"{name}: median error {statistics.median(errors):.1f} %, of {len(errors)} {', '.join(part)}"


def judge(pairs, folder, holdup):
    print("| half | pair | measured | true class | verdict | confidence | predicted | basis | error | by demand | error |")
    print("|--:|---|--:|---|---|--:|--:|---|--:|--:|--:|")
    right, judged, sure_and_wrong, alarms = 0, 0, [], []
    errors, of_demand = [], []
    for pair in sorted(pairs, key=lambda pair: (half(pair), pair["name"])):
        file = f"{folder}/{pair['name']}"
        if not os.path.exists(f"{file}.json"):
            continue
        with open(f"{file}.json", encoding="utf-8") as text:
            truth = json.load(text)
        name, sure, worth, demand, basis = ask(holdup, f"{file}.perf.data")
        healthy = truth["label"] == "healthy"
        good = name in truth["label"].split("|")
        right, judged = right + good, judged + 1
        if not good and sure >= SURE:
            sure_and_wrong.append(pair["name"])
        if healthy and name not in ("healthy", "not-enough-evidence"):
            alarms.append(pair["name"])
        cells = []
        for gain, all_errors in ((worth, errors), (demand, of_demand)):
            error = ""
            if not healthy:
                # No figure is a prediction of no gain.
                off = ((gain or 1.0) / truth["done"] - 1) * 100
                all_errors.append(abs(off))
                error = f"{off:+.0f} %"
            cells += [f"{gain:.2f}" if gain else "", error]
        cells.insert(1, basis)
        shown = name if good else f"**{name}**"
        label = truth["label"].replace("|", ", ")
        row = [str(half(pair)), pair["name"], f"{truth['done']:.2f}", label, shown, f"{sure:.2f}", *cells]
        print(f"| {' | '.join(row)} |", flush=True)
    print(f"\nclass right in {right} of {judged}; wrong with a confidence of {SURE} or more: "
          f"{', '.join(sure_and_wrong) or 'none'}; false alarms: {', '.join(alarms) or 'none'}")
    print(figures("replay", errors))
    print(figures("demand", of_demand))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=["measure", "judge", "try", "one"])
    parser.add_argument("folder")
    parser.add_argument("--holdup")
    parser.add_argument("--only", default="")
    parser.add_argument("--half", type=int)
    parser.add_argument("--prefix", default="")
    args = parser.parse_args()
    folder = os.path.abspath(args.folder)
    pairs = [pair for pair in table() if re.search(args.only, pair["name"]) and args.half in (None, half(pair))]
    if args.what == "judge":
        return judge(pairs, folder, args.holdup)
    for pair in pairs:
        work = f"{folder}/work/{pair['name']}"
        os.makedirs(work, exist_ok=True)
        os.chdir(work)
        os.environ["PAIRS"] = folder
        file = f"{folder}/{pair['name']}"
        if args.what == "one":
            measure(pair, args.holdup, file)
            continue
        if args.what == "measure" and os.path.exists(f"{file}.json"):
            continue
        try:
            once(pair["setup"] or "true")
        except SystemExit as why:
            print(f"{pair['name']} cannot be made ready: {why}", flush=True)
            continue
        if args.what == "try":
            (held, _), (mended, _) = once(pair["held"]), once(pair["mended"])
            print(f"{pair['name']} {held:.3f} s {mended:.3f} s {held / mended:.2f}", flush=True)
            continue
        # A process of its own for each step, so that the prefix holds for all of it.
        again = [sys.executable, os.path.abspath(__file__), "one", folder, "--holdup", os.path.abspath(args.holdup)]
        while not os.path.exists(f"{file}.json"):
            ran = subprocess.run([*args.prefix.split(), *again, "--only", f"^{pair['name']}$"], check=False)
            if ran.returncode:
                print(f"{pair['name']} failed", flush=True)
                break
    return None


main()
