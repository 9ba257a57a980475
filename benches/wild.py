#!/usr/bin/env python3
"""Reads every trace below a folder with every verb, and compares with the tools the traces are of.

    benches/wild.py FOLDER [--holdup BINARY] [--out RESULTS.tsv] [--jobs N] [--list]

Meant for files that others recorded, of which nobody knows what is in them. Each verb has a limit
of time and memory. Events are counted by perf script, trace-cmd report and babeltrace2 too, where
these are installed and read the file, and here in text and Perfetto. Traces are told apart by how
the answers differ, worst first:

    panic     a verb panicked, or died of a signal
    limit     a verb took more time or memory than it may
    failed    a verb failed on a file that info reads
    count     another number of events than the peer's
    ledger    waits lays more idle time to objects than the ledger has
    refused   holdup does not read it, and says why
    right     none of these

One line a file: class, path below the folder, SHA-256 (16 digits), bytes, format, events, events by
the peer, verdict, seconds of the slowest verb, largest memory in MiB, remark.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import time

SECONDS = 60
MEMORY = 4 << 30
VERBS = [
    ["info"], ["diagnose"], ["summary"], ["procs"], ["profile"], ["path"], ["switches"], ["locks"],
    ["phases"], ["events"],
]
CLASSES = ["panic", "limit", "failed", "count", "ledger", "refused", "right"]
MAGIC = [b"PERFILE2", b"2ELIFREP", b"\x17\x08\x44tracing"]
TEXT = re.compile(rb"# tracer:|\s\d+\.\d{6,9}: +[\w:*-]+:")
# A line of an event: something, a time, a number perhaps, a name.
LINE = re.compile(rb"(?!#)\s*\S.*?\s\d+\.\d{4,9}: +(?:\d+ +)?[^\s:]")
# These show lines of traces, in comments and documents.
SCRIPTS = (".pl", ".awk", ".py", ".ipynb", ".md")


def traces(folder):
    """Files and folders that may be traces, by their contents."""
    for at, folders, files in os.walk(folder):
        folders.sort()
        if "metadata" in files:
            with open(os.path.join(at, "metadata"), "rb") as f:
                head = f.read(64)
            packets = b"\x75\xd1\x1d\x57" in (head[:4], head[3::-1])
            if packets or head.startswith((b"/* CTF", b"\x1e")):
                yield at
                folders[:] = []
                continue
        for name in sorted(files):
            path = os.path.join(at, name)
            if os.path.islink(path) or name.startswith(".") or name.endswith(SCRIPTS):
                continue
            with open(path, "rb") as f:
                head = f.read(65536)
            perfetto = head[:1] == b"\n" and re.search(r"perfetto|pftrace|\.pb$", name)
            if any(head.startswith(m) for m in MAGIC) or perfetto or TEXT.search(head):
                yield path


def checksum(path):
    files = [path]
    if os.path.isdir(path):
        files = sorted(os.path.join(at, f) for at, _, fs in os.walk(path) for f in fs)
    digest, size = hashlib.sha256(), 0
    for file in files:
        with open(file, "rb") as f:
            while block := f.read(1 << 20):
                digest.update(block)
                size += len(block)
    return digest.hexdigest()[:16], size


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


class Ran:
    """A command, what it printed, and what it cost."""

    def __init__(self, command, keep=True):
        begin = time.monotonic()
        out = subprocess.PIPE if keep else subprocess.DEVNULL
        child = subprocess.Popen(
            command, stdout=out, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            preexec_fn=limit, env={**os.environ, "LC_ALL": "C", "PERF_PAGER": "cat"})
        try:
            self.out, err = child.communicate(timeout=2 * SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            self.out, err = child.communicate()
        self.code = child.returncode
        self.err = (err or b"").decode(errors="replace")
        self.seconds = time.monotonic() - begin


def lines_that(command, wanted):
    """How many lines of what a command prints match."""
    ran = Ran(command)
    if ran.code != 0 or not ran.out:
        return None
    return sum(1 for line in ran.out.split(b"\n") if wanted(line))


def peer(path, form):
    """The number of events by the tool that the format is of."""
    if form.startswith("perf.data") and shutil.which("perf"):
        for fields in ["event", "ip", "comm"]:
            n = lines_that(["perf", "script", "-f", "-G", "-F", fields, "-i", path], bytes.strip)
            if n:
                return n
        return by_records(path)
    if form.startswith("trace.dat") and shutil.which("trace-cmd"):
        event = re.compile(rb"^\s*\S.*\[\d+\].*\d+\.\d+: ")
        return lines_that(["trace-cmd", "report", "-N", "-i", path], event.match)
    if form.startswith("CTF") and shutil.which("babeltrace2"):
        return by_stream(path)
    if form.endswith(("text", "html")):
        with open(path, "rb") as f:
            # In old pages the lines stand in a string.
            lines = f.read().replace(b"\\n\\", b"").split(b"\n")
        return sum(1 for line in lines if LINE.match(line))
    if form.startswith("Perfetto"):
        return by_packets(path)
    return None


def fields(message):
    """Number and content of each field of a protobuf message, where it is bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, message[at:at + size]
            at += size
        elif key & 7 == 0:
            varint()
        else:
            at += {1: 8, 5: 4}[key & 7]


