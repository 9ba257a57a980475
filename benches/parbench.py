#!/usr/bin/env python3
"""parbench.py [--holdup PATH] [--work MS]: PARbench's measurements on this machine, as a table for docs/lab.md.

Each row is an experiment of the paper, with its jobs for each CPU: `holdup lab run jobs` once without a recorder, for the
times of each job, and once recorded, for the verdict. Wants a quiet machine.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

CPUS = len(os.sched_getaffinity(0))

# (what, what the paper saw, runs at once: settings of `jobs`)
ROWS = [
    ("a serial job for each CPU (4.1, 32 on 32)", "no waiting, no added user time",
     [dict(workers=CPUS, threads=1)]),
    ("three serial jobs for two CPUs (4.2, 48 on 32)", "some jobs do not wait, other jobs share a CPU in pairs and wait for half the time",
     [dict(workers=CPUS * 3 // 2, threads=1)]),
    ("the same, each job kept on a CPU (late migration)", "as above: the effect of local queues",
     [dict(workers=CPUS * 3 // 2, threads=1, bound=1)]),
    ("serial jobs and jobs of 4 threads, half each (4.3, 16 and 16)", "little speedup, more user time by busy waiting",
     [dict(workers=max(CPUS // 2, 1), threads=1), dict(workers=max(CPUS // 2, 1), threads=4, busy=1)]),
    ("the same, threads sleep at barriers", "not in the paper",
     [dict(workers=max(CPUS // 2, 1), threads=1), dict(workers=max(CPUS // 2, 1), threads=4)]),
    ("a job of 4 threads for each CPU, busy waiting (4.3, 32 on 32)", "no gain, user time grows most",
     [dict(workers=CPUS, threads=4, busy=1)]),
    ("the same, each job kept on a CPU", "the same: threads of a job stay on one CPU",
     [dict(workers=CPUS, threads=4, busy=1, bound=1)]),
    ("the same, threads sleep at barriers", "global queue: no added user time, no gain",
     [dict(workers=CPUS, threads=4)]),
    ("jobs with as many threads as CPUs, one started after the other (4.4, delayed starts)", "nearly ideal: each job is faster",
     [dict(workers=CPUS, threads=CPUS, delay=None)]),
    ("one in ten rounds writes a record", "disk parts exist, not measured there",
     [dict(workers=CPUS, threads=1, io=10)]),
]


def words(settings, work):
    chosen = dict(settings, work=f"{work}ms")
    if "delay" in chosen:
        chosen["delay"] = f"{work // chosen['threads'] + 5}ms"
    return ",".join(f"{key}={value}" for key, value in chosen.items())


def command(holdup, settings, work, out):
    return [holdup, "lab", "run", "jobs", "--set", words(settings, work), "-o", out]


def at_once(commands):
    running = [subprocess.Popen(one) for one in commands]
    for one in running:
        if one.wait() != 0:
            sys.exit("a run failed")


def recorded(holdup, runs, work, folder):
    data = os.path.join(folder, "perf.data")
    outs = [os.path.join(folder, f"r{i}.json") for i in range(len(runs))]
    lines = [" ".join(command(holdup, run, work, out)) for run, out in zip(runs, outs)]
    shell = " & ".join(lines) + "; wait"
    subprocess.run([holdup, "record", "-q", "-o", data, "--", "sh", "-c", shell], check=True)
    answer = subprocess.run([holdup, "diagnose", "-j", data], stdout=subprocess.PIPE)
    return json.loads(answer.stdout)["verdict"]


def span(values, unit="ms"):
    low, high = min(values), max(values)
    return f"{low:.0f}" if high - low < 0.06 * max(high, 1) + 2 else f"{low:.0f} to {high:.0f}"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--holdup", default="holdup")
    options.add_argument("--work", type=int, default=400, help="milliseconds of computing of a job")
    options = options.parse_args()
    print("| experiment | job wall | user | system | ready, no CPU | efficiency | all | verdict | the paper |")
    print("|---|--:|--:|--:|--:|--:|--:|---|---|")
    for name, paper, runs in ROWS:
        with tempfile.TemporaryDirectory() as folder:
            outs = [os.path.join(folder, f"{i}.json") for i in range(len(runs))]
            at_once([command(options.holdup, run, options.work, out) for run, out in zip(runs, outs)])
            jobs, everything = [], 0
            for run, out in zip(runs, outs):
                counted = json.load(open(out))
                delays = [0] * len(counted["workers"])
                if "delay" in run:
                    step = options.work // run["threads"] + 5
                    delays = [step * i for i in range(len(delays))]
                for worker, delay in zip(counted["workers"], delays):
                    jobs.append((worker, worker["wall_ns"] / 1e6 - delay, run["threads"]))
                everything = max(everything, counted["wall_ns"] / 1e6)
            verdict = recorded(options.holdup, runs, options.work, folder)
        walls = [wall for _, wall, _ in jobs]
        user = [w["user_ns"] / 1e6 for w, _, _ in jobs]
        system = [w["system_ns"] / 1e6 for w, _, _ in jobs]
        queue = [w["queue_ns"] / 1e6 for w, _, _ in jobs]
        # As fast as it could be alone on this machine.
        share = [100 * options.work / min(n, CPUS) / wall for _, wall, n in jobs]
        print(f"| {name} | {span(walls)} | {span(user)} | {span(system)} | {span(queue)} | {span(share)} % | "
              f"{everything:.0f} | {verdict['class']} {verdict['confidence']:.2f} | {paper} |", flush=True)


main()
