//! Calls that come whole change no figure, whatever happens on other CPUs meanwhile.

use holdup_attribution::{Attribution, analyze};
use holdup_passes::{Analysis, Group, Options, Selection};
use holdup_testkit::{ByCpu, MemTrace, TraceBuilder};
use holdup_trace::{Nanos, Opened, QualityCode, Reader, RunDecoder};
use std::fmt::Write;

const READ: u32 = 0;
const MMAP: u32 = 9;
const YIELD: u32 = 24;
const GETPID: u32 = 39;
const FUTEX: u32 = 202;

/// Two CPUs on which five threads call, sleep, and wake each other. Never two events at one time.
fn random_trace(mut seed: u64) -> MemTrace {
    let mut random = move |n: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    let mut t = TraceBuilder::new(2);
    let mut asleep: Vec<u32> = vec![1, 2, 3, 4, 5];
    let mut ready: Vec<u32> = vec![];
    let (mut current, mut now) = ([0u32; 2], [10u64, 11]);
    // The system call in which a thread sleeps.
    let mut inside = [READ; 6];
    for _ in 0..400 {
        let cpu = (now[1] < now[0]) as usize;
        let (c, at, tid) = (cpu as u16, now[cpu], current[cpu]);
        let later = |by: u64| at + 2 * (1 + by);
        now[cpu] = later(random(20));
        if tid == 0 {
            let Some(next) = ready.pop() else {
                if let Some(woken) = (random(3) == 0).then(|| asleep.pop()).flatten() {
                    t = t.waking_to(at, c, 0, woken, c).wakeup_to(later(0), c, 0, woken, c);
                    ready.push(woken);
                    now[cpu] = later(1);
                }
                continue;
            };
            t = t.switch(at, c, 0, next, "R").sys_exit(later(0), c, next, inside[next as usize], 0);
            (current[cpu], now[cpu]) = (next, later(1));
            continue;
        }
        let nr = [READ, READ, GETPID, MMAP, FUTEX, YIELD][random(6) as usize];
        t = t.sys_enter_with(at, c, tid, nr, &[random(3), 1]);
        let end = later(2 + random(30));
        match random(6) {
            0 => {
                t = t.switch(later(1), c, tid, 0, "S");
                (current[cpu], now[cpu], inside[tid as usize]) = (0, later(2), nr);
                asleep.insert(0, tid);
                continue;
            }
            1 if !asleep.is_empty() => {
                let woken = asleep.pop().unwrap();
                t = t.waking_to(later(1), c, tid, woken, c).wakeup_to(later(2), c, tid, woken, c);
                t = t.sys_exit(end, c, tid, nr, 1);
                ready.push(woken);
            }
            // A thread that is about to sleep is woken before it does.
            2 if current[1 - cpu] > 0 => {
                let woken = current[1 - cpu];
                t = t.waking(later(1), c, tid, woken).wakeup_to(later(2), c, tid, woken, 1 - c);
                t = t.sys_exit(end, c, tid, nr, 1);
            }
            _ => t = t.sys_exit(end, c, tid, nr, 1 - random(3) as i64),
        }
        now[cpu] = end + 2 * (1 + random(3));
    }
    t.build()
}

/// All that depends on calls.
fn figures(reader: &dyn Reader, select: Option<(Nanos, Nanos)>) -> String {
    let selection = match select {
        Some((from, to)) => Selection { from: Some(from), to: Some(to), ..Selection::default() },
        None => Selection::default(),
    };
    let options = Options { selection, ..Options::default() };
    let a: Analysis = analyze(reader, &options).unwrap();
    let mut out = format!("{:#?}\n{:#?}\n", a.syscalls(Group::Thread), a.procs(Group::Thread));
    for nr in [READ, MMAP, YIELD, GETPID, FUTEX] {
        writeln!(out, "{:#?}", a.costs(nr)).unwrap();
    }
    writeln!(out, "{:#?}\n{:#?}\n{:#?}", a.switches(), a.bins(), a.user_intervals()).unwrap();
    writeln!(out, "{:#?}\n{:#?}", a.quality, Attribution::from(&a).ledger).unwrap();
    out
}

#[test]
fn figures_are_those_of_the_strict_order() {
    for seed in 0..100 {
        let trace = random_trace(seed);
        let by_cpu = ByCpu::of(&trace);
        let (first, last) = trace.info().span.unwrap();
        let middle = Some((first + (last - first) / 3, last - (last - first) / 3));
        for part in [None, middle] {
            let (strict, whole) = (figures(&trace, part), figures(&by_cpu, part));
            let differs = strict.lines().zip(whole.lines()).find(|(a, b)| a != b);
            assert_eq!(differs, None, "seed {seed}, part {part:?}");
            assert_eq!(strict.len(), whole.len(), "seed {seed}, part {part:?}");
        }
    }
}

/// A trace whose recorder wrote all of it twice, as perf does with a part of its ring when a signal
/// comes at the wrong time.
struct Twice<'a> {
    trace: &'a MemTrace,
    opened: Opened,
    whole: bool,
}

impl Reader for Twice<'_> {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn keeps_cpus_together(&self) -> bool {
        self.whole
    }

    fn decoder(&self, _: usize) -> Box<dyn RunDecoder + '_> {
        self.trace.decoder(0)
    }
}

#[test]
fn a_call_that_was_written_twice_takes_its_time_once() {
    let trace = TraceBuilder::new(1)
        .switch(10, 0, 0, 7, "R")
        .sys_enter(20, 0, 7, GETPID)
        .sys_exit(30, 0, 7, GETPID, 1)
        .sys_enter(40, 0, 7, GETPID)
        .sys_exit(70, 0, 7, GETPID, 1)
        .switch(80, 0, 7, 0, "S")
        .build();
    for whole in [false, true] {
        let mut opened = trace.opened().clone();
        opened.runs = [&opened.runs[..], &opened.runs].concat();
        let a = analyze(&Twice { trace: &trace, opened, whole }, &Options::default()).unwrap();
        let calls = &a.syscalls(Group::System)[0];
        assert_eq!((calls.count, calls.cpu_ns), (4, Some(40)), "whole: {whole}");
        let orphans = a.quality.count(QualityCode::OrphanSysEnter);
        assert_eq!(orphans, 2, "whole: {whole}");
        assert_eq!(a.quality.count(QualityCode::OrphanSysExit), 2, "whole: {whole}");
    }
}