def by_packets(path):
    """Events of ftrace in the packets of a Perfetto trace; nothing where they are packed."""
    with open(path, "rb") as f:
        data = f.read()
    count = 0
    try:
        for packet in (p for n, p in fields(data) if n == 1):
            for number, bundle in fields(packet):
                # Compressed packets, and switches by the column.
                if number == 50:
                    return None
                if number == 1:
                    parts = [n for n, _ in fields(bundle)]
                    if 4 in parts:
                        return None
                    count += parts.count(2)
    except (IndexError, KeyError):
        return None
    return count


def by_records(path):
    """Samples of a perf.data that this perf is too old for, by the headers of its records alone."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 56 or data[:8] != b"PERFILE2":
        return None
    at, size = struct.unpack_from("<QQ", data, 40)
    # Of a recording that was not finished the size is not known.
    end, samples = min(at + size, len(data)) if size else len(data), 0
    while at + 8 <= end:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        # Compressed ones hold others, and what is no header means that the file is damaged.
        if length < 8 or kind in (81, 83):
            return None
        samples += kind == 9
        # Of an auxiliary trace the content follows.
        at += length + (struct.unpack_from("<Q", data, at + 8)[0] if kind == 71 else 0)
    return samples or None


def by_stream(path):
    """What babeltrace2 counts; nothing where it gives up, as it does where streams overlap."""
    ran = Ran(["babeltrace2", path, "-c", "sink.utils.counter"])
    found = re.findall(rb"(\d+) Event message", ran.out or b"")
    return int(found[-1]) if found and ran.code == 0 else None


def number(text):
    m = re.search(r", (\d+) events?\b", text)
    return int(m.group(1)) if m else None


def harmful_idle(nodes):
    spare = ("idle", "idle/no-work", "idle/throttled", "idle/scheduler")
    return sum(n["ns"] for n in nodes if n["path"].startswith("idle/") and n["path"] not in spare)


def find(value, key):
    """The first value of this key, wherever it is."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    for part in value if isinstance(value, list) else []:
        if (found := find(part, key)) is not None:
            return found
    return None


def rows(value):
    """The rows of a table that were laid idle time to."""
    if isinstance(value, dict):
        if "idle_blamed_ns" in value:
            yield value
        value = list(value.values())
    for part in value if isinstance(value, list) else []:
        yield from rows(part)


