#!/usr/bin/env python3
"""Where the instructions of a reading go: how many an event takes at each station of its road.

    benches/instructions.py [--top N] [VERB]        VERB is summary unless it is given

Times depend on what else the machine does; instructions do not. Two parts of a recording, of which
one is three times as long, are read under valgrind. What one has more than the other is what the
events take: start and output are in both. Needs valgrind, the recording of benches/compare.sh, in
which nearly all events are system calls of few threads, and that of benches/processes.sh, in which
processes live for a moment. Each recording is a column.

    BENCH_FILE  another recording instead of the two in target/bench
    HOLDUP      a built holdup (target/release/holdup), with line tables:
                CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo build --release
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TRACES = ["target/bench/messaging.perf.data", "target/bench/processes-60000.perf.data"]
SHORT, LONG = "40%,45%", "40%,55%"

# The station of a function, by what its name has; the first that fits.
STATIONS = [
    ("index", r"perfdata::(walk|index)"),
    ("decode", r"holdup_(perfdata|tracepoint)|merge::decode|holdup_trace::names"),
    # The loop over events has the engine inlined, and the name of one of these closures.
    ("passes", r"holdup_passes|thread::scoped::scope|merge::drive"),
    ("order", r"holdup_trace::merge"),
    ("judge", r"holdup_(attribution|diagnose|model|replay)"),
    ("render", r"holdup_render"),
    ("else", r""),
]


def own_instructions(path):
    """Instructions of each function without those of what it calls."""
    names, own, function, of_call = {}, collections.Counter(), None, False
    for line in open(path, encoding="utf-8", errors="replace"):
        if named := re.match(r"c?fn=\((\d+)\)(?: (.*))?", line):
            if named[2]:
                names[named[1]] = named[2]
            if line.startswith("fn="):
                function = names[named[1]]
        elif line.startswith("calls="):
            of_call = True
        elif line[0] in "0123456789+-*":
            if not of_call and function:
                own[function] += int(line.split()[1])
            of_call = False
    return own


def read(holdup, verb, trace):
    """By how many events the parts differ, and the instructions of each function per such event."""
    counts, events = [], []
    with tempfile.TemporaryDirectory() as folder:
        for part in SHORT, LONG:
            cut, out = f"{folder}/cut.perf.data", f"{folder}/out"
            told = subprocess.run([holdup, "cut", "--time", part, "-o", cut, trace], check=True,
                                  capture_output=True, text=True)
            events.append(int(re.search(r"(\d+) events", told.stdout + told.stderr)[1]))
            subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", holdup,
                            verb, cut], stdout=subprocess.DEVNULL, check=True)
            counts.append(own_instructions(out))
            os.remove(cut)
    more = events[1] - events[0]
    return more, collections.Counter({f: (n - counts[0][f]) / more for f, n in counts[1].items()})


def main():
    args = sys.argv[1:]
    top = int(args.pop(args.index("--top") + 1)) if "--top" in args else 0
    args = [a for a in args if a != "--top"]
    verb = args[0] if args else "summary"
    holdup = os.environ.get("HOLDUP", "target/release/holdup")
    traces = [os.environ["BENCH_FILE"]] if "BENCH_FILE" in os.environ else TRACES
    found = [read(holdup, verb, trace) for trace in traces]

    def row(name, of):
        print("".join(f"{of(an_event):>16.1f}" for _, an_event in found), "", name)

    def of_station(station, an_event):
        at = lambda f: next(s for s, fits in STATIONS if re.search(fits, f))
        return sum(n for f, n in an_event.items() if at(f) == station)

    print(f"holdup {verb}: instructions an event")
    print("".join(f"{pathlib.Path(trace).name.split('.')[0]:>16}" for trace in traces))
    print("".join(f"{more:>16}" for more, _ in found), " events")
    for station, _ in STATIONS:
        row(station, lambda an_event: of_station(station, an_event))
    row("all", lambda an_event: sum(an_event.values()))
    functions = {f for _, an_event in found for f in an_event}
    for function in sorted(functions, key=lambda f: -max(e[f] for _, e in found))[:top]:
        row("  " + function, lambda an_event: an_event[function])


if __name__ == "__main__":
    main()
