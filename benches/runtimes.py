#!/usr/bin/env python3
"""What `holdup record --runtime-locks` costs: programs alone, under `holdup record` and with the probes, in turns,
medians printed as a table in Markdown. Needs root and tracepoints.

    benches/runtimes.py HOLDUP FILE [--rounds N] [--only WORD]

FILE has a line `NAME<TAB>PROGRAMS<TAB>SHELL COMMAND` for each: the files with a runtime, with commas between them, and a
command that prints how much it did, and that a second. benches/runtimes/README.md has those of docs/recording.md.

CPU time is that of the command and all that it starts, and with a recorder of that too, for each thing that was done.
What a hit takes is by how much that grows from `holdup record` to the probes, by hits for each.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile


def cpu_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(argv):
    """What the command did a second, and the CPU time in microseconds that each took."""
    before = cpu_time()
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    units, rate = (float(n.replace(",", "")) for n in done.stdout.splitlines()[-1].split())
    return rate, (cpu_time() - before) / units * 1e6, units


def hits(holdup, trace):
    """How often a probe was hit."""
    seen = 0
    for system in ("go", "java"):
        read = [holdup, "events", "-q", "-e", f"{system}:*", trace]
        with subprocess.Popen(read, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as events:
            seen += sum(1 for _ in events.stdout)
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("holdup")
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    print("| program | a second: alone | recorded | with probes | CPU us for each: alone | recorded | with probes "
          "| hits for each | us a hit |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    trace = os.path.join(tempfile.mkdtemp(), "perf.data")
    for line in open(args.file):
        name, programs, command = line.rstrip("\n").split("\t")
        if args.only not in name:
            continue
        record = [args.holdup, "record", "-q", "-o", trace]
        probed = f"--runtime-locks={os.path.expandvars(programs)}"
        ways = [[], [*record, "--"], [*record, probed, "--"]]
        rounds, hit = [[], [], []], []
        for _ in range(args.rounds):
            for way, kept in zip(ways, rounds):
                kept.append(run([*way, "bash", "-c", command]))
            hit.append(hits(args.holdup, trace) / rounds[2][-1][2])
        rates = [statistics.median(r[0] for r in kept) for kept in rounds]
        times = [statistics.median(r[1] for r in kept) for kept in rounds]
        hit = statistics.median(hit)
        took = f"{(times[2] - times[1]) / hit:.1f}" if hit > 0.01 else "n/a"
        figures = [*(f"{rate:,.0f}" for rate in rates), *(f"{time:,.3g}" for time in times), f"{hit:.2g}", took]
        print(f"| {name} | {' | '.join(figures)} |", flush=True)
        for kept in rounds:
            print(name, [f"{rate:,.0f}, {time:,.3g} us" for rate, time, _ in kept], file=sys.stderr)


main()
