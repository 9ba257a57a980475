#!/usr/bin/env python3
"""What `holdup record --runtime-locks` costs: programs alone, under `holdup record` and with the probes, in turns,
medians printed as a table in Markdown. Needs root and tracepoints.

    benches/runtimes.py HOLDUP FILE [--rounds N] [--only WORD]

FILE has a line `NAME<TAB>PROGRAMS<TAB>SHELL COMMAND` for each: the files with a runtime, with commas between them, and a
command whose last number is how much it did a second. benches/runtimes/README.md has those of docs/recording.md.

What a hit takes is how much longer a unit of work is with the probes than under `holdup record`, by hits a unit: that of
a program of one thread, to others it costs as much as they wait for that thread.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def rate(argv):
    """What the command says that it did a second."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return float(NUMBER.findall(done.stdout.splitlines()[-1])[-1].replace(",", ""))


def hits(holdup, trace):
    """Times that a probe was hit, a second of the recording."""
    info = json.loads(subprocess.run([holdup, "info", "-j", trace], capture_output=True, check=True).stdout)["trace"]
    seen = 0
    for system in ("go", "java"):
        read = [holdup, "events", "-q", "-e", f"{system}:*", trace]
        with subprocess.Popen(read, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as events:
            seen += sum(1 for _ in events.stdout)
    return seen / ((info["end_ns"] - info["start_ns"]) / 1e9)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("holdup")
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    print("| program | alone | `holdup record` | with `--runtime-locks` | hits a second | ns a hit |")
    print("|---|--:|--:|--:|--:|--:|")
    folder = tempfile.mkdtemp()
    trace = os.path.join(folder, "perf.data")
    for line in open(args.file):
        name, programs, command = line.rstrip("\n").split("\t")
        if args.only not in name:
            continue
        ways = [
            [],
            [args.holdup, "record", "-q", "-o", trace, "--"],
            [args.holdup, "record", "-q", "-o", trace, f"--runtime-locks={os.path.expandvars(programs)}", "--"],
        ]
        rates, per_second = [[], [], []], []
        for _ in range(args.rounds):
            for way, kept in zip(ways, rates):
                kept.append(rate(way + ["bash", "-c", command]))
            per_second.append(hits(args.holdup, trace))
        alone, recorded, probed = (statistics.median(kept) for kept in rates)
        hit = statistics.median(per_second)
        took = (1e9 / probed - 1e9 / recorded) / (hit / probed) if hit else 0
        print(f"| {name} | {alone:,.0f} | {recorded:,.0f} | {probed:,.0f} | {hit:,.0f} | {took:,.0f} |", flush=True)
        print(name, *([f"{r:,.0f}" for r in kept] for kept in rates), file=sys.stderr)


main()
