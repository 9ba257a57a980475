#!/usr/bin/env python3
"""Reports of the kernel test robot through `diagnose --metrics` and `diff`: is the lock named?

    benches/kernel_robot.py MAILBOX [--truth TSV] [--holdup BINARY] [--keep FOLDER]

MAILBOX is a folder with git repositories of mail as public-inbox keeps it (each commit a mail in the
file `m`), at any depth; of them the reports are read whose subject says by how much a benchmark
regressed. A report has the bisected commit, and tables of both sides: percentages of CPU time by
caller (perf-profile), waits by caller (perf-sched), CPU states (mpstat, iostat, vmstat).

Each becomes two files of figures for `diagnose --metrics`, before and after, and two baselines for
`diff`. A lock is named by its kind and the function that asks for it. What spins in the slow path of
a lock is processors lost; a report does not say how often a lock was asked for, so the figures have
one request a second that waits for all of it.

TSV says what each commit is about: its first ten digits, `lock` or `other`, a pattern that the name
of the lock must match, a remark.
"""

import argparse
import email
import email.policy
import json
import pathlib
import re
import subprocess
import tempfile

ROW = re.compile(
    r"^\s*([\d.e+]+)(?:\s*±\s*\d+%)?\s+[+-][\d.e+]+%?\s+([\d.e+]+)(?:\s*±\s*\d+%)?\s+(\S+)\s*$"
)
# Slow paths, and what lies between them and the function that wants the lock.
SPINS = "native_queued_spin_lock_slowpath|pv_queued_spin_lock_slowpath|osq_lock|rwsem_spin_on_owner|" \
    "mutex_spin_on_owner|queued_read_lock_slowpath|queued_write_lock_slowpath"
INSIDE = re.compile(
    rf"^({SPINS}|rwsem_\w+|(__)?down_(read|write)\w*|(__)?mutex_\w+|__ww_mutex_lock\w*|_raw_\w+lock\w*|"
    r"__raw_\w+lock\w*|do_raw_\w+|lock_timer_base|__lock_text_start|schedule\w*|__schedule|"
    r"folio_lock\w*|bit_spin_lock|task_rq_lock|raw_spin_rq_lock_nested)$"
)


def reports(folder):
    """(commit, subject, text) of each report, oldest first."""
    found = {}
    for head in sorted(folder.rglob("HEAD")):
        git = ["git", f"--git-dir={head.parent}"]
        log = subprocess.run(
            [*git, "log", "--format=%H%x09%an%x09%ae%x09%cI%x09%s"], capture_output=True, text=True,
            errors="replace",
        ).stdout
        for line in log.splitlines():
            mail, author, address, date, subject = line.split("\t", 4)
            of = re.search(r"\b([0-9a-f]{10}):", subject)
            robot = "robot" in author or address.endswith("intel.com")
            if not of or not robot or "regression" not in subject or "%" not in subject:
                continue
            if subject.lower().startswith("re:") or of[1] in found:
                continue
            raw = subprocess.run([*git, "show", f"{mail}:m"], capture_output=True).stdout
            parsed = email.message_from_bytes(raw, policy=email.policy.default)
            body = parsed.get_body(preferencelist=("plain",))
            found[of[1]] = (date, re.sub(r"\s+", " ", subject), body.get_content() if body else "")
    by_date = sorted(found.items(), key=lambda kv: kv[1])
    return [(commit, subject, text) for commit, (_, subject, text) in by_date]


def rows(text):
    """Name -> (before, after), of the first comparison of a report."""
    found = {}
    for line in text.splitlines():
        row = ROW.match(line)
        if row and row[3] not in found:
            found[row[3]] = (float(row[1]), float(row[2]))
    return found


def named(frames):
    """The kind of a lock and who asks for it, by a call chain from the inside out."""
    path = [f for f in frames]
    inside = []
    while path and INSIDE.match(path[0]):
        inside.append(path.pop(0))
    if not path or not inside:
        return None
    words = " ".join(inside)
    kind = (
        "rwsem:W" if re.search(r"down_write|rwsem_down_write", words)
        else "rwsem:R" if re.search(r"down_read", words)
        else "mutex" if "mutex" in words
        else "rwlock:R" if re.search(r"read_lock", words)
        else "rwlock:W" if re.search(r"write_lock", words)
        else "spinlock"
    )
    return f"{kind} {path[0]}"


