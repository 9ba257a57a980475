#!/usr/bin/env python3
"""Cuts every trace below folders and compares the figures of each cut with those of the whole.

    benches/cut.py FOLDER|TRACE... [--holdup BINARY] [--jobs N] [--peers] [--out RESULTS.tsv]

Cut are three windows of each trace (10 to 30, 40 to 60, 80 to 95 % of its time), and each phase of
those that have several. Every table is asked of the cut, and of the whole with the same choice;
with --peers, the tool of the format counts the events of the window in both as well: perf script,
trace-cmd report or babeltrace2, where it is installed and reads the whole.

One line a cut: trace, choice, bytes of whole and cut, the tables that differ, what the peer said.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

WINDOWS = ["10%,30%", "40%,60%", "80%,95%"]
VERBS = [
    "ledger", "syscalls", "syscalls --by thread", "procs", "procs --by command", "cpus", "switches",
    "irqs", "locks", "waits", "waits --by kind", "waits --by thread", "diagnose",
]
TEXT = re.compile(rb"# tracer:|\s\d+\.\d{6,9}: +[\w:*-]+:")
MAGIC = [b"PERFILE2", b"2ELIFREP", b"\x17\x08\x44tracing", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ",
         b"\x1f\x8b"]
NOT_TRACES = (".md", ".tsv", ".json", ".toml", ".c", ".py", ".rs", ".csv", ".so", ".map")


def traces(where):
    if not os.path.isdir(where):
        yield where
        return
    for at, folders, files in os.walk(where):
        folders.sort()
        if "metadata" in files:
            yield at
            folders[:] = []
            continue
        for name in sorted(files):
            path = os.path.join(at, name)
            if name.endswith(NOT_TRACES) or os.path.islink(path):
                continue
            with open(path, "rb") as f:
                head = f.read(65536)
            perfetto = head[:1] == b"\n" and re.search(r"perfetto|pftrace|\.pb$", name)
            if any(head.startswith(m) for m in MAGIC) or perfetto or TEXT.search(head):
                yield path


def run(*command):
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, "LC_ALL": "C", "PERF_PAGER": "cat"})


def figures(holdup, verb, path, select):
    """What a verb says, without what it says of the file."""
    done = run(holdup, *verb.split(), "--json", path, *select)
    if done.returncode not in (0, 4):
        return f"{done.returncode}: {done.stderr.decode(errors='replace').splitlines()[:1]}"
    value = json.loads(done.stdout.replace(json.dumps(path)[1:-1].encode(), b"TRACE"))
    for key in ["trace", "quality", "next"]:
        value.pop(key, None)
    return value


def events_of(line):
    """The time of a line of perf script or trace-cmd report, in nanoseconds."""
    m = re.search(rb" (\d+)\.(\d{6,9}): ", line)
    return int(m.group(1)) * 10**9 + int(m.group(2).ljust(9, b"0")) if m else None


def peer(path, form, window):
    """How many events the tool of the format finds in a window; None if it cannot say."""
    if form.startswith("perf.data") and shutil.which("perf"):
        done = run("perf", "script", "-f", "-G", "--ns", "-F", "comm,tid,time,event", "-i", path)
    elif form.startswith("trace.dat") and shutil.which("trace-cmd"):
        done = run("trace-cmd", "report", "-N", "-t", "-i", path)
    elif form.startswith("CTF") and shutil.which("babeltrace2"):
        done = run("babeltrace2", "--clock-seconds", "--no-delta", path)
        found = re.findall(rb"^\[(\d+)\.(\d{9})\]", done.stdout, re.M)
        times = [int(s) * 10**9 + int(ns) for s, ns in found]
        return sum(window[0] <= t <= window[1] for t in times) if done.returncode == 0 else None
    else:
        return None
    if done.returncode != 0:
        return None
    times = (events_of(line) for line in done.stdout.split(b"\n"))
    return sum(t is not None and window[0] <= t <= window[1] for t in times)


def unpacked(path, folder):
    """The trace as the peers read it."""
    for ending, tool in [(".zst", "zstd"), (".xz", "xz"), (".gz", "gzip")]:
        if path.endswith(ending) and not path.endswith(".tar.gz") and shutil.which(tool):
            to = os.path.join(folder, "whole")
            with open(to, "wb") as f:
                subprocess.run([tool, "-dc", path], stdout=f, check=False)
            return to
    return path


def look(args, path):
    found = []
    info = run(args.holdup, "info", path).stdout.decode(errors="replace").split("\n")[0]
    m = re.search(r" \(([^()]*(?:\([^()]*\))?[^()]*)\): ", info)
    if not m:
        return [(path, "", 0, 0, [], "not read")]
    phases = run(args.holdup, "phases", "--json", path)
    rows = json.loads(phases.stdout or b"{}").get("phases", []) if phases.returncode == 0 else []
    choices = [["--time", w] for w in WINDOWS]
    if len(rows) > 1:
        choices += [["--phase", str(i + 1)] for i in range(len(rows))]
    size = sum(os.path.getsize(os.path.join(at, f)) for at, _, fs in os.walk(path) for f in fs)
    size = size or os.path.getsize(path)
    with tempfile.TemporaryDirectory() as folder:
        whole = unpacked(path, folder) if args.peers else path
        for number, choice in enumerate(choices):
            output = os.path.join(folder, f"cut{number}")
            done = run(args.holdup, "cut", "-q", path, "-o", output, *choice)
            if done.returncode != 0:
                said = done.stderr.decode(errors="replace").split("\n")[0]
                found.append((path, " ".join(choice), size, 0, ["refused"], said))
                continue
            differ = [v for v in VERBS
                      if figures(args.holdup, v, output, []) != figures(args.holdup, v, path, choice)]
            said = ""
            if args.peers:
                said = compare_peers(args, m.group(1), whole, output, path)
            small = sum(os.path.getsize(os.path.join(at, f))
                        for at, _, fs in os.walk(output) for f in fs)
            small = small or os.path.getsize(output)
            found.append((path, " ".join(choice), size, small, differ, said))
            shutil.rmtree(output, ignore_errors=True)
    return found


def compare_peers(args, form, whole, output, path):
    told = json.loads(run(args.holdup, "info", "--json", output).stdout or b"{}")
    words = json.dumps(told)
    m = re.search(r"holdup cut --time (\d+)\.(\d{9}),(\d+)\.(\d{9})", words)
    if not m:
        return "no note"
    s, n, t, k = (int(x) for x in m.groups())
    window = (s * 10**9 + n, t * 10**9 + k)
    of_whole = peer(whole, form, window)
    if of_whole is None:
        return "no peer"
    of_cut = peer(output, form, window)
    return "equal" if of_cut == of_whole else f"{of_cut} of {of_whole}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("where", nargs="+")
    parser.add_argument("--holdup", default="target/release/holdup")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--out", default="-")
    args = parser.parse_args()
    paths = [p for w in args.where for p in traces(w)]
    out = sys.stdout if args.out == "-" else open(args.out, "w", encoding="utf-8")
    sums = {"cuts": 0, "equal": 0, "tables": 0, "differ": 0, "refused": 0, "unread": 0}
    peers = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for rows in pool.map(lambda p: look(args, p), paths):
            for path, choice, size, small, differ, said in rows:
                print(path, choice, size, small, ", ".join(differ), said, sep="\t", file=out,
                      flush=True)
                if not choice:
                    sums["unread"] += 1
                elif differ == ["refused"]:
                    sums["refused"] += 1
                else:
                    sums["cuts"] += 1
                    sums["equal"] += not differ
                    sums["tables"] += len(VERBS)
                    sums["differ"] += len(differ)
                    word = said if said in ("equal", "no peer", "no note", "") else "differs"
                    peers[word] = peers.get(word, 0) + 1
    print(", ".join(f"{n} {k}" for k, n in sums.items()), file=sys.stderr)
    if args.peers:
        print("peers:", ", ".join(f"{n} {k}" for k, n in peers.items()), file=sys.stderr)


if __name__ == "__main__":
    main()