def agrees(holdup, path):
    """What disagrees between the ledger and waits; nothing if they agree."""
    ledger = Ran([holdup, "ledger", "--json", path])
    nodes = find(json.loads(ledger.out or b"{}"), "nodes") or []
    has = harmful_idle(nodes)
    for by in ["object", "kind", "thread"]:
        waits = Ran([holdup, "waits", "--by", by, "--json", path]).out
        table = list(rows(json.loads(waits or b"{}")))
        laid = sum(r["idle_blamed_ns"] for r in table)
        if laid > has + len(table):
            return f"waits --by {by} lays {laid} ns, the ledger has {has}"
    return ""


def look(holdup, folder, path):
    digest, size = checksum(path)
    name = os.path.relpath(path, folder)
    row = {"path": name, "sha": digest, "bytes": size, "form": "", "events": "", "peer": "",
           "verdict": "", "seconds": 0.0, "remark": "", "class": "right"}
    worst = []
    for verb in VERBS:
        ran = Ran([holdup, *verb, path], keep=verb[0] in ("info", "diagnose"))
        row["seconds"] = max(row["seconds"], ran.seconds)
        said = ran.err.strip().split("\n")[0][:200]
        what = " ".join(verb)
        if "panicked" in ran.err or ran.code in (101, -6, -11, -4):
            worst.append(("panic", f"{what}: {said}"))
        elif ran.code < 0 or "out of memory" in ran.err or "allocation" in ran.err:
            worst.append(("limit", f"{what}: {ran.code} {said}"))
        elif verb == ["info"] and ran.code not in (0, 2):
            row.update({"class": "refused", "remark": said})
            return row
        # Without a word on it: the answer is that there is none.
        elif ran.code != 0 and said:
            worst.append(("failed", f"{what}: {ran.code} {said}"))
        if verb == ["info"] and ran.out:
            text = ran.out.decode(errors="replace")
            head = text.split("\n")[0]
            m = re.search(r" \(([^()]*(?:\([^()]*\))?[^()]*)\): ", head)
            row["form"], row["events"] = m.group(1) if m else "", number(head)
        if verb == ["diagnose"] and ran.out:
            m = re.search(rb"VERDICT: (.*)", ran.out)
            row["verdict"] = m.group(1).decode() if m else ""
    row["peer"] = peer(path, row["form"])
    if row["peer"] is not None and row["events"] is not None and row["peer"] != row["events"]:
        worst.append(("count", f"{row['events']} events, the peer has {row['peer']}"))
    if differs := agrees(holdup, path):
        worst.append(("ledger", differs))
    if worst:
        row["class"], row["remark"] = min(worst, key=lambda w: CLASSES.index(w[0]))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--holdup", default="target/release/holdup")
    parser.add_argument("--out", default="-")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only the files that would be read")
    args = parser.parse_args()
    paths = list(traces(args.folder))
    if args.list:
        print("\n".join(paths))
        return
    found = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for row in pool.map(lambda p: look(args.holdup, args.folder, p), paths):
            found.append(row)
            if row["class"] not in ("right", "refused"):
                print(row["class"], row["path"], row["remark"], file=sys.stderr, flush=True)
    found.sort(key=lambda r: (CLASSES.index(r["class"]), r["path"]))
    columns = ["class", "path", "sha", "bytes", "form", "events", "peer", "verdict", "seconds",
               "remark"]
    out = sys.stdout if args.out == "-" else open(args.out, "w", encoding="utf-8")
    print("\t".join(columns), file=out)
    for row in found:
        row["seconds"] = f"{row['seconds']:.2f}"
        values = ["" if row[c] is None else str(row[c]) for c in columns]
        print("\t".join(v.replace("\t", " ") for v in values), file=out)
    sums = {c: sum(1 for r in found if r["class"] == c) for c in CLASSES}
    told = ", ".join(f"{n} {c}" for c, n in sums.items() if n)
    print(f"{len(found)} files: {told}", file=sys.stderr)


if __name__ == "__main__":
    main()