class Side:
    """One side of a report in figures."""

    def __init__(self, all_rows, side, cpus, seconds):
        value = lambda name: all_rows[name][side] if name in all_rows else None
        first = lambda *names: next((v for n in names if (v := value(n)) is not None), None)
        self.cpus, self.seconds = cpus, seconds
        self.user = first("mpstat.cpu.all.usr%", "iostat.cpu.user", "vmstat.cpu.us")
        self.system = first("mpstat.cpu.all.sys%", "iostat.cpu.system", "vmstat.cpu.sy")
        self.idle = first("mpstat.cpu.all.idle%", "iostat.cpu.idle", "vmstat.cpu.id")
        self.wait = first("mpstat.cpu.all.iowait%", "iostat.cpu.iowait", "vmstat.cpu.wa")
        self.switches = first("vmstat.system.cs")
        known = [v for v in (self.user, self.system) if v is not None]
        if self.idle is not None:
            self.busy = 100 - self.idle - (self.wait or 0)
        elif len(known) == 2:
            self.busy = sum(known)
        else:
            # What did not change is not in the tables.
            self.busy = max([*known, 50.0])
        self.busy = min(max(self.busy, 0.1), 100.0)
        self.locks, self.calls = {}, {}
        for name, pair in all_rows.items():
            pct = pair[side]
            chain = re.match(r"perf-profile\.calltrace\.cycles\w*-?\w*\.(.*)", name)
            if chain and re.match(rf"({SPINS})\.", chain[1]):
                lock = named(chain[1].split("."))
                if lock:
                    # Chains are cut to five functions: those of one caller are added up.
                    lost = pct / 100 * self.busy / 100 * cpus
                    self.locks[lock] = self.locks.get(lock, 0.0) + lost
            call = re.match(r"perf-profile\.children\.cycles\w*-?\w*\.__x64_sys_(\w+)$", name)
            if call:
                self.calls[call[1]] = pct * self.busy / 100
            wait = re.match(r"perf-sched\.wait_time\.avg\.ms\.(.*)", name)
            count = value(name.replace("wait_time.avg.ms", "wait_and_delay.count"))
            if wait and count:
                lock = named([f for f in wait[1].split(".") if f not in ("[unknown]", "__cond_resched")])
                if lock and re.search(r"rwsem_down|mutex_lock", wait[1]):
                    slept = pct * 1e-3 * count / seconds
                    self.locks[lock] = self.locks.get(lock, 0.0) + slept

    def metrics(self, source):
        """A file for `diagnose --metrics`."""
        system = self.system if self.system is not None else max(0.0, self.busy - (self.user or 0))
        user = min(self.user or 0.0, 100.0 - system)
        idle = max(0.0, 100 - system - user - (self.wait or 0))
        sar = {"pct_usr": user, "pct_sys": system, "pct_wio": self.wait or 0.0, "pct_idle": idle}
        if self.switches is not None:
            sar["cswch_per_s"] = self.switches
        return {
            "source": source,
            "cpus": self.cpus,
            "seconds": self.seconds,
            "sar": sar,
            "syscalls": [{"name": n, "pct": min(p, 100.0)} for n, p in sorted(self.calls.items())],
            "semaphores": [
                {"name": n, "owner": "kernel", "requests_per_s": 1.0, "wait_us": cpus * 1e6}
                for n, cpus in sorted(self.locks.items()) if cpus > 0
            ],
        }

    def baseline(self, name):
        """A baseline with one run."""
        ns = lambda cpus: [round(cpus * self.seconds * 1e9)]
        figures = {
            "ledger.busy_ns": None, "ledger.busy.cpu_ns": ns(self.busy / 100 * self.cpus),
            "lock.wait_ns": ns(sum(self.locks.values())),
        }
        figures.pop("ledger.busy_ns")
        for lock, cpus in self.locks.items():
            figures[f'locks["{lock}"].wait_ns'] = ns(cpus)
        for call, pct in self.calls.items():
            figures[f"syscalls.{call}.cpu_ns"] = ns(pct / 100 * self.cpus)
        return {
            "schema": "holdup-baseline/1",
            "settings": [
                {"host": None, "kernel": None, "arch": "x86_64", "cpus": self.cpus,
                 "events": ["raw_syscalls:sys_enter"]}
            ],
            "runs": [
                {"name": name, "wall_ns": round(self.seconds * 1e9), "events": 1, "lost_events": 0,
                 "others": {"ns": 0, "work_known": False, "programs": []},
                 "verdict": {"class": "not-enough-evidence", "confidence": 0.0}, "setting": 0}
            ],
            "figures": figures,
        }


