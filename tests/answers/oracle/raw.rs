//! The rules of perf's tables, applied to the events one by one.
//!
//! No state machine of holdup's takes part: [`holdup_trace::merge`] hands over the events, in the
//! order `perf script` prints them (a test of the perf.data reader), and what follows is what perf
//! does with each, as far as its output shows it. Where that is wrong, the right figure is kept
//! beside it.

use crate::oracle::corpus::Recording;
use holdup_syscalls::{Arch, name};
use holdup_trace::{Batch, Cpu, Event, Nanos, Tid, What, merge};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// A thread id, signed as perf prints it: -1 is a thread whose id the kernel had taken back.
pub(crate) type Id = i64;

/// Calls of one number by one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Calls {
    pub(crate) count: u64,
    pub(crate) errors: u64,
    pub(crate) total: Nanos,
    pub(crate) min: Nanos,
    pub(crate) max: Nanos,
}

impl Calls {
    fn add(&mut self, ns: Nanos, failed: bool) {
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.count += 1;
        self.errors += failed as u64;
        self.total += ns;
    }
}

/// The calls of one number by one thread, as perf counts them and as they were.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallRow {
    pub(crate) perf: Calls,
    pub(crate) right: Calls,
    /// Length of each call of `right` whose entry was seen.
    pub(crate) lengths: Vec<Nanos>,
    /// Returns without an entry that perf measured from the entry of an earlier call.
    pub(crate) stale: u64,
    /// Returns with number -1, which perf leaves out.
    pub(crate) unnumbered: u64,
    /// Returns with 0, without an entry, from a call that makes a thread: those of the new
    /// threads, which perf takes for calls of their own.
    pub(crate) born: u64,
}

/// Stays on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stays {
    pub(crate) count: u64,
    /// From the CPU's last recorded switch to the one away from the thread, as perf has it.
    pub(crate) total: Nanos,
    /// Stays that began with a switch that was not recorded: the CPU's last one was to another.
    pub(crate) unseen: u64,
    /// Of `total`: before the thread can have been there, because it was woken later, or already
    /// ran elsewhere.
    pub(crate) too_early: Nanos,
    /// Of `total`: before an event shows the thread on that CPU, `too_early` included.
    pub(crate) unproven: Nanos,
}

impl Stays {
    fn add(&mut self, ns: Nanos) {
        self.count += 1;
        self.total += ns;
    }

    pub(crate) fn join(&mut self, o: &Stays) {
        self.count += o.count;
        self.total += o.total;
        self.unseen += o.unseen;
        self.too_early += o.too_early;
        self.unproven += o.unproven;
    }

    /// Whether `count` stays of `total` in sum are possible, given the events.
    pub(crate) fn admit(&self, count: u64, total: Nanos) -> bool {
        count == self.count
            && (self.total - self.unproven..=self.total - self.too_early).contains(&total)
    }
}

/// Executions of an interrupt handler, softirq or work item.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Runs {
    pub(crate) count: u64,
    pub(crate) total: Nanos,
    pub(crate) max: Nanos,
    pub(crate) max_start: Nanos,
    pub(crate) max_end: Nanos,
    /// Others as long as the longest.
    pub(crate) ties: u64,
}

impl Runs {
    /// Add those of another work item of the same function.
    pub(crate) fn join(&mut self, o: &Runs) {
        self.count += o.count;
        self.total += o.total;
        if o.max > self.max {
            (self.max, self.max_start, self.max_end, self.ties) =
                (o.max, o.max_start, o.max_end, o.ties);
        } else if o.max == self.max {
            self.ties += o.ties + 1;
        }
    }

    fn add(&mut self, start: Nanos, end: Nanos) {
        let ns = end - start;
        self.count += 1;
        self.total += ns;
        if ns > self.max {
            (self.max, self.max_start, self.max_end, self.ties) = (ns, start, end, 0);
        } else if ns == self.max {
            self.ties += 1;
        }
    }
}

/// A CPU's idle task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Idle {
    /// From a switch on this CPU to the next, out of the idle task: perf's idle time.
    pub(crate) stays: Stays,
    /// Of these, with an interrupt or softirq on top.
    pub(crate) interrupted: Nanos,
    /// Idle before the first switch and after the last, nothing on top.
    pub(crate) edges: Nanos,
    /// Switches whose `prev` is not the `next` of the switch before: some were not recorded.
    pub(crate) gaps: u64,
}

