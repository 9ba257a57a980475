#!/usr/bin/env python3
"""How well the change points of `holdup history` are those that people see.

    benches/change_points.py FOLDER [--published NAME=FILE ...]

FOLDER holds series that people annotated, as the Turing Change Point Dataset does (van den Burg and
Williams, "An evaluation of change point detection algorithms", 2020) and what was made after it:
annotations.json, {series: {annotator: [index, ...]}}, and a NAME.json for each series, anywhere
below, with {"series": [{"raw": [...]}]}. Series of several dimensions, with missing values or
without annotations are left out.

F1 is that of the same authors: a margin of 5 values; precision over what any annotator marked,
recall as the mean over the annotators; the beginning counts as a change point of all. It is printed
for all series, and for both halves of them by name: what was chosen by the first half is reported by
the second.

FILE is {series: {method: F1}}, as the authors' benchmark TCPDBench writes it
(analysis/output/tables/default_f1_uni_full.json), so that what they print stands beside it for the
same series. Apache Otava is asked where its package `apache-otava` is installed.
"""

import argparse
import json
import pathlib
import subprocess
import sys

MARGIN = 5


def matched(marks, points):
    """The marks near which a point lies, each point counted once."""
    left, found = set(points), set()
    for mark in sorted(marks):
        near = min((abs(mark - p), p) for p in left) if left else (MARGIN + 1, None)
        if near[0] <= MARGIN:
            found.add(mark)
            left.remove(near[1])
    return found


def f1(annotators, points):
    """The authors' F1 over several annotators."""
    points = {0, *points}
    each = [{0, *marks} for marks in annotators.values()]
    precision = len(matched(set().union(*each), points)) / len(points)
    recall = sum(len(matched(marks, points)) / len(marks) for marks in each) / len(each)
    return 2 * precision * recall / (precision + recall)


def series_in(folder):
    """Name -> (values, annotators), in order of names."""
    annotations = json.loads((folder / "annotations.json").read_text())
    found = {}
    for path in sorted(folder.rglob("*.json")):
        if path.stem not in annotations or path.stem in found:
            continue
        rows = json.loads(path.read_text()).get("series", [])
        if len(rows) == 1 and all(isinstance(v, (int, float)) for v in rows[0]["raw"]):
            found[path.stem] = ([float(v) for v in rows[0]["raw"]], annotations[path.stem])
    return dict(sorted(found.items()))


def holdup(series, *options):
    """Name -> change points of `holdup history`, with its defaults or these."""
    lines = "".join(
        f"{name} {' '.join(map(repr, values))}\n" for name, (values, _) in series.items()
    )
    root = pathlib.Path(__file__).resolve().parent.parent
    command = ["cargo", "run", "-q", "-p", "holdup-gate", "--example", "change_points", "--"]
    out = subprocess.run(
        [*command, *map(str, options)], cwd=root, input=lines, stdout=subprocess.PIPE, text=True,
        check=True,
    ).stdout
    rows = (line.split() for line in out.splitlines())
    return {name: [int(p) for p in points] for name, *points in rows}


def otava(series, **options):
    """The same of Apache Otava; None where it is not installed."""
    try:
        from otava.analysis import compute_change_points
    except ImportError:
        return None
    found = {}
    for name, (values, _) in series.items():
        points, _ = compute_change_points(values, **options)
        found[name] = [p.index for p in points]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--published", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--each", action="store_true", help="a line for each series too")
    args = parser.parse_args()
    series = series_in(args.folder)
    if not series:
        sys.exit(f"{args.folder}: no annotated series")
    names = list(series)
    halves = [names, names[0::2], names[1::2]]
    scores = {}

    def add(method, points):
        if points is not None:
            scores[method] = {n: f1(series[n][1], points[n]) for n in names}

    add("`holdup history`", holdup(series))
    add("Apache Otava, its defaults", otava(series))
    add(
        "Apache Otava, limits of `history`",
        otava(series, window_len=50, max_pvalue=0.0001, min_magnitude=0.05),
    )
    for named in args.published:
        label, _, path = named.partition("=")
        table = json.loads(pathlib.Path(path).read_text())
        for method in table[names[0]]:
            of = {n: table.get(n, {}).get(method) for n in names}
            if all(isinstance(v, float) for v in of.values()):
                scores[f"{method}, {label}"] = of

    print(f"{len(names)} series, {sum(len(v) for v, _ in series.values())} values\n")
    print("| method | all | first half | second half |\n|---|--:|--:|--:|")
    mean = lambda of, some: sum(of[n] for n in some) / len(some)
    for method, of in sorted(scores.items(), key=lambda kv: -mean(kv[1], names)):
        print(f"| {method} | " + " | ".join(f"{mean(of, half):.3f}" for half in halves) + " |")
    if args.each:
        for name in names:
            own = " ".join(f"{m}={of[name]:.2f}" for m, of in scores.items() if "," not in m)
            print(name, len(series[name][0]), own)


if __name__ == "__main__":
    main()