def ask(holdup, *args):
    out = subprocess.run([holdup, *args, "--format", "json"], capture_output=True, text=True)
    # The exit code tells the verdict; without an answer there is none.
    if not out.stdout.startswith("{"):
        raise SystemExit(f"{args}: {out.stderr}")
    return json.loads(out.stdout)


def answer(holdup, commit, text, folder):
    """What holdup says of a report: the class after, and the lock that grew most, if one did."""
    table = rows(text)
    cpus = re.search(r"(\d+) threads", text)
    cpus = int(cpus[1]) if cpus else 96
    length = table.get("time.elapsed_time") or table.get("stress-ng.time.elapsed_time") or (60.0, 60.0)
    sides = [Side(table, i, cpus, max(length[i], 1.0)) for i in (0, 1)]
    files = []
    for side, name in zip(sides, ("before", "after")):
        metrics = folder / f"{commit}-{name}.metrics.json"
        metrics.write_text(json.dumps(side.metrics(f"{commit} {name}")))
        baseline = folder / f"{commit}-{name}.json"
        baseline.write_text(json.dumps(side.baseline(f"{commit} {name}")))
        files += [str(metrics), str(baseline)]
    verdict = ask(holdup, "diagnose", "--metrics", files[2])["verdict"]["class"]
    diff = ask(holdup, "diff", files[1], files[3])
    grown = []
    for row in diff["rows"]:
        lock = re.match(r'locks\["(.*)"\]\.wait_per_s', row["metric"])
        a, b = row.get("a") or 0.0, row.get("b") or 0.0
        if lock and b > a:
            grown.append(((b - a) * 1e-9, lock[1], a * 1e-9, b * 1e-9))
    grown.sort(reverse=True)
    # As in a gate: a change counts from 3 % on, here of the busy time.
    least = 0.03 * max(s.busy for s in sides) / 100 * cpus
    top = grown[0] if grown and grown[0][0] >= least else None
    return verdict, top, sides, grown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mailbox", type=pathlib.Path)
    parser.add_argument("--truth", type=pathlib.Path)
    parser.add_argument("--holdup", default="target/debug/holdup")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the files of figures here")
    args = parser.parse_args()
    truth = {}
    if args.truth:
        for line in args.truth.read_text().splitlines():
            if line and not line.startswith("#"):
                commit, kind, pattern, remark = (line.split("\t") + ["", "", ""])[:4]
                truth[commit] = (kind, pattern, remark)
    right = {"lock": [0, 0], "other": [0, 0]}
    print("| commit | benchmark | what it is about | lock that grew most, CPUs | class | |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        for commit, subject, text in reports(args.mailbox):
            if truth and commit not in truth:
                continue
            title = re.search(r'commit: [0-9a-f]{40} \("(.*?)"\)', text, re.S)
            title = re.sub(r"\s+", " ", title[1]) if title else subject
            verdict, top, _, grown = answer(args.holdup, commit, text, folder)
            bench = subject.split(f"{commit}:")[1].strip().removesuffix(" regression")
            words = f"`{top[1]}` {top[2]:.1f} to {top[3]:.1f}" if top else "none"
            mark = ""
            if commit in truth:
                kind, pattern, remark = truth[commit]
                ok = bool(top and re.search(pattern, top[1])) if kind == "lock" else top is None
                right[kind][0] += ok
                right[kind][1] += 1
                mark = "right" if ok else f"**wrong**: {remark}" if remark else "**wrong**"
            print(f"| {commit} | {bench} | {title} | {words} | {verdict} | {mark} |")
            if args.keep:
                print(f"    {[(round(g[0], 2), g[1]) for g in grown[:4]]}")
    for kind, (n, of) in right.items():
        if of:
            print(f"\n{kind}: {n} of {of} right")


if __name__ == "__main__":
    main()