/// Which interrupt: `i` line, `v` vector without a line, `s` softirq, `w` work item (by its
/// address).
pub(crate) type RunKey = (char, u64, u16);

/// What the events of one file come to.
#[derive(Default)]
pub(crate) struct Raw {
    /// Written to a pipe: perf's summaries cannot read it.
    pub(crate) piped: bool,
    pub(crate) calls: BTreeMap<(Id, u32), CallRow>,
    /// The calls that make threads, by number.
    pub(crate) begets: BTreeMap<u32, &'static str>,
    /// By the thread id the record carries, as perf goes by.
    pub(crate) stays: BTreeMap<Id, Stays>,
    /// The stays that end with a record of thread -1, by the `prev_pid` the event names.
    pub(crate) stays_of_gone: BTreeMap<Id, Stays>,
    /// `sched_migrate_task` events by the thread moved (not the one that moves it).
    pub(crate) moved: BTreeMap<Id, u64>,
    /// Executions as perf pairs them.
    pub(crate) runs: BTreeMap<RunKey, Runs>,
    /// Functions of each work item: several where its memory was used again.
    pub(crate) functions: BTreeMap<u64, BTreeSet<u64>>,
    /// Work items that ended on another CPU than they began on, whose runs perf does not see.
    pub(crate) moved_items: BTreeSet<u64>,
    pub(crate) idle: BTreeMap<u16, Idle>,
    /// Every name a thread id had.
    pub(crate) names: BTreeMap<Id, BTreeSet<String>>,
    /// PERF_RECORD_COMM names alone, the latest.
    pub(crate) last_comm: BTreeMap<Id, String>,
}

/// What is known of a CPU between two events.
#[derive(Default)]
struct CpuNow {
    last_switch: Option<(Nanos, Id)>,
    /// The thread that showed up last, and its first event since then or the last switch.
    since: Option<(Id, Nanos)>,
    /// Interrupts and softirqs in progress, and until when time has been charged.
    depth: Vec<(char, u64)>,
    charged: Nanos,
    /// With an interrupt on top, since the last switch.
    interrupted: Nanos,
    seen: bool,
    idle_first: bool,
}

impl Raw {
    pub(crate) fn read(file: &Recording) -> Raw {
        let reader = holdup_open::open(&file.path).unwrap_or_else(|e| panic!("{}: {e}", file.name));
        let info = reader.info();
        // perf knows these events by their full names only.
        let raw_calls: Vec<bool> = info.events.iter().map(|e| e.system == "raw_syscalls").collect();
        let (start, end) = info.span.unwrap_or((0, 0));
        let mut raw = Raw { piped: info.format.contains("pipe"), ..Raw::default() };
        let arch = Arch::from_uname(info.arch.as_deref().unwrap_or("x86_64"));
        raw.begets = (0..1024)
            .filter_map(|nr| Some((nr, name(arch, nr)?)))
            .filter(|(_, name)| matches!(*name, "clone" | "clone3" | "fork" | "vfork"))
            .collect();
        let mut walk = Walk {
            raw,
            open: BTreeMap::new(),
            entries: BTreeMap::new(),
            cpus: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            woken: BTreeMap::new(),
            running: BTreeMap::new(),
            start,
            end,
        };
        let name = |id| info.names.get(id);
        merge::drive(&*reader, 0, &mut |events: &[Event], _: &Batch| {
            for e in events {
                let is_raw_call = raw_calls.get(e.id.0 as usize) == Some(&true);
                walk.event(e, is_raw_call, &name);
            }
            ControlFlow::Continue(())
        })
        .unwrap_or_else(|e| panic!("{}: {e}", file.name));
        walk.finish();
        walk.raw
    }
}

/// Whether the thread in the record's head certainly has the CPU. Others may come from the middle
/// of a switch, when the thread that leaves is still the current one.
fn shows_who_runs(what: &What) -> bool {
    use What::*;
    matches!(
        what,
        SysEnter { .. }
            | SysExit { .. }
            | Waking { .. }
            | Wakeup { .. }
            | WakeupNew { .. }
            | IrqEntry { .. }
            | IrqExit { .. }
            | SoftirqEntry { .. }
            | SoftirqExit { .. }
            | VectorEntry { .. }
            | VectorExit { .. }
    )
}

