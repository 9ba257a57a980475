#!/usr/bin/env python3
"""Judges traces on the machines of a Dask cluster, and makes the tables of a fleet of them.

    contrib/fleet_dask.py traces/ --to out --scheduler tcp://head:8786
    contrib/fleet_dask.py traces/ --to out --workers 4         # on this machine alone

Each worker runs `holdup fleet --one` on one trace at a time and hands back a line of JSON, which is
added to out/journal.ndjson here. At last `holdup fleet` makes the tables of that journal. So a run
that was ended by anything goes on where it was, and the tables are those of a single machine. The
traces must have the same paths on all machines (a shared file system), and holdup the same version.
"""
import argparse
import fcntl
import os
import subprocess
import sys
import tempfile

from dask.distributed import Client, LocalCluster, as_completed


def judge(trace, holdup, options):
    """On a worker: the line of a trace; None of what could not be read, which is judged again at
    the end, where it is told."""
    with tempfile.TemporaryDirectory() as folder:
        part = os.path.join(folder, "part.ndjson")
        command = [holdup, "fleet", "--one", "-q", *options, "--to", part, "--", trace]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode == 2:
            raise RuntimeError(os.fsdecode(done.stderr).strip())
        if done.returncode != 0:
            return None
        with open(part, "rb") as file:
            return file.read()


def open_journal(folder):
    """The journal, for whole lines to be added; nobody else may have it open."""
    os.makedirs(folder, exist_ok=True)
    journal = open(os.path.join(folder, "journal.ndjson"), "a+b")
    fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # The line that a killed run had begun.
    end = size = journal.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 65536)
        journal.seek(start)
        newline = journal.read(end - start).rfind(b"\n")
        end = start if newline < 0 else start + newline + 1
        if newline >= 0:
            break
    if end < size:
        journal.truncate(end)
    return journal


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("inputs", nargs="+", help="traces, folders, patterns")
    parser.add_argument("--to", required=True, help="the folder of the fleet")
    parser.add_argument("--scheduler", help="address of a Dask scheduler; without it a local cluster")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="of the local cluster")
    parser.add_argument("--holdup", default="holdup", help="the program, on every machine")
    parser.add_argument("--thresholds", help="a TOML file, on every machine")
    args, more = parser.parse_known_args()
    options = ["--thresholds", args.thresholds] if args.thresholds else []

    listing = [args.holdup, "fleet", "--list", *options, "--to", args.to, "--", *args.inputs]
    found = subprocess.run(listing, stdout=subprocess.PIPE)
    if found.returncode not in (0, 3):
        sys.exit(found.returncode)
    traces = [os.fsdecode(line) for line in found.stdout.split(b"\n") if line]

    if traces:
        with open_journal(args.to) as journal:
            if args.scheduler:
                client = Client(args.scheduler)
            else:
                cluster = LocalCluster(
                    n_workers=args.workers, threads_per_worker=1, dashboard_address=None
                )
                client = Client(cluster)
            with client:
                # A trace that is judged twice, as a worker was lost, is known by its content.
                futures = client.map(
                    judge, traces, holdup=args.holdup, options=options, pure=False, retries=2
                )
                for _, line in as_completed(futures, with_results=True):
                    if line:
                        journal.write(line)
                        journal.flush()
            if not args.scheduler:
                cluster.close()
            os.fsync(journal.fileno())

    last = [args.holdup, "fleet", *options, "--to", args.to, *more, "--", *args.inputs]
    sys.exit(subprocess.run(last).returncode)


if __name__ == "__main__":
    main()
