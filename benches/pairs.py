#!/usr/bin/env python3
"""Pairs of real programs: held up and mended, predicted and done. Needs root, tracepoints and what pairs.tsv names.

    benches/pairs.py measure FOLDER --holdup HOLDUP [--only WORD] [--prefix CMD]
    benches/pairs.py judge   FOLDER --holdup HOLDUP [--half 1|2]
    benches/pairs.py try     FOLDER [--only WORD]

pairs.tsv has a pair on each line: its name, the program, the class if mending gains, a command that makes ready, the
program held up, the program mended, and what runs beside the one that is held up. Commands are of a shell that has
`lib.sh`. A command that prints `rate N` did N units a second; any other is as fast as it takes little time.

measure  records the program held up with the default preset, then runs both three times in turn without any tracing.
         The label is written now: the class of the table where mending gains `MATTERS` or more, else healthy.
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


def table():
    with open(f"{HERE}/pairs.tsv", encoding="utf-8") as file:
        names = ("name", "program", "class", "setup", "held", "mended", "beside")
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row and row[0][:1] != "#"]
        return [dict(zip(names, row + [""] * len(names))) for row in rows]


def half(pair):
    return zlib.crc32(pair["program"].encode()) % 2 + 1


def shell(command):
    return ["bash", "-c", f". {HERE}/pairs/lib.sh; {command}"]


def once(command):
    """How much of the work is done in a second."""
    began = time.monotonic()
    done = subprocess.run(shell(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    took = time.monotonic() - began
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}")
    told = re.search(r"^rate ([\d.]+)", done.stdout, re.M)
    return float(told.group(1)) if told else 1 / took


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
    """Records, then measures in turns; all in the folder where the program works."""
    script = " ".join(f"'{word}'" for word in shell(pair["held"].replace("'", "'\\''")))
    with_neighbour(pair, f"{holdup} record -q -o {file}.perf.data -- {script} > /dev/null")
    held, mended = [], []
    for _ in range(3):
        held.append(with_neighbour(pair, pair["held"]))
        mended.append(once(pair["mended"]))
    done = statistics.median(m / h for m, h in zip(mended, held))
    label = pair["class"] if done >= MATTERS else "healthy"
    with open(f"{file}.json", "w", encoding="utf-8") as out:
        json.dump({"held": held, "mended": mended, "done": done, "label": label}, out)


def ask(holdup, file):
    out = subprocess.run([holdup, "diagnose", "-j", file], capture_output=True, text=True, check=False)
    if not out.stdout:
        return "failed", 0, None
    said = json.loads(out.stdout)
    verdict = said["verdict"]
    worth = next((f["worth"] for f in said["findings"] if f["class"] == verdict["class"]), None)
    return verdict["class"], verdict["confidence"], worth and worth["times"]


def judge(pairs, folder, holdup):
    print("| half | pair | done | class by what mending gained | printed | confidence | predicted | error |")
    print("|--:|---|--:|---|---|--:|--:|--:|")
    right, errors = 0, []
    for pair in sorted(pairs, key=lambda pair: (half(pair), pair["name"])):
        file = f"{folder}/{pair['name']}"
        if not os.path.exists(f"{file}.json"):
            continue
        with open(f"{file}.json", encoding="utf-8") as text:
            truth = json.load(text)
        name, sure, worth = ask(holdup, f"{file}.perf.data")
        good = name in truth["label"].split("|")
        right += good
        error = ""
        if truth["label"] != "healthy":
            # No figure is a prediction of no gain.
            off = ((worth or 1.0) / truth["done"] - 1) * 100
            errors.append((abs(off)))
            error = f"{off:+.0f} %"
        said = f"{worth:.2f}" if worth else ""
        shown = name if good else f"**{name}**"
        label = truth["label"].replace("|", ", ")
        print(f"| {half(pair)} | {pair['name']} | {truth['done']:.2f} | {label} | {shown} | {sure:.2f} | {said} | {error} |",
              flush=True)
    print(f"\nclass right in {right}; error of the gain: median {statistics.median(errors):.0f} %, "
          f"{sum(off > 15 for off in errors)} of {len(errors)} beyond 15 %")


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
        once(pair["setup"] or "true")
        if args.what == "try":
            held, mended = once(pair["held"]), once(pair["mended"])
            print(f"{pair['name']} {held:.3f} {mended:.3f} {mended / held:.2f}", flush=True)
            continue
        # A process of its own, so that the prefix holds for all of it.
        again = [sys.executable, os.path.abspath(__file__), "one", folder, "--holdup", os.path.abspath(args.holdup)]
        subprocess.run([*args.prefix.split(), *again, "--only", f"^{pair['name']}$"], check=False)
        # Others wait meanwhile.
        time.sleep(5 if args.prefix else 0)
    return None


main()