struct Walk {
    raw: Raw,
    /// The call each thread is in: number and start.
    open: BTreeMap<Id, (u32, Nanos)>,
    /// perf's: when each thread last entered any call.
    entries: BTreeMap<Id, Nanos>,
    cpus: BTreeMap<u16, CpuNow>,
    /// When each thread last left a CPU.
    elsewhere: BTreeMap<Id, Nanos>,
    /// When it was first woken after that.
    woken: BTreeMap<Id, Nanos>,
    /// perf's: executions entered and not left.
    running: BTreeMap<RunKey, Vec<Nanos>>,
    start: Nanos,
    end: Nanos,
}

fn id(tid: Tid) -> Id {
    tid.0 as i32 as Id
}

impl Walk {
    fn event(
        &mut self,
        e: &Event,
        is_raw_call: bool,
        name: &dyn Fn(holdup_trace::NameId) -> String,
    ) {
        let me = id(e.tid);
        let mut named = |tid: Tid, comm| {
            self.raw.names.entry(id(tid)).or_default().insert(name(comm));
        };
        match e.what {
            What::Switch { prev, prev_comm, next, next_comm, .. } => {
                named(prev, prev_comm);
                named(next, next_comm);
            }
            What::Comm { tid, comm, .. } => {
                named(tid, comm);
                self.raw.last_comm.insert(id(tid), name(comm));
            }
            _ => {}
        }
        match e.what {
            What::SysEnter { nr, .. } if is_raw_call => {
                self.entries.insert(me, e.ts);
                self.open.insert(me, (nr, e.ts));
            }
            What::SysExit { nr, ret } if is_raw_call => self.sys_exit(me, e.ts, nr, ret),
            What::Switch { prev, next, .. } => self.switch(e, id(prev), id(next)),
            What::Migrate { tid, .. } => *self.raw.moved.entry(id(tid)).or_default() += 1,
            What::Waking { tid, .. } | What::Wakeup { tid, .. } | What::WakeupNew { tid, .. } => {
                // Who goes to sleep may be woken before the switch away: that began no stay.
                let there = |c: &CpuNow| c.since.is_some_and(|(who, _)| who == id(tid));
                if !self.cpus.values().any(there) {
                    self.woken.entry(id(tid)).or_insert(e.ts);
                }
            }
            What::IrqEntry { irq, .. } => self.enter(e, 'i', irq as u64),
            What::IrqExit { irq } => self.leave(e, 'i', irq as u64),
            What::VectorEntry { vector, .. } => self.enter(e, 'v', vector as u64),
            What::VectorExit { vector } => self.leave(e, 'v', vector as u64),
            What::SoftirqEntry { vec } => self.enter(e, 's', vec as u64),
            What::SoftirqExit { vec } => self.leave(e, 's', vec as u64),
            What::WorkStart { work, function, .. } => {
                self.raw.functions.entry(work).or_default().insert(function);
                self.running.entry(('w', work, e.cpu.0)).or_default().push(e.ts);
            }
            What::WorkEnd { work } => {
                let here = ('w', work, e.cpu.0);
                let begun = |(key, times): (&RunKey, &Vec<Nanos>)| {
                    key.0 == 'w' && key.1 == work && key.2 != e.cpu.0 && !times.is_empty()
                };
                if self.running.get(&here).is_none_or(Vec::is_empty)
                    && self.running.iter().any(begun)
                {
                    self.raw.moved_items.insert(work);
                }
                self.ended(here, e.ts);
            }
            _ => {}
        }
        if e.cpu != Cpu::UNKNOWN && e.id != holdup_trace::EventId::SIDEBAND {
            let c = self.cpus.entry(e.cpu.0).or_default();
            if shows_who_runs(&e.what) && me != -1 && c.since.is_none_or(|(who, _)| who != me) {
                c.since = Some((me, e.ts));
            }
            if !c.seen {
                (c.seen, c.idle_first) = (true, me == 0 && !matches!(e.what, What::Switch { .. }));
            }
        }
    }

