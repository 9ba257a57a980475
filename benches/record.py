#!/usr/bin/env python3
"""What recording costs: holdup beside perf, in turns, medians printed. Needs root, tracepoints, perf and cc.

    benches/record.py messaging HOLDUP [--ring SIZE] [--rounds N]
    benches/record.py calls     HOLDUP [--rounds N]
    benches/record.py programs  HOLDUP FILE [--rounds N]

messaging  `perf bench sched messaging -g 4` alone, under `perf record` and under `holdup record`, both with the same
           events and the same size of ring, both recording the whole machine, and under `perf record` with a ring of
           64 MiB, which loses nothing: the benchmark's time, the recorder's CPU time, events kept and lost.
calls      What one getppid costs: alone, under the default choice (which leaves it dark), under all calls.
programs   FILE has a line `NAME<TAB>SHELL COMMAND` for each program: its time alone, under the default recording and
           under one of all calls, and the verdict of each recording.

The recorder is started first and ended with SIGINT, so its CPU time is its own and not that of the program.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Recorder:
    """A recording of the whole machine while a `with` block runs."""

    def __init__(self, argv, path):
        self.argv, self.path = argv, path

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.argv, stdout=subprocess.DEVNULL, stderr=self.log)
        # The file is there when the events are being opened; a second later they are all on.
        deadline = time.monotonic() + 30
        while not os.path.exists(self.path) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)
        return self

    def __exit__(self, *_):
        # Not send_signal: that would reap a recorder that has ended, and its times with it.
        os.kill(self.process.pid, signal.SIGINT)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = status
        self.cpu = usage.ru_utime + usage.ru_stime
        if not os.path.exists(self.path):
            self.log.seek(0)
            sys.exit(f"{self.argv}: no recording: {self.log.read().decode()}")


def timed(command):
    started = time.monotonic()
    subprocess.run(command, shell=isinstance(command, str), check=True, **QUIET)
    return time.monotonic() - started


def spent(command):
    """(elapsed, CPU time) of a shell command and all that it waited for, seconds."""
    started = time.monotonic()
    shell = subprocess.Popen(command, shell=True, **QUIET)
    _, shell.returncode, usage = os.wait4(shell.pid, 0)
    if shell.returncode:
        sys.exit(f"{command}: failed")
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime


def ask(holdup, *argv):
    done = subprocess.run([holdup, *argv], capture_output=True, text=True)
    return json.loads(done.stdout)


def held(holdup, path):
    """(events, lost events) of a recording."""
    trace = ask(holdup, "info", "--full", "--format", "json", path)["trace"]
    return trace["events"], trace["lost_events"]


def recorded(argv, path, work):
    """(what `work` returned, CPU seconds of the recorder)."""
    if os.path.exists(path):
        os.remove(path)
    with Recorder(argv, path) as recorder:
        result = work()
    return result, recorder.cpu


def row(name, columns, shown):
    cells = [statistics.median(c) for c in zip(*columns)]
    print(f"{name:<10}" + "".join(f"{text.format(cell):>14}" for text, cell in zip(shown, cells)))


def messaging(args, folder):
    bench = ["perf", "bench", "sched", "messaging", "-g", "4", "-l", "200"]
    ours, theirs = f"{folder}/holdup.data", f"{folder}/perf.data"
    holdup = [args.holdup, "record", "-a", "-m", args.ring, "-o", ours]
    recorded(holdup, ours, lambda: None)
    listed = subprocess.run(["perf", "evlist", "-i", ours], capture_output=True, text=True).stdout
    # perf ends its list with a tip.
    lines = [line.strip() for line in listed.splitlines() if not line.startswith("#")]
    events = [e for e in lines if ":" in e and not e.startswith("dummy")]

    def perf(ring):
        wanted = [a for e in events for a in ("-e", e)]
        return ["perf", "record", "-q", "-a", "-m", ring, "-o", theirs, *wanted]

    recorders = {
        "perf": (perf(args.ring), theirs),
        "perf 64M": (perf("64M"), theirs),
        "holdup": (holdup, ours),
    }
    results = {"alone": [], **{name: [] for name in recorders}}
    for _ in range(args.rounds):
        results["alone"].append((timed(bench),))
        for name, (argv, path) in recorders.items():
            seconds, cpu = recorded(argv, path, lambda: timed(bench))
            kept, lost = held(args.holdup, path)
            per_event = cpu / max(kept, 1) * 1e9
            results[name].append((seconds, cpu, kept, lost / (kept + lost) * 100, per_event))
    print(f"{len(events)} events, rings of {args.ring}, medians of {args.rounds}")
    heads = ("seconds", "CPU s", "kept", "lost %", "ns CPU/event")
    print(" " * 10 + "".join(f"{h:>14}" for h in heads))
    for name, columns in results.items():
        row(name, columns, ("{:.2f}", "{:.2f}", "{:.0f}", "{:.1f}", "{:.0f}"))


CALLS = r"""
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    enum { BATCH = 20000, BATCHES = 50 };
    double all = 0, least = 1e9;
    for (int b = 0; b < BATCHES; b++) {
        struct timespec a, z;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < BATCH; i++) syscall(SYS_getppid);
        clock_gettime(CLOCK_MONOTONIC, &z);
        double ns = ((z.tv_sec - a.tv_sec) * 1e9 + (z.tv_nsec - a.tv_nsec)) / BATCH;
        all += ns;
        if (ns < least) least = ns;
    }
    printf("%f %f\n", all / BATCHES, least);
}
"""


def calls(args, folder):
    with open(f"{folder}/calls.c", "w") as source:
        source.write(CALLS)
    program = f"{folder}/calls"
    subprocess.run(["cc", "-O2", "-o", program, f"{folder}/calls.c"], check=True)

    def measure():
        done = subprocess.run([program], capture_output=True, text=True, check=True)
        return tuple(float(word) for word in done.stdout.split())

    ours, theirs = f"{folder}/holdup.data", f"{folder}/perf.data"
    holdup = [args.holdup, "record", "-a", "-o", ours]
    perf = ["perf", "record", "-q", "-a", "-e", "raw_syscalls:*", "-o", theirs]
    results = {"alone": [], "default": [], "all calls": [], "perf, all": []}
    for _ in range(args.rounds):
        results["alone"].append(measure())
        results["default"].append(recorded(holdup, ours, measure)[0])
        results["all calls"].append(recorded(holdup + ["--all-syscalls"], ours, measure)[0])
        results["perf, all"].append(recorded(perf, theirs, measure)[0])
    print(f"getppid, medians of {args.rounds}")
    print(" " * 10 + f"{'mean ns':>14}{'least ns':>14}")
    for name, columns in results.items():
        row(name, columns, ("{:.0f}", "{:.0f}"))


def programs(args, folder):
    path = f"{folder}/holdup.data"
    kinds = {"default": [], "all": ["--all-syscalls"]}
    print(f"{'':<10}{'alone':>8}{'alone':>8}{'default':>9}{'default':>9}{'all':>8}{'all':>8}")
    print(f"{'program':<10}{'s':>8}{'CPU s':>8}{'s %':>9}{'CPU %':>9}{'s %':>8}{'CPU %':>8}  verdicts: default / all")
    for line in open(args.file):
        name, command = line.rstrip("\n").split("\t", 1)
        timed(command)
        alone, under, verdicts = [], {k: [] for k in kinds}, {}
        for _ in range(args.rounds):
            alone.append(spent(command))
            for kind, more in kinds.items():
                argv = [args.holdup, "record", "-a", "-o", path, *more]
                under[kind].append(recorded(argv, path, lambda: spent(command))[0])
        for kind, more in kinds.items():
            # The verdict is asked of a recording that begins and ends with the command.
            subprocess.run(
                [args.holdup, "record", "-o", path, *more, "--", "sh", "-c", command], **QUIET
            )
            verdicts[kind] = ask(args.holdup, "diagnose", "--format", "json", path)["verdict"]
        # The least of each: what other work of the machine adds is never negative.
        least = [min(times) for times in zip(*alone)]
        more = [[(min(t) / l - 1) * 100 for t, l in zip(zip(*under[k]), least)] for k in kinds]
        (wall, cpu), (all_wall, all_cpu) = more
        said = " / ".join(f"{v['class']} {v['confidence']:.2f}" for v in verdicts.values())
        print(
            f"{name:<10}{least[0]:>8.2f}{least[1]:>8.2f}{wall:>+9.1f}{cpu:>+9.1f}{all_wall:>+8.1f}{all_cpu:>+8.1f}  {said}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("messaging", "calls", "programs"))
    parser.add_argument("holdup")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--ring", default="4M")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.what == "programs" and not args.file:
        parser.error("programs needs FILE")
    with tempfile.TemporaryDirectory() as folder:
        {"messaging": messaging, "calls": calls, "programs": programs}[args.what](args, folder)


main()