    fn sys_exit(&mut self, me: Id, now: Nanos, nr: u32, ret: i64) {
        let open = self.open.remove(&me);
        let failed = ret < 0;
        if nr == u32::MAX {
            // perf finds no call of that number and does nothing.
            if let Some((entered, start)) = open {
                let row = self.raw.calls.entry((me, entered)).or_default();
                row.unnumbered += 1;
                // What it returns is the interrupted code's register.
                row.right.add(now - start, false);
                row.lengths.push(now - start);
            }
            return;
        }
        let born = open.is_none() && ret == 0 && self.raw.begets.contains_key(&nr);
        let row = self.raw.calls.entry((me, nr)).or_default();
        // perf keeps the time of the entry and never forgets it.
        row.perf.add(self.entries.get(&me).map_or(0, |start| now - start), failed);
        row.born += born as u64;
        if !born {
            row.right.add(open.map_or(0, |(_, start)| now - start), failed);
        }
        row.lengths.extend(open.map(|(_, start)| now - start));
        row.stale += (open.is_none() && self.entries.contains_key(&me)) as u64;
    }

    fn switch(&mut self, e: &Event, prev: Id, next: Id) {
        self.charge(e.ts, e.cpu.0);
        let start = self.start;
        let c = self.cpus.entry(e.cpu.0).or_default();
        // perf takes the first stay of each CPU for 0: it knows no switch before.
        let stay = c.last_switch.map_or(0, |(t, _)| e.ts - t);
        let gap = c.last_switch.is_some_and(|(_, last)| last != prev);
        let interrupted = std::mem::take(&mut c.interrupted);
        let first = c.last_switch.is_none();
        let began = c.last_switch.map_or(e.ts, |(t, _)| t);
        let shown = c.since.take().map_or(e.ts, |(_, t)| t).max(began);
        c.depth.clear();
        c.last_switch = Some((e.ts, next));
        let idle = self.raw.idle.entry(e.cpu.0).or_default();
        idle.gaps += gap as u64;
        if prev == 0 {
            idle.stays.add(stay);
            if first {
                idle.edges += e.ts - start - interrupted;
            } else {
                idle.interrupted += interrupted;
            }
            return;
        }
        let mut s = Stays::default();
        s.add(stay);
        if gap {
            let left = self
                .elsewhere
                .get(&prev)
                .copied()
                .unwrap_or(0)
                .max(self.woken.get(&prev).copied().unwrap_or(0));
            let possible = left.clamp(began, shown);
            (s.unseen, s.too_early, s.unproven) = (1, possible - began, shown - began);
        }
        let me = id(e.tid);
        self.raw.stays.entry(me).or_default().join(&s);
        if me == -1 {
            self.raw.stays_of_gone.entry(prev).or_default().join(&s);
        }
        self.elsewhere.insert(prev, e.ts);
        self.woken.remove(&prev);
    }

    fn enter(&mut self, e: &Event, kind: char, id: u64) {
        self.charge(e.ts, e.cpu.0);
        self.cpus.entry(e.cpu.0).or_default().depth.push((kind, id));
        self.running.entry((kind, id, e.cpu.0)).or_default().push(e.ts);
    }

    fn leave(&mut self, e: &Event, kind: char, id: u64) {
        self.charge(e.ts, e.cpu.0);
        let c = self.cpus.entry(e.cpu.0).or_default();
        if let Some(i) = c.depth.iter().rposition(|&d| d == (kind, id)) {
            c.depth.truncate(i);
        }
        self.ended((kind, id, e.cpu.0), e.ts);
    }

    fn ended(&mut self, key: RunKey, now: Nanos) {
        if let Some(start) = self.running.get_mut(&key).and_then(Vec::pop) {
            self.raw.runs.entry(key).or_default().add(start, now);
        }
    }

    fn charge(&mut self, now: Nanos, cpu: u16) {
        let c = self.cpus.entry(cpu).or_default();
        if !c.depth.is_empty() {
            c.interrupted += now - c.charged;
        }
        c.charged = now;
    }

    fn finish(&mut self) {
        let cpus: Vec<u16> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            self.charge(self.end, cpu);
            let c = &self.cpus[&cpu];
            let idle = self.raw.idle.entry(cpu).or_default();
            match c.last_switch {
                Some((t, 0)) => idle.edges += self.end - t - c.interrupted,
                None if c.idle_first => idle.edges += self.end - self.start - c.interrupted,
                _ => {}
            }
        }
    }
}
